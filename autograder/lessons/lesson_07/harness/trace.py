"""Harness of 7.1: the learner's reading of traces that the check made."""

from __future__ import annotations

from numbers import Number
from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers


def breakdowns_of(traces: list[list[dict[str, Any]]], calls: list[list[int]]) -> list[dict[str, Any]]:
    """The learner's breakdown in each call, of a trace's index and a number of warm-up steps, and whether it left the
    events as they were. Also, after the last call, whether it is still what it was.

    One list holds the events of one trace after the other: who knows it again by its `id` is mistaken.
    """
    events: list[dict[str, Any]] = []
    found = []
    for index, num_warmup_steps in calls:
        events[:] = traces[index]
        found.append(_read(events, num_warmup_steps))
    return [answer | {"is_own": repr(breakdown) == text} for breakdown, text, answer in found]


def _read(events: list[dict[str, Any]], num_warmup_steps: int) -> tuple[Any, str, dict[str, Any]]:
    before = repr(events)
    found = learner(events, num_warmup_steps)
    return found, repr(found), _parts(found) | {"is_unchanged": repr(events) == before}


def _parts(found: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {"is_no_dict": ""}
    if not isinstance(found, dict):
        return answer | {"is_no_dict": f"but a {type(found).__name__}"}
    for part in ("host", "device"):
        if not isinstance(found.get(part), dict):
            return answer | {"is_no_dict": f"under {part!r}"}
        answer[part] = true_numbers(found[part])
    return answer | {"flat": true_numbers({k: v for k, v in found.items() if k not in ("host", "device")})}


def true_numbers(report: dict[str, Any]) -> dict[str, float]:
    """What is a number: no text that reads like one, and no tensor."""
    return numbers({key: value for key, value in report.items() if isinstance(value, Number)})
