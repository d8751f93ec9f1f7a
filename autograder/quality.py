"""Where the mathematics may change, speed must not be bought with accuracy: paired-seed non-inferiority."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from autograder.job import Job, Worker

# A first look at 3 seeds lets nearly every right solution go. Only what looks worse is looked at again, on 9.
# The pairs are (seeds so far, z): a solution exactly at the margin is failed in fewer than one case in a thousand.
LOOKS = ((3, 2.33), (9, 3.09))


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

    Both train on the same secret seeds. With few seeds only a clear loss is told from noise; the reason says how
    much noise was allowed.
    """
    workers = (job.learner(), job.worker("baseline", baseline))
    differences: list[float] = []
    for num_seeds, z in LOOKS:
        while len(differences) < num_seeds:
            job.progress("Comparing validation accuracy with the baseline's", len(differences) / num_seeds)
            own, theirs = _train_both(workers, function, job.seed(), arguments)
            differences.append(own - theirs)
        mean, slack = float(np.mean(differences)), z * spread / math.sqrt(num_seeds)
        if mean >= -(margin + slack):
            break
    job.counts["accuracy_difference_points"] = round(mean, 2)
    job.require(
        mean >= -(margin + slack),
        expected=f"a validation accuracy within {margin:g} points of the baseline's "
        f"({num_seeds} paired seeds, whose noise allows {slack:.1f} more)",
        got=f"{mean:+.1f} points",
        likely=likely,
        look=look,
    )


def _train_both(
    workers: tuple[Worker, Worker], function: str, seed: int, arguments: dict[str, Any]
) -> tuple[float, float]:
    """Accuracies of both workers on one seed. Nothing is timed, so both train at once."""

    def train(worker: Worker) -> float:
        return float(worker.call(function, seed=seed, seconds=120.0, **arguments))

    with ThreadPoolExecutor(len(workers)) as threads:
        own, theirs = threads.map(train, workers)
    return own, theirs
