"""The check of exercise 6.6: two processes train what one trains, and faster."""

from __future__ import annotations

from typing import Any

from autograder.engine import APPLIES_FROM, CheckFailed, Inconclusive, Job, measure_speedup
from autograder.engine.timing import num_cores
from autograder.lessons.checking import require_equal
from autograder.lessons.lesson_06 import references
from autograder.lessons.lesson_06.checks.common import SECONDS, require_together

MAX_CORES = 2.4  # two processes of one thread, and a little for what carries the gradients


def check_train_in_parallel(job: Job) -> None:
    """6.6: the weights of one process, half the samples on each rank, and 1.3× the samples per second."""
    job.talks = True
    arguments = {"seed": job.seed(), "num_steps": 5}
    baseline = job.worker("baseline", job.baseline)
    alone = baseline.call("parallel_segment", seconds=SECONDS, **arguments)
    together = job.learner().call("parallel_segment", seconds=SECONDS, **arguments)
    _require_same_training(job, alone, together)
    job.counts["samples_of_rank_0"], job.counts["samples_of_rank_1"] = together["rows"]
    # Of the reference `workbook calibrate` wants the time, whatever it is.
    is_reference = job.source == references.TRAIN_IN_PARALLEL
    if num_cores() < 2 and not is_reference:
        job.reference_speedup = 1.0
    try:
        measure_speedup(
            job,
            function="parallel_segment",
            max_cores=MAX_CORES,
            compare=lambda a, b: _require_same_training(job, a, b),
            likely="the work is shared, but the ranks wait: for each other's turns, or for many small messages",
            look="how often do the ranks meet in a step, and what does each do meanwhile?",
        )
    except CheckFailed:
        if job.speed is not None:
            _require_two_whole_cores(job)
        raise


def _require_two_whole_cores(job: Job) -> None:
    """A clock that says "too slow" is believed only where two processes that share nothing hardly slow each other.

    In CPU time, so that what else the machine does is left out: half cores and a narrow memory bus show, load does not.
    """
    worker = job.worker("baseline", job.baseline)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for processes in (1, 2, 2, 1):
        arguments: dict[str, Any] = {"seed": job.seed(), "processes": processes}
        worker.call("parallel_segment", num_steps=1, **arguments)
        start = worker.cpu_seconds()
        worker.call("parallel_segment", seconds=SECONDS, num_steps=20, **arguments)
        seconds[processes].append((worker.cpu_seconds() - start) / processes)
    capacity = 2 * sum(seconds[1]) / sum(seconds[2])
    job.conditions["two_processes_side_by_side"] = capacity
    if capacity < APPLIES_FROM * job.bar:
        raise Inconclusive(
            f"The clock could not decide: two processes that share nothing reach {capacity:.2f}× of one here, so no "
            f"solution could show {job.bar:g}× clearly: the second core seems to be half of the first. Run "
            "`workbook calibrate`, which moves the points to counts on such a machine. The points that need no clock "
            "are yours."
        )


def _require_same_training(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    require_together(job, learner | {"ranks": []})
    total = sum(baseline["rows"])
    shares = learner["rows"]
    job.require(
        sum(shares) == total
        and len(set(learner["steps"])) == 1
        and learner["steps"] == baseline["steps"] * 2,
        expected=f"{total} samples on all ranks together, in {baseline['steps'][0]} optimizer steps on each",
        got=f"{shares} samples, {learner['steps']} steps",
        likely="no sharing: every rank computes the whole batch"
        if min(shares) >= total
        else "samples are dropped or repeated where a batch does not divide evenly, or steps are left out",
        look="`tensor[rank::world_size]` gives each row to one rank",
    )
    job.require(
        max(shares) <= 0.6 * total,
        expected="about half of the samples on each rank",
        got=f"{shares}",
        likely="one rank does most of the work, and the other waits for it",
        look="deal the rows of every batch out in turn",
    )
    job.require(
        learner["largest_difference"] <= 1e-4,
        expected="the same weights on both ranks",
        got=f"a difference of {learner['largest_difference']:.3g}",
        likely="gradients are not exchanged: each rank trains a model of its own",
        look="DDP, or an all-reduce of each gradient before the step",
    )
    require_equal(
        job,
        learner["weights"],
        baseline["weights"],
        dtype="float32",
        what="weights after training as in one process",
        likely="loss not rescaled: the mean of the ranks' means is not the mean of an uneven batch",
        look="the last batch is odd on purpose; divide by its rows over all ranks",
    )
