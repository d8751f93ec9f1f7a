"""What a search of 5.3 reports: the bill, and the winner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake, require_keys
from autograder.lessons.lesson_05.checks.halving_plan import Search, halve

_REPORTS: Mapping[str, str] = {
    "NaN in the minimum": "NaN is taken for the lowest: it is neither smaller nor larger than anything",
    "lowest of all rounds": "losses after different budgets are compared, or the best of an earlier round is returned: "
    "the last round alone decides",
    "place among the last": "the place counts the survivors alone",
}


def require_bill(job: Job, answer: Any, spent: list[int]) -> None:
    job.require(
        isinstance(answer, dict),
        expected="a dict with best, value, num_steps and total_steps",
        got=f"a {type(answer).__name__}",
        likely="the result is returned as something else, or not at all",
        look="the docstring lists the keys",
    )
    require_keys(job, answer, ("best", "value", "total_steps", "num_steps"), what="a result")
    total, steps = answer["total_steps"], answer["num_steps"]
    job.require(
        isinstance(total, int) and total == sum(spent),
        expected=f"total_steps = {sum(spent)}, as billed",
        got=f"{str(total)[:80]}",
        likely="the steps of all trials are not added up to one number"
        if not is_number(total)
        else "the right sum, but a float"
        if total == sum(spent)
        else "pruned trials are counted as free"
        if total < sum(spent)
        else "steps that are counted twice, or the budget instead of the bill",
        look="add up at the one place where `train` is called",
    )
    job.require(
        isinstance(steps, list) and steps == spent and all(isinstance(n, int) for n in steps),
        expected="num_steps: a list of ints, the steps of each trial in the order of `configs`, pruned ones too",
        got=f"{str(steps)[:80]}",
        likely="right numbers, but no list of ints"
        if not isinstance(steps, list) or steps == spent
        else "pruned trials are left out, or the list is in another order",
        look="one place for each configuration, from the beginning",
    )


def require_winner(job: Job, answer: dict[str, Any], search: Search, plan: dict[str, Any]) -> None:
    best, value = answer["best"], answer["value"]
    likely = name_the_mistake(
        _REPORTS,
        twin=lambda mistake: halve(search, mistake)["best"],
        is_same=lambda place: bool(place == best),
    )
    job.require(
        isinstance(best, int) and not isinstance(best, bool) and best == plan["best"],
        expected="as best the place, in `configs`, of the lowest loss of the last round",
        got=f"{str(best)[:80]}",
        likely=likely or "it is no place in `configs`, or another than that of the lowest loss",
        look="compare only what has had the same number of steps",
    )
    number = range(len(plan["rounds"]) - 1)
    earlier = [search.loss(plan["best"], search.min_steps * search.factor**n) for n in number]
    job.require(
        is_number(value) and math.isclose(value, plan["value"], rel_tol=1e-12),
        expected=f"value = {plan['value']:.6g}, its loss after its last step",
        got=f"{str(value)[:80]}",
        likely="the loss of an earlier round, such as its lowest: that is another model than the one at hand"
        if value in earlier
        else "the loss of another trial, or another number than `train` gave",
        look="the loss that the last call of `train` gave for it",
    )


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
