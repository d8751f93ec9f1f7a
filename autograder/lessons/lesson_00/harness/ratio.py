"""What runs around a learner's solution of the start page in the sandbox."""

from __future__ import annotations

from autograder.lessons.checking.harness_shared import learner


def speedups(pairs: list[list[float]]) -> list[float]:
    """The learner's speedup of each pair of durations."""
    return [learner(baseline, candidate) for baseline, candidate in pairs]


def raised_on(baseline: float, candidate: float) -> str:
    """Which of these errors the learner's function raises on these durations; "" for none. Others go on."""
    try:
        learner(baseline, candidate)
    except ValueError:
        return "ValueError"
    except ZeroDivisionError:
        return "ZeroDivisionError"
    except AssertionError:
        return "AssertionError"
    return ""
