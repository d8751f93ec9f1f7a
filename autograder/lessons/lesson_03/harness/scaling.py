"""Harness of 3.4: a plan for a larger batch."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner


def plan_once(**arguments: Any) -> dict[str, Any]:
    """What is in the learner's plan, as numbers, and of what kind the plan is."""
    plan = learner(**arguments)
    if not isinstance(plan, Mapping):
        return {"kind": type(plan).__name__}
    found: dict[str, Any] = {"kind": "dict"}
    for name, value in plan.items():
        if isinstance(value, Real):
            found[str(name)] = float(value)
        elif name == "learning_rates" and not isinstance(value, str | Mapping | None):
            found["learning_rates"] = np.array([float(rate) for rate in value])
    return found
