"""Harness of 3.4: a plan for a larger batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner


def plan_once(**arguments: Any) -> dict[str, Any]:
    """The learner's plan as numbers."""
    plan = learner(**arguments)
    if not isinstance(plan, dict):
        raise TypeError(f"a dict is needed, not a {type(plan).__name__}")
    names = ("micro_batch_size", "grad_accum_steps", "global_batch_size")
    found: dict[str, Any] = {name: int(plan[name]) for name in names if name in plan}
    if "learning_rates" in plan:
        found["learning_rates"] = np.array([float(rate) for rate in plan["learning_rates"]])
    return found
