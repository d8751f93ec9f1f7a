"""What runs around a learner's solution of the start page in the sandbox."""

from __future__ import annotations

from autograder.lessons.checking.harness_shared import learner


def speedups(pairs: list[list[float]]) -> list[float]:
    """The learner's speedup of each pair of durations."""
    return [learner(baseline, candidate) for baseline, candidate in pairs]


def raises_on(baseline: float, candidate: float) -> bool:
    """Whether the learner's function refuses these durations with a ValueError."""
    try:
        learner(baseline, candidate)
    except ValueError:
        return True
    return False
