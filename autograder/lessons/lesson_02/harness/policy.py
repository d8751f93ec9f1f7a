"""Harness of 2.1: the choice of a precision."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner


def resolve_once(requested: str, facts: dict[str, Any], gain: float) -> dict[str, Any]:
    """The learner's answer to one request on one machine, and how often it measured."""
    calls: list[float] = []

    def measure_gain() -> float:
        calls.append(gain)
        return gain

    try:
        answer = learner(requested, dict(facts), measure_gain)
    except ValueError as error:
        return {"refused": str(error), "answer": {}, "calls": len(calls)}
    found = dict(answer) if isinstance(answer, dict) else {}
    kept = {key: found[key] for key in ("precision", "needs_scaler", "reason") if key in found}
    plain = {key: value for key, value in kept.items() if isinstance(value, str | bool)}
    return {"refused": None, "answer": plain, "calls": len(calls)}
