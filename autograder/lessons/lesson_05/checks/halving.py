"""The check of 5.3: successive halving over learning curves that only this process knows, and bills."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import require_keys

Config = dict[str, Any]
RISE = 5.0


def key_of(config: Config) -> tuple[Any, ...]:
    return tuple(sorted(config.items()))


class Bill:
    """Every step that is paid for, by trial. `train(config, num_steps) -> loss` goes on with a trial."""

    def __init__(self, train: Callable[[Config, int], float], *, most_steps: int, says: str) -> None:
        self.train, self.most_steps, self.says = train, most_steps, says
        self.steps: dict[tuple[Any, ...], int] = {}

    @property
    def total(self) -> int:
        return sum(self.steps.values())

    def pay(self, config: Config, num_steps: Any) -> dict[str, Any]:
        """Train and bill. A number of steps that cannot be is told to the learner's code as a ValueError."""
        if not isinstance(num_steps, int) or isinstance(num_steps, bool) or num_steps < 1:
            return {"error": f"num_steps must be a whole number, at least 1; got {num_steps!r}"}
        if not all(isinstance(value, int | float | str) for value in config.values()):
            return {"error": "a configuration holds plain numbers and texts"}
        key = key_of(config)
        self.steps[key] = self.steps.get(key, 0) + num_steps
        if self.total > self.most_steps:
            raise failure(
                expected=f"at most {self.most_steps} training steps in all",
                got=f"{self.total} so far, over {len(self.steps)} trials, and the search goes on",
                likely=self.says,
                look="one counter, beside the one call of `train`",
            )
        return {"loss": self.train(config, num_steps)}


def converse(job: Job, pay: Callable[[Config, Any], dict[str, Any]], **arguments: Any) -> Any:
    """Run the learner's search, answer each of its calls of `train`, and return what the search returns."""
    request = job.learner().call("start_search", **arguments)
    while "answer" not in request:
        request = job.learner().call("go_on", reply=pay(request["config"], request["num_steps"]))
    return request["answer"]


def check_successive_halving(job: Job) -> None:
    """5.3: who goes on, for how many steps, and a bill that holds every step."""
    # Trials, steps of the first round, factor, and the rounds that the budget has room for.
    for num_trials, min_steps, factor, rounds in ((9, 4, 3, 9), (13, 5, 2, 9), (27, 3, 3, 2), (8, 7, 4, 9)):
        curves = _Curves(job.rng, num_trials, min_steps)
        plan = _plan(curves, min_steps, factor, rounds)
        budget = plan["total_steps"] + int(job.rng.integers(min_steps))  # what is left is enough for nothing
        # A search that overspends is let go on for a while: what it does says why.
        bill = Bill(curves.train, most_steps=4 * budget, says="the search does not look at its budget")
        arguments = {"configs": curves.configs, "min_steps": min_steps, "reduction_factor": factor}
        answer = converse(job, bill.pay, max_total_steps=budget, **arguments)
        spent = [bill.steps.get(key_of(config), 0) for config in curves.configs]
        _require_rounds(job, spent, plan, min_steps, factor, budget)
        _require_report(job, answer, spent, plan)
        job.counts["steps_paid"] = sum(spent)
        job.counts["steps_without_halving"] = num_trials * max(spent)
    _require_refusal(job)


class _Curves:
    """A secret learning curve for each configuration. They cross; one shines early and then rises, one diverges."""

    def __init__(self, rng: np.random.Generator, num: int, min_steps: int) -> None:
        self.configs: list[Config] = [
            {"learning_rate": float(10**rate), "weight_decay": float(decay)}
            for rate, decay in zip(rng.uniform(-5, -1, num), rng.uniform(0, 0.1, num), strict=True)
        ]
        self.min_steps = min_steps
        self.floor, self.drop = rng.uniform(0.3, 1.5, size=num), rng.uniform(1.0, 2.0, size=num)
        self.speed = rng.uniform(0.3, 0.9, size=num)
        self.early, self.broken = rng.choice(num, size=2, replace=False).tolist()
        self.steps = [0] * num

    def train(self, config: Config, num_steps: int) -> float:
        keys = [key_of(known) for known in self.configs]
        if key_of(config) not in keys:
            raise failure(
                expected="configurations that are in `configs`",
                got=f"{str(config)[:100]}",
                likely="a configuration was changed on the way, or made anew",
                look="hand the dicts on as they are",
            )
        place = keys.index(key_of(config))
        self.steps[place] += num_steps
        return self.loss(place, self.steps[place])

    def loss(self, place: int, steps: int) -> float:
        if place == self.broken:
            return math.nan
        if place == self.early:  # after the first round lower than anything else ever gets
            return 0.1 + RISE * math.log(max(1.0, steps / self.min_steps))
        return float(self.floor[place] + self.drop[place] * steps ** -self.speed[place])


def _plan(curves: _Curves, min_steps: int, factor: int, rounds: int) -> dict[str, Any]:
    """What halving does with these curves: steps of each trial, and the best of the last round."""
    alive, steps, spent = list(range(len(curves.configs))), min_steps, [0] * len(curves.configs)
    for number in range(1, rounds + 1):
        for place in alive:
            spent[place] = steps
        losses = {place: curves.loss(place, steps) for place in alive}
        ranked = sorted(alive, key=lambda p: losses[p] if math.isfinite(losses[p]) else math.inf)
        if len(alive) == 1 or number == rounds:
            break
        alive, steps = ranked[: max(1, len(alive) // factor)], steps * factor
    return {"spent": spent, "total_steps": sum(spent), "best": ranked[0], "value": losses[ranked[0]]}


def _require_rounds(
    job: Job, spent: list[int], plan: dict[str, Any], min_steps: int, factor: int, budget: int
) -> None:
    job.require(
        min(spent) >= min_steps,
        expected=f"a first round in which all {len(spent)} trials train {min_steps} steps",
        got=f"{sum(steps < min_steps for steps in spent)} trials with fewer",
        likely="different budgets: trials are compared before all of them have had the same steps",
        look="finish a round, then compare",
    )
    if spent == plan["spent"]:
        return
    lengths = [min_steps * factor**number for number in range(12)]
    added_up = {sum(lengths[: number + 1]) for number in range(12)}
    if set(spent) <= added_up and not set(spent) <= set(lengths):
        likely = "each round pays for its whole length again; `train` goes on, so only the difference is due"
        look = "a trial that has had 4 steps and should have 12 needs 8 more"
    elif sum(spent) > budget:
        likely = "pruned trials are counted as free, so that the budget seems to have room for another round"
        look = "what a trial trained before it was pruned stays spent"
    elif sum(spent) < plan["total_steps"] and all(
        got <= wanted for got, wanted in zip(spent, plan["spent"], strict=True)
    ):
        likely = "the search ends although the next round fits into the budget"
        look = "the last round is the one in which a single trial trains alone"
    else:
        likely = "others go on than should: the worst ones, one whose loss is NaN, or too many"
        look = "lower is better; NaN is the worst; of n trials n // reduction_factor go on, at least 1"
    raise failure(
        expected=f"steps of the trials, most first: {_shown(plan['spent'])}",
        got=_shown(spent) + (", but of other trials" if sorted(spent) == sorted(plan["spent"]) else ""),
        likely=likely,
        look=look,
    )


def _shown(steps: list[int]) -> str:
    return ", ".join(f"{steps.count(n)} × {n}" for n in sorted(set(steps), reverse=True))


def _require_report(job: Job, answer: Any, spent: list[int], plan: dict[str, Any]) -> None:
    report = answer if isinstance(answer, dict) else {}
    require_keys(job, report, ("best", "value", "total_steps", "num_steps"))
    job.require(
        report["total_steps"] == sum(spent),
        expected=f"total_steps = {sum(spent)}, as billed",
        got=f"{report['total_steps']}",
        likely="pruned trials are counted as free"
        if report["total_steps"] < sum(spent)
        else "steps that are counted twice",
        look="add up at the one place where `train` is called",
    )
    job.require(
        list(report["num_steps"]) == spent,
        expected="num_steps: the steps of each trial in the order of `configs`, pruned ones too",
        got=f"{str(report['num_steps'])[:80]}",
        likely="pruned trials are left out, or the list is in another order",
        look="one place for each configuration, from the beginning",
    )
    job.require(
        report["best"] == plan["best"],
        expected="as best the place, in `configs`, of the lowest loss of the last round",
        got=f"{str(report['best'])[:80]}",
        likely="losses after different budgets are compared: the lowest loss ever seen wins, or the place counts "
        "the survivors alone",
        look="compare only what has had the same number of steps",
    )
    job.require(
        isinstance(report["value"], int | float)
        and math.isclose(report["value"], plan["value"], rel_tol=1e-6),
        expected=f"value = {plan['value']:.6g}, its loss after its last step",
        got=f"{report['value']}",
        likely="its lowest loss, not its last: that is another model than the one at hand",
        look="the loss that the last call of `train` gave for it",
    )


def _require_refusal(job: Job) -> None:
    curves = _Curves(job.rng, 6, 10)
    bill = Bill(curves.train, most_steps=1000, says="the search does not look at its budget")
    arguments = {"configs": curves.configs, "min_steps": 10, "reduction_factor": 2, "max_total_steps": 59}
    answer = converse(job, bill.pay, may_refuse=True, **arguments)
    job.require(
        answer == "ValueError" and bill.total == 0,
        expected="ValueError, before anything is trained, where the budget is too small for the first round",
        got=f"{bill.total} steps trained" if bill.total else f"{str(answer)[:80]}",
        likely="a budget that cannot be kept is passed over in silence",
        look="number of trials × min_steps, against max_total_steps",
    )
