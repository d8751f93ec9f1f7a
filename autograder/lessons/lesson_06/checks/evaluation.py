"""The check of exercise 6.5: an evaluation over ranks, exact on uneven shards."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import require_report
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import SECONDS, require_together

KEYS = ("loss", "accuracy", "num_samples")


def check_evaluate(job: Job) -> None:
    """6.5: the numbers of one process on all samples, the same on every rank, whatever the shards."""
    job.talks = True
    for rows in ([[12, 12, 12, 2], [5]], [[7, 3], [], [9]]):
        arguments: dict[str, Any] = {"seed": job.seed(), "rows": rows}
        answer = job.learner().call("evaluated", seconds=SECONDS, **arguments)
        twin = job.twin(baselines.nothing(job.entry)).call("evaluated_alone", **arguments)
        ranks = require_together(job, answer)
        for rank, seen in enumerate(ranks):
            job.require(
                seen["num_training"] == 0 and seen["left_training"],
                expected="evaluation mode while the model is measured, and training mode again afterwards",
                got="training mode while it is measured"
                if seen["num_training"]
                else "evaluation mode afterwards",
                likely="`model.eval()` is missing, or the mode that the model came in is not put back",
                look="exercise 1.4 of lesson 01 does both",
            )
            report, loss = seen["report"], seen["report"].get("loss", math.nan)
            likely = "another number is summed over the ranks, or it is divided before it is summed"
            if math.isclose(loss, twin["mean_of_rank_means"], rel_tol=1e-4):
                likely = "mean of rank means: a rank with few samples weighs as much as one with many"
            elif any(math.isclose(loss, own, rel_tol=1e-4) for own in twin["own"]):
                likely = f"rank {rank} reports its own shard: nothing was exchanged"
            elif rank:  # rank 0's are right
                likely = "only rank 0 knows the result: the others have what `reduce` has left there"
            require_report(
                job,
                report,
                twin,
                dict.fromkeys(KEYS, likely),
                where=f" on rank {rank}",
                look="sums and counts cross the ranks; the division comes last",
            )
    job.counts["ranks_tried"] = 3
