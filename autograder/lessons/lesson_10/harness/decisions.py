"""Harness of 10.3 and 10.4: the winner of the trials, and the report."""

from __future__ import annotations

import copy
from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers

REPORTED = ("accuracy", "macro_f1", "total_seconds", "cost", "utilisation")


def chosen(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """The learner's winner among these trials; "is_kept": whether they are afterwards what they were.

    "trouble": an error that comes of scores below 0 alone.
    """
    before = copy.deepcopy(trials)
    try:
        found = _winner(trials)
    except Exception as error:
        if any(trial["validation"] >= 0 for trial in before):
            raise
        _winner([trial | {"validation": trial["validation"] + 10} for trial in before])
        return {"trouble": repr(error)[:200], "config": {}, "mean": 0.0}
    return found | {"is_kept": trials == before, "trouble": ""}


def chosen_each(searches: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The learner's winner of each search, with the config as it is; "trouble": the error that it ends with."""
    found = []
    for trials in searches:
        before, trouble = copy.deepcopy(trials), ""
        try:
            answer = learner(trials)
            answer = _numbers(answer, ("mean", "num_seeds", "num_steps")) | {"config": dict(answer["config"])}
        except Exception as error:
            trouble = repr(error)[:200]
            answer = {"config": {"": 0.0}, "mean": 0.0, "num_seeds": 0.0, "num_steps": 0.0}
        found.append(answer | {"is_kept": _is_equal(trials, before), "trouble": trouble})
    return found


def _is_equal(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    return repr(some) == repr(others)  # NaN is not equal to itself


def _numbers(answer: Any, names: tuple[str, ...]) -> dict[str, float]:
    """Those of an answer. Raises TypeError where one is a text."""
    for name in names:
        if isinstance(answer[name], str):
            raise TypeError(f"{name} is a text, {answer[name]!r}: a number is needed")
    return numbers({name: answer[name] for name in names})


def _winner(trials: list[dict[str, Any]]) -> dict[str, Any]:
    answer = learner(trials)
    found: dict[str, Any] = _numbers(answer, ("mean", "num_seeds", "num_steps"))
    return found | {"config": {str(key): float(value) for key, value in answer["config"].items()}}


def summarised_each(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's report of each run."""
    return [summarised(run) for run in runs]


def summarised(run: dict[str, Any]) -> dict[str, Any]:
    """The learner's report of this run; "is_kept": whether that is afterwards what it was."""
    before = copy.deepcopy(run)
    answer = learner(**run)
    if isinstance(answer, dict):
        _numbers(answer, tuple(name for name in answer if name in REPORTED))
    return numbers(answer) | {"cost_unit": str(answer.get("cost_unit")), "is_kept": run == before}
