"""Harness of 7.1: the learner's reading of a trace that the check made."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers


def breakdown_of(events: list[dict[str, Any]], num_warmup_steps: int) -> dict[str, Any]:
    """The learner's breakdown of these events, and whether it left them as they were."""
    before = repr(events)
    found = learner(events, num_warmup_steps)
    if not isinstance(found, dict):
        raise TypeError(f"a dict is needed, not a {type(found).__name__}")
    flat = {k: v for k, v in found.items() if k not in ("host", "device")}
    return {
        "flat": numbers(flat),
        "host": numbers(found.get("host", {})),
        "device": numbers(found.get("device", {})),
        "is_unchanged": repr(events) == before,
    }
