"""Harness of 3.4: plans for a larger batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_03.harness.shared import is_plain


def plans_all(wishes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Plans for one wish after the other, in one process. All are there before the first is read."""
    plans = [learner(**wish) for wish in wishes]
    return [_read(plan) for plan in plans]


def plan_once(**arguments: Any) -> dict[str, Any]:
    return _read(learner(**arguments))


def _read(plan: Any) -> dict[str, Any]:
    """What is in the learner's plan, as numbers, of what kind the plan is, and what in it is of another kind."""
    if not isinstance(plan, Mapping):
        return {"kind": type(plan).__name__}
    found: dict[str, Any] = {"kind": "dict", "odd": {}}
    for name, value in plan.items():
        if name == "learning_rates" and isinstance(value, Iterable) and not isinstance(value, str | Mapping):
            rates = list(value)
            odd = [type(rate).__name__ for rate in rates if not is_plain(rate)]
            if not isinstance(value, list) or odd:
                found["odd"][name] = f"{type(value).__name__} of {odd[0] if odd else 'float'}"
            found["learning_rates"] = np.array([float(rate) for rate in rates])
        elif isinstance(value, Real):
            if not isinstance(value, Integral) or isinstance(value, bool):
                found["odd"][str(name)] = type(value).__name__
            found[str(name)] = float(value)
    return found
