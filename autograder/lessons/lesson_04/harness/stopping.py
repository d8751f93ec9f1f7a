"""Harness of 4.3: sequences of metrics."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner


def follow_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell an object of the learner's class each case's validations. All objects are there at once, and take turns.

    One that says stop hears no more, but for `after_stop` at the very end; after two of those its state is put back
    into another: "attributes" and "put_back" are what the two say then. Its state goes in and comes out as JSON;
    "changed" says whether what went in or came out is another state at the very end, or metrics are others. What is
    `before` it hears before its state goes in.
    """
    stoppers = [_new(case["settings"]) for case in cases]
    given = [case["state"] and json.loads(case["state"]) for case in cases]
    for stopper, case, state in zip(stoppers, cases, given, strict=True):
        for values in case["before"]:
            stopper.update(dict(values), 10**5)
        if state is not None:
            stopper.load_state_dict(state)
    answers: list[list[bool | str]] = [[] for _ in cases]
    are_changed = [False for _ in cases]
    for number in range(max(len(case["metrics"]) for case in cases)):
        for index, (stopper, case, said) in enumerate(zip(stoppers, cases, answers, strict=True)):
            if number < len(case["metrics"]) and True not in said:
                metrics = dict(case["metrics"][number])
                said.append(_as_bool(stopper.update(metrics, case["steps"][number])))
                are_changed[index] |= repr(metrics) != repr(case["metrics"][number])
    found = []
    for stopper, case, state, said, is_changed in zip(
        stoppers, cases, given, answers, are_changed, strict=True
    ):
        taken = stopper.state_dict()
        answer: dict[str, Any] = {
            "answers": said,
            "best": _as_number(stopper.best),
            "best_step": _as_number(stopper.best_step),
            "num_bad": _as_number(stopper.num_bad),
            "state": _as_json(taken),
        }
        later = []
        for values in case["after_stop"]:
            later.append((_as_bool(stopper.update(dict(values), 10**6)), _as_number(stopper.num_bad)))
            if len(later) == 2:  # its count may be beyond its patience by then
                answer |= {
                    "attributes": _attributes(stopper),
                    "put_back": _of_another(stopper, case["settings"]),
                }
        answer |= {"after_stop": [said for said, _ in later], "bad_after_stop": [bad for _, bad in later]}
        changed = {
            "given": case["state"] != (state and _as_json(state)),
            "taken": answer["state"] != _as_json(taken),
            "metrics": is_changed,
        }
        found.append(answer | {"changed": [name for name, is_so in changed.items() if is_so]})
    return found


def _attributes(stopper: Any) -> list[float | str | None]:
    return [_as_number(stopper.best), _as_number(stopper.best_step), _as_number(stopper.num_bad)]


def _of_another(stopper: Any, settings: dict[str, Any]) -> list[float | str | None] | None:
    """What a new object says at once when it has the state of this one; None where JSON cannot hold that."""
    state, other = _as_json(stopper.state_dict()), _new(settings)
    if state is None:
        return None
    other.load_state_dict(json.loads(state))
    return _attributes(other)


def _new(settings: dict[str, Any]) -> Any:
    """An object with these settings; where patience is odd they are given in their order, without names."""
    order = ("monitor", "mode", "patience", "min_delta")
    is_by_order = len(settings) == len(order) and settings["patience"] % 2 == 1
    return learner(*(settings[name] for name in order)) if is_by_order else learner(**settings)


def _as_bool(answer: Any) -> bool | str:
    """True or False, also NumPy's; of anything else, what it is."""
    return bool(answer) if isinstance(answer, bool | np.bool_) else type(answer).__name__


def _as_number(value: Any) -> float | str | None:
    """A number or None; of anything else, what it is."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return type(value).__name__


def _as_json(state: Any) -> str | None:
    try:
        return json.dumps(state)
    except (TypeError, ValueError):
        return None
