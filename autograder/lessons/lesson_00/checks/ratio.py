"""The check of the start page's exercise."""

from __future__ import annotations

import math

from autograder.engine import Job

_OF_ERRORS = {
    "": "a duration of zero or less is not refused",
    "ZeroDivisionError": "a duration of zero or less is not refused, and Python itself stumbles over it",
    "AssertionError": "an `assert` refuses it: that raises AssertionError, and `python -O` leaves it out",
}
LOOK = "read the docstring of `speedup` again: which time goes on top?"


def check_speedup(job: Job) -> None:
    """0.1: baseline time over candidate time, on secret durations."""
    pairs = [[float(a), float(b)] for a, b in 10 ** job.rng.uniform(-3.0, 3.0, size=(20, 2))]
    pairs += [[pairs[0][0]] * 2, [float(job.rng.integers(2, 9)), 1.0]]
    _require_ratios(job, pairs)
    # From what a clock can hardly tell apart to what nobody waits for: a duration is refused for its sign alone.
    tiny, huge = (float(number) for number in job.rng.uniform([1e-12, 1e6], [1e-10, 1e9]))
    raised = str(job.learner().call("raised_on", baseline=tiny, candidate=tiny / 2))
    job.require(
        raised != "ValueError",
        expected=f"speedup({tiny:.4g}, {tiny / 2:.4g}) = 2",
        got="a ValueError",
        likely="a short duration is refused as if it were zero",
        look="which durations does the docstring name?",
    )
    _require_ratios(job, [[tiny, tiny / 2], [pairs[0][0], tiny], [huge, huge / 3], [tiny, huge]])
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
        raised = str(job.learner().call("raised_on", baseline=baseline, candidate=candidate))
        job.require(
            raised == "ValueError",
            expected=f"a ValueError for speedup({baseline:g}, {candidate:g})",
            got=f"{raised}, which is another error" if raised else "no error",
            likely=_OF_ERRORS.get(raised, ""),
            look="test both durations before you divide",
        )


def _require_ratios(job: Job, pairs: list[list[float]]) -> None:
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
