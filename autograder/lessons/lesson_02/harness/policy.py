"""Harness of 2.1: the choice of a precision."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner


def resolve_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's answers to requests on machines, one after the other, and how often each of them measured."""
    return [_resolve_once(**case) for case in cases]


def _resolve_once(requested: str, facts: dict[str, Any], gain: float) -> dict[str, Any]:
    calls: list[float] = []

    def measure_gain() -> float:
        calls.append(gain)
        return gain

    try:
        answer = learner(requested, dict(facts), measure_gain)
    except Exception as error:  # which one, and whether it is right to raise any, the check says
        return {"error": type(error).__mro__[0].__name__, "is_value_error": isinstance(error, ValueError),
                "said": str(error), "answer": {}, "calls": len(calls)}  # fmt: skip
    found = dict(answer) if isinstance(answer, dict) else {}
    kept = {key: found[key] for key in ("precision", "needs_scaler", "reason") if key in found}
    plain = {key: value for key, value in kept.items() if isinstance(value, str | bool)}
    return {"error": "", "is_value_error": False, "said": "", "answer": plain, "calls": len(calls)}
