"""What runs around a learner's solution of the start page in the sandbox."""

from __future__ import annotations

from autograder.lessons.checking.harness_shared import learner


def speedups(pairs: list[list[float]]) -> list[float]:
    """The learner's speedup of each pair of durations."""
    return [learner(baseline, candidate) for baseline, candidate in pairs]


def raised_on(baseline: float, candidate: float) -> str:
    """The name of what the learner's function raises on these durations; "" for nothing."""
    try:
        learner(baseline, candidate)
    except ValueError:
        return "ValueError"
    except Exception as error:
        return type(error).__name__
    return ""
