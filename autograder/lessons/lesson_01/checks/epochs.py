"""The check of exercise 1.6: the whole epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.engine.told import ToldOfCall
from autograder.lessons.checking import require_no_worse
from autograder.lessons.lesson_01.checks.short_epochs import require_right_steps
from autograder.lessons.lesson_01.checks.steps import ELSEWHERE, likely_slow

# Standard deviation, in points, over seeds, of (accuracy of a right solution - accuracy of the naive loop):
# `python -m tests.benchmarks.quality_spread`; of single runs on few seeds, so the estimate itself is rough.
QUALITY_SPREAD = 3.5


def check_fast_epoch(job: Job) -> None:
    """1.6: the same samples in the same number of steps, as good a model, at 3× the naive loop's speed."""
    job.corpus()
    epoch = require_right_steps(job)
    _require_quality(job)
    looked: list[bool] = []
    likely = likely_slow(epoch)
    measure_speedup(
        job,
        function="epoch_segment",
        compare=lambda a, b: _require_same_work(job, a, b, looked),
        likely=likely,
        shows_idea=likely == ELSEWHERE,
        look="time each station alone: fetch, collate, forward, backward, step. Mend the slowest, measure again.",
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


# The distance to the weights of the replayed steps, as a share of the way from the fresh weights. Right loops were
# within 0.0002 of it (the naive one the farthest, for its padding); every second batch left out was 0.65 to 1 away.
MOST_DEVIATION = 0.05
# A replay costs about as much as a segment; the loop cannot know which segments will be looked at.
LOOKS = 0.5


def _require_same_work(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], looked: list[bool]
) -> None:
    """Compare a segment's counts; of the first and of some more, repeat the learner's steps in a worker of ours."""
    work, of_naive = _work(learner.get("told", ToldOfCall())), _work(baseline["told"])
    job.require(
        work == of_naive,
        expected="the same rows, tokens and steps as the naive loop: " + _listed(of_naive),
        got=_listed(work),
        likely="under the clock the loop does less than it did before",
        look="does your loop depend on how often it is called, or on the number of samples?",
    )
    if looked and job.rng.random() >= LOOKS:
        return
    looked.append(True)
    trained = [index for batch in learner["batches"] for index in batch]
    job.require(
        sorted(trained) == list(range(len(trained))),
        expected="whole samples in the model, each once",
        got="others, or some of them cut",
        likely="under the clock the loop trains on something else than it did before",
        look="does your loop depend on how often it is called, or on the number of samples?",
    )
    segment = {"seed": baseline["seed"], "num_steps": baseline["num_steps"], "batches": learner["batches"]}
    replay = job.worker("baseline", job.baseline).call("segment_replay", **segment)
    way = np.linalg.norm(replay["after"] - replay["before"])
    deviation = float(np.linalg.norm(learner["weights"] - replay["after"]) / way)
    job.require(
        deviation <= MOST_DEVIATION,
        expected="the weights that the naive loop's steps reach with the same batches",
        got=f"others: they end {deviation:.0%} of the way off",
        likely="under the clock the loop does not train on all that it is given, or not as it did before",
        look="does your loop depend on how often it is called, or on the number of samples?",
    )


def _work(told: ToldOfCall) -> dict[str, int]:
    """Rows and real tokens that went through the model, and the steps of its optimizers that followed."""
    return {
        "rows": sum(counts.num_rows for counts in told.counts),
        "tokens": sum(counts.num_tokens for counts in told.counts),
        "steps": sum(counts.num_optimizer_steps for counts in told.counts),
        "widest": max((counts.max_rows for counts in told.counts), default=0),
    }


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{value} {name}" for name, value in counts.items())
