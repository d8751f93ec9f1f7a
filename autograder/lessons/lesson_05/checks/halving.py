"""The check of 5.3: successive halving over learning curves that only this process knows, and bills."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from autograder.engine import Job, failure
from autograder.lessons.checking import name_the_mistake
from autograder.lessons.lesson_05.checks.billing import Bill, Raised, converse, key_of, raise_again
from autograder.lessons.lesson_05.checks.halving_plan import Search, draw_searches, draw_ties, halve
from autograder.lessons.lesson_05.checks.halving_report import is_number, require_bill, require_winner

_NO_BUDGET = "the search does not look at its budget, or pruned trials are counted as free"
_ALONE = (
    "a trial that is alone goes on: there is nothing left to decide, and its steps are wasted",
    "the last round is the one in which a single trial trains alone, however much budget is left",
)
_NAN = (
    "NaN is neither smaller nor larger than anything: in a sort or a minimum it ends up anywhere, so one whose loss "
    "is NaN goes on",
    "write `math.inf` in its place before anything is compared",
)
# What is likely, and where to look, by the twin that trained the same trials for as many steps.
_ROUNDS: Mapping[str, tuple[str, str]] = {
    "too few to divide": (
        "the search ends where fewer trials than reduction_factor are left: one of them should still go on, alone",
        "at least 1 goes on, also of 2 trials where reduction_factor is 3",
    ),
    "never alone": (
        "the search ends as soon as one trial is left: it should still train alone for a round",
        "the last round is the one in which a single trial trains alone",
    ),
    "alone for ever": _ALONE,
    "no exact fit": (
        "a round that fits exactly is left out: max_total_steps itself may be spent",
        "is it `>` or `>=` that compares with max_total_steps?",
    ),
    "one step over": (
        "one step more than the budget is spent",
        "is it `<` or `<=` that compares with max_total_steps?",
    ),
    "part of a round": (
        "part of a round is trained, where only whole ones count: its trials have not had the same steps",
        "what would the whole round cost? Only then train",
    ),
    "no budget": (_NO_BUDGET, "what a trial trained before it was pruned stays spent"),
    "NaN in the sort": _NAN,
    "NaN is best": (
        "one whose loss is NaN goes on as if it were the best: NaN is the worst",
        "write `math.inf` in its place before anything is compared",
    ),
    "NaN left out": (
        "too few go on: trials that diverged are left out of n, the number of trials of a round",
        "of n trials n // reduction_factor go on, whatever their losses",
    ),
    "the worst go on": ("others go on than should: the worst ones", "lower is better"),
    "the first go on": (
        "others go on than should: the first of the list, whatever their losses",
        "rank the trials of a round by its losses",
    ),
    "the lowest so far": (
        "others go on than should: a trial goes on by the lowest loss that it ever had, not by that of this round",
        "rank the trials of a round by its losses",
    ),
    "rounded up": (
        "too many go on: n / reduction_factor is rounded up",
        "of n trials n // reduction_factor go on, at least 1",
    ),
    "rounded": (
        "too many go on: n / reduction_factor is rounded to the nearest",
        "of n trials n // reduction_factor go on, at least 1",
    ),
}


def check_successive_halving(job: Job) -> None:
    """5.3: who goes on, for how many steps, and a bill that holds every step."""
    paid = unhalved = 0
    searches = draw_searches(job.rng)
    for search in searches:
        plan = halve(search)
        # A search that overspends is let go on for a while: what it does says why.
        bill = Bill(search.train, most_steps=4 * search.budget, says=_NO_BUDGET)
        answer = _search(job, search, bill)
        if isinstance(answer, Raised):
            _require_no_refusal(job, search, bill, answer)
        spent = [bill.steps.get(key_of(config), 0) for config in search.configs]
        _require_rounds(job, search, spent, plan)
        require_bill(job, answer, spent)
        require_winner(job, answer, search, plan)
        paid += sum(spent)
        unhalved += len(spent) * max(spent)
    job.counts["steps_paid"], job.counts["steps_without_halving"] = paid, unhalved
    for search in draw_ties(job.rng, searches[0]):
        _require_ties(job, search)
    for number, search in enumerate(draw_searches(job.rng)[:3]):
        first = len(search.configs) * search.min_steps
        for budget in (first - 1,) if number else (first - 1, search.min_steps, 0):
            _require_refusal(job, search, budget)


def _search(job: Job, search: Search, bill: Bill) -> Any:
    return converse(
        job,
        bill.pay,
        may_raise=True,
        configs=search.configs,
        min_steps=search.min_steps,
        reduction_factor=search.factor,
        max_total_steps=search.budget,
    )


def _require_no_refusal(job: Job, search: Search, bill: Bill, raised: Raised) -> None:
    first = len(search.configs) * search.min_steps
    job.require(
        raised.error != "ValueError" or bool(bill.total),
        expected=f"a search: round 1 takes {first} steps, and {search.budget} may be spent",
        got="ValueError",
        likely="a budget that the first round fits into exactly is refused"
        if first == search.budget
        else "a budget that has room for the first round is refused",
        look="number of trials × min_steps, against max_total_steps: may it be as much?",
    )
    _require_order(job, raised)
    raise_again(job)


def _require_order(job: Job, raised: Raised) -> None:
    job.require(
        "'dict' and 'dict'" not in raised.message,
        expected="a search in which losses may be equal",
        got=f"{raised.error}: {raised.message}",
        likely="what decides between equal losses cannot be compared: configurations have no order",
        look="`min` and `sorted` of places, by a key that is the loss alone",
    )


def _require_rounds(job: Job, search: Search, spent: list[int], plan: dict[str, Any]) -> None:
    fewer = [steps for steps in spent if steps < search.min_steps]
    by_values = [
        len(spent) - len({tuple(order(config.values())) for config in search.configs})
        for order in (list, sorted)
    ]
    job.require(
        not fewer,
        expected=f"a first round in which all {len(spent)} trials train {search.min_steps} steps",
        got=f"{len(fewer)} trials with fewer",
        likely="configurations are told apart by their values alone: the same ones under other names are another trial"
        if len(fewer) in by_values and not any(fewer)
        else "different budgets: trials are compared before all of them have had the same steps; or configurations "
        "with the same values, or nearly the same, share one entry, and so its steps",
        look="finish a round, then compare; keep what belongs to a trial by its place in the list",
    )
    if spent == plan["spent"]:
        return
    likely, look = _why_other_rounds(search, spent, plan)
    raise failure(
        expected=f"steps of the trials, most first: {_shown(plan['spent'])}",
        got=_shown(spent) + (", but of other trials" if sorted(spent) == sorted(plan["spent"]) else ""),
        likely=likely,
        look=look,
    )


def _why_other_rounds(search: Search, spent: list[int], plan: dict[str, Any]) -> tuple[str, str]:
    named = name_the_mistake(
        {mistake: mistake for mistake in _ROUNDS},
        twin=lambda mistake: halve(search, mistake)["spent"],
        is_same=lambda steps: bool(steps == spent),
    )
    lengths = [search.min_steps * search.factor**number for number in range(12)]
    added_up = {sum(lengths[: number + 1]) for number in range(12)}
    if named:
        return _ROUNDS[named]
    if set(spent) <= added_up and not set(spent) <= set(lengths):
        return (
            "each round pays for its whole length again; `train` goes on, so only the difference is due",
            "a trial that has had 4 steps and should have 12 needs 8 more",
        )
    if not set(spent) <= set(lengths):
        return (
            "rounds of other lengths than asked for",
            "after each round a trial has had reduction_factor times as many steps in all",
        )
    if len(plan["rounds"][-1]) == 1 and spent.count(max(spent)) == 1 and max(spent) > max(plan["spent"]):
        return _ALONE
    if sum(spent) > search.budget:
        return _ROUNDS["no budget"]
    if all(got <= wanted for got, wanted in zip(spent, plan["spent"], strict=True)):
        return (
            "the search ends although the next round fits into the budget",
            "the last round is the one in which a single trial trains alone",
        )
    return (
        "others go on than should: worse ones, one whose loss is NaN, too many or too few",
        "lower is better; NaN is the worst; of n trials n // reduction_factor go on, at least 1",
    )


def _shown(steps: list[int]) -> str:
    return ", ".join(f"{steps.count(n)} × {n}" for n in sorted(set(steps), reverse=True))


def _require_ties(job: Job, search: Search) -> None:
    """Where all are equal, or all have diverged, any of them will do; and nothing is left from the search before."""
    num, plan = len(search.configs), halve(search)
    is_broken = any(math.isnan(search.loss(place, search.min_steps)) for place in range(num))
    bill = Bill(search.train, most_steps=4 * search.budget, says=_NO_BUDGET)
    answer = _search(job, search, bill)
    spent = [bill.steps.get(key_of(config), 0) for config in search.configs]
    if isinstance(answer, Raised):
        _require_order(job, answer)
        job.require(
            bill.total <= num * search.min_steps and not is_broken,
            expected="a search in which all losses of the last round may be NaN",
            got=f"{answer.error}: {answer.message}",
            likely="there is nothing to choose from where the whole last round diverged",
            look="what is left of a round without its diverged trials?",
        )
        raise_again(job)
    job.require(
        bill.total >= num * search.min_steps,
        expected=f"{num * search.min_steps} steps in the first round of a second search over the same configurations",
        got=f"{bill.total} in all",
        likely="what an earlier search has trained is kept for the next, whose trials are other ones",
        look="keep nothing outside the function",
    )
    job.require(
        sorted(spent) == sorted(plan["spent"]),
        expected=f"where losses are equal or NaN, steps of the trials, most first: {_shown(plan['spent'])}",
        got=_shown(spent),
        likely="too few go on where most trials have diverged: n // reduction_factor of them do, whatever their losses"
        if is_broken and sum(spent) < sum(plan["spent"])
        else "too many or too few go on where losses are equal: it is n // reduction_factor of them, any",
        look="sort, then take the first ones; do not compare with the loss of the last that goes on",
    )
    require_bill(job, answer, spent)
    best, value = answer["best"], answer["value"]
    job.require(
        isinstance(best, int) and 0 <= best < num and spent[best] == max(spent),
        expected="as best one of the last round, though all of them have diverged",
        got=f"{str(best)[:80]}",
        likely="no trial of the last round is returned where no loss is below infinity",
        look="begin with the first of the round as the best",
    )
    job.require(
        is_number(value) and (math.isnan(value) or value == math.inf),
        expected="value: NaN or inf, as the whole last round diverged",
        got=f"{str(value)[:80]}",
        likely="the loss of an earlier round, such as its lowest: that is another model than the one at hand",
        look="the loss that the last call of `train` gave for it",
    )


def _require_refusal(job: Job, search: Search, budget: int) -> None:
    search.budget = budget
    bill = Bill(search.train, most_steps=1000 + search.budget, says=_NO_BUDGET)
    answer = _search(job, search, bill)
    job.require(
        answer == Raised("ValueError") and bill.total == 0,
        expected="ValueError, before anything is trained, where the first round takes "
        f"{len(search.configs) * search.min_steps} steps and {budget} may be spent",
        got=f"{bill.total} steps trained"
        if bill.total
        else answer.error
        if isinstance(answer, Raised)
        else f"{str(answer)[:80]}",
        likely="a budget that cannot be kept is passed over in silence, or found out only after training",
        look="number of trials × min_steps, against max_total_steps",
    )
