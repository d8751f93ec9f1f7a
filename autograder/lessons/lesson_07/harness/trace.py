"""Harness of 7.1: the learner's reading of traces that the check made."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers


def breakdowns_of(
    traces: list[list[dict[str, Any]]], numbers_of_warmup_steps: list[int]
) -> list[dict[str, Any]]:
    """The learner's breakdown of each trace, and whether it left the events as they were."""
    return [
        _breakdown_of(events, number) for events, number in zip(traces, numbers_of_warmup_steps, strict=True)
    ]


def _breakdown_of(events: list[dict[str, Any]], num_warmup_steps: int) -> dict[str, Any]:
    before = repr(events)
    found = learner(events, num_warmup_steps)
    answer: dict[str, Any] = {"is_no_dict": "", "is_unchanged": repr(events) == before}
    if not isinstance(found, dict):
        return answer | {"is_no_dict": f"but a {type(found).__name__}"}
    for part in ("host", "device"):
        if not isinstance(found.get(part), dict):
            return answer | {"is_no_dict": f"under {part!r}"}
        answer[part] = numbers(found[part])
    return answer | {"flat": numbers({k: v for k, v in found.items() if k not in ("host", "device")})}
