"""Harness of 2.1: the choice of a precision."""

from __future__ import annotations

from typing import Any

from autograder.lessons.checking.harness_shared import learner


def resolve_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's answers to requests on machines, one after the other, and how often each of them measured.

    An answer is read when it is given, and once more when all are: `is_kept` where it is still the same.
    """
    measure = _Measure()
    found = [_resolve_once(measure, **case) for case in cases]
    return [answer | {"is_kept": answer["answer"] == _plain(given)} for answer, given in found]


class _Measure:
    """The same function in all calls, which finds another gain in each."""

    gain, calls = 0.0, 0

    def __call__(self) -> float:
        self.calls += 1
        return self.gain


def _resolve_once(
    measure_gain: _Measure, requested: str, facts: dict[str, Any], gain: float
) -> tuple[dict[str, Any], Any]:
    measure_gain.gain, measure_gain.calls = gain, 0
    found: dict[str, Any] = {"error": "", "is_value_error": False, "said": ""}
    handed, given = dict(facts), None
    try:
        given = learner(requested, handed, measure_gain)
    except Exception as error:  # which one, and whether it is right to raise any, the check says
        found = {
            "error": type(error).__mro__[0].__name__,
            "is_value_error": isinstance(error, ValueError),
            "said": str(error),
        }
    return found | {
        "answer": _plain(given),
        "calls": measure_gain.calls,
        "is_changed": handed != facts,
    }, given


def _plain(answer: Any) -> dict[str, Any]:
    found = answer if isinstance(answer, dict) else {}
    kept = {key: found[key] for key in ("precision", "needs_scaler", "reason") if key in found}
    return {key: value for key, value in kept.items() if isinstance(value, str | bool)}
