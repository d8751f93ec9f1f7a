"""Harness of 10.3 and 10.4: the winner of the trials, and the report."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers


def chosen(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """The learner's winner among these trials."""
    answer = learner(trials)
    found: dict[str, Any] = numbers({name: answer[name] for name in ("mean", "num_seeds", "num_steps")})
    return found | {"config": {str(key): float(value) for key, value in answer["config"].items()}}


def summarised(run: dict[str, Any]) -> dict[str, Any]:
    """The learner's report of this run."""
    answer = learner(**run)
    return numbers(answer) | {"cost_unit": str(answer.get("cost_unit"))}
