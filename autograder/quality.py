"""Where the mathematics may change, speed must not be bought with accuracy: paired-seed non-inferiority."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from autograder.job import Job, Worker

NUM_SEEDS = 3
Z = 2.33  # one-sided 1 %: how seldom a solution exactly at the margin is failed


def require_no_worse(
    job: Job,
    *,
    baseline: str,
    function: str,
    arguments: dict[str, Any],
    margin: float,
    spread: float,
    likely: str,
    look: str,
) -> None:
    """Fail when the learner's accuracy is below the baseline's by more than `margin` points, beyond the noise.

    Args:
        baseline: source of the baseline, under the learner's name.
        function: harness function of one training: `function(seed, **arguments) -> accuracy in points of 100`.
        spread: standard deviation of the difference of a right solution over seeds, in points, measured before.

    Both train on the same secret seeds, side by side, since nothing is timed here. With few seeds only a clear
    loss is told from noise; the reason says how much noise was allowed.
    """
    workers = (job.learner(), job.worker("baseline", baseline))
    differences = []
    for number in range(NUM_SEEDS):
        job.progress("Comparing validation accuracy with the baseline's", number / NUM_SEEDS)
        seed = job.seed()

        def train(worker: Worker, seed: int = seed) -> float:
            return float(worker.call(function, seed=seed, seconds=120.0, **arguments))

        with ThreadPoolExecutor(len(workers)) as threads:
            own, theirs = threads.map(train, workers)
        differences.append(own - theirs)
    mean = float(np.mean(differences))
    slack = Z * spread / math.sqrt(NUM_SEEDS)
    job.counts["accuracy_difference_points"] = round(mean, 2)
    job.require(
        mean >= -(margin + slack),
        expected=f"a validation accuracy within {margin:g} points of the baseline's "
        f"({NUM_SEEDS} paired seeds, whose noise allows {slack:.1f} more)",
        got=f"{mean:+.1f} points",
        likely=likely,
        look=look,
    )
