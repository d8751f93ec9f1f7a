"""The check of the start page's exercise."""

from __future__ import annotations

import math

from autograder.engine import Job

LOOK = "read the docstring of `speedup` again: which time goes on top?"


def check_speedup(job: Job) -> None:
    """0.1: baseline time over candidate time, on secret durations."""
    pairs = [[float(a), float(b)] for a, b in 10 ** job.rng.uniform(-3.0, 3.0, size=(20, 2))]
    pairs += [[pairs[0][0]] * 2, [float(job.rng.integers(2, 9)), 1.0]]
    answers = job.learner().call("speedups", pairs=pairs)
    for (baseline, candidate), answer in zip(pairs, answers, strict=True):
        expected = baseline / candidate
        job.require(
            isinstance(answer, int | float) and not isinstance(answer, bool),
            expected="a number",
            got=f"{answer!r}",
            likely="the function does not return what it computed",
            look="is there a `return` on every path?",
        )
        job.require(
            math.isclose(answer, expected, rel_tol=1e-6),
            expected=f"speedup({baseline:.4g}, {candidate:.4g}) = {expected:.4g}",
            got=f"{answer:.4g}",
            likely=_mistake(baseline, candidate, answer),
            look=LOOK,
        )
    long, short = (float(number) for number in job.rng.uniform([2.0, 1e-6], [30.0, 0.1]))
    refused = [
        (0.0, long),
        (long, 0.0),
        (0.0, 0.0),
        (-long, short),
        (short, -long),
        (-long, -short),
        (-short, long),
    ]
    for baseline, candidate in refused:
        job.require(
            bool(job.learner().call("raises_on", baseline=baseline, candidate=candidate)),
            expected=f"a ValueError for speedup({baseline:g}, {candidate:g})",
            got="no ValueError",
            likely="a duration of zero or less is not refused",
            look="test both durations before you divide",
        )


def _mistake(baseline: float, candidate: float, answer: float) -> str:
    if math.isclose(answer, candidate / baseline, rel_tol=1e-6):
        return "the quotient is upside down: a faster candidate must give a number above 1"
    if math.isclose(answer, baseline - candidate, rel_tol=1e-6):
        return "the difference in seconds: a speedup is a quotient and has no unit"
    saved = 1 - candidate / baseline
    if any(math.isclose(answer, s, rel_tol=1e-6) for s in (saved, 100 * saved)):
        return "the share of time saved: half the time is a speedup of 2, not of 0.5 or 50 %"
    if abs(answer - baseline / candidate) <= 0.5:
        return "the quotient is rounded: nobody asked for that, and 1.04 is not 1"
    return "another formula"
