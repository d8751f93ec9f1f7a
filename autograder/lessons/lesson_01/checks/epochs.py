"""The check of exercise 1.6: the whole epoch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import require_no_worse
from autograder.lessons.lesson_01.checks.steps import likely_slow, require_right_steps

# Standard deviation, in points, over seeds, of (accuracy of a right solution - accuracy of the naive loop):
# `python -m tests.benchmarks.quality_spread`; of single runs on few seeds, so the estimate itself is rough.
QUALITY_SPREAD = 3.5


def check_fast_epoch(job: Job) -> None:
    """1.6: the same samples in the same number of steps, as good a model, at 3× the naive loop's speed."""
    job.corpus()
    epoch = require_right_steps(job)
    _require_quality(job)
    learnt: list[float] = []
    spare: list[_Segment] = []
    measure_speedup(
        job,
        function="epoch_segment",
        compare=lambda a, b: _require_same_work(job, a, b, learnt, spare),
        likely=likely_slow(epoch),
        look="time each station alone: fetch, collate, forward, backward, step. Mend the slowest, measure again.",
    )
    # Where the clock is not asked, only the warm-up was looked at: segments too short to tell less from noise.
    if job.speed and _learns_less(job, learnt, spare):
        job.flag(
            f"under the clock the loop lowers the loss by {np.mean(learnt):.0%} of what the naive loop does"
        )


def _require_quality(job: Job) -> None:
    require_no_worse(
        job,
        baseline=job.baseline,
        function="quality",
        arguments={"num_samples": 1200, "num_epochs": 3},
        margin=0.5,
        spread=QUALITY_SPREAD,
        likely="the loop is faster because it learns less: samples, loss or labels are not what they should be",
        look="train both loops on the same seed and compare the loss curves",
    )


# Share of the naive loop's fall of the loss on the samples of a segment. Right solutions reached 0.93 to 1.08 in a
# segment of 72 to 240 samples, loops that left out every second batch 0.74 to 0.89, loops without backward 0.
LEARNT_LESS, LEARNT_NOTHING = 0.88, 0.5
# A look costs as much as a segment; the loop cannot know which segments will be looked at.
LOOKS_PER_BLOCK = 0.5
# A share of one segment spreads by 0.05 to 0.1 over right solutions: a mean of this many, by a third of that.
LOOKS_BEFORE_FLAG = 10
#: What the baseline said of a segment, and the learner's weights after it.
_Segment = tuple[dict[str, Any], np.ndarray]


def _require_same_work(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], learnt: list[float], spare: list[_Segment]
) -> None:
    """Compare a segment's counts, and look at what some of them learnt: into `learnt`, or into `spare` for later."""
    job.require(
        learner["counts"] == baseline["counts"],
        expected="the same rows, tokens and steps as the naive loop: " + _listed(baseline["counts"]),
        got=_listed(learner["counts"]),
        likely="under the clock the loop does less than it did before",
        look="does your loop depend on how often it is called, or on the number of samples?",
    )
    if job.rng.random() < LOOKS_PER_BLOCK / 2:  # a block has two segments
        learnt.append(_share_learnt(job, baseline, learner["weights"]))
        job.require(
            learnt[-1] >= LEARNT_NOTHING,
            expected="a loss that falls on the samples trained on, as with the naive loop",
            got=f"{learnt[-1]:.0%} of that fall",
            likely="under the clock the loop does not train on what it is given",
            look="compare the model's loss on `samples` before and after your loop with that of the naive one",
        )
    elif len(spare) < LOOKS_BEFORE_FLAG:
        spare.append((baseline, learner["weights"]))


def _learns_less(job: Job, learnt: list[float], spare: list[_Segment]) -> bool:
    """Whether the mean share is too small. Where the first looks say so, spared segments are looked at too."""
    if not learnt or np.mean(learnt) >= LEARNT_LESS:
        return False
    while spare and len(learnt) < LOOKS_BEFORE_FLAG:
        learnt.append(_share_learnt(job, *spare.pop()))
    return bool(np.mean(learnt) < LEARNT_LESS)


def _share_learnt(job: Job, baseline: dict[str, Any], weights: np.ndarray) -> float:
    """How far these weights lower the loss, as a share of the baseline's fall; worked out by its worker."""
    segment = {name: baseline[name] for name in ("seed", "num_steps")}
    trusted = job.worker("baseline", job.baseline)
    fresh, theirs, own = (
        float(trusted.call("loss_with", **segment, weights=w)) for w in (None, baseline["weights"], weights)
    )
    return (fresh - own) / (fresh - theirs) if math.isfinite(own) else 0.0


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{value} {name}" for name, value in counts.items())
