"""The check of exercise 6.6: two processes train what one trains, and faster."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from autograder.engine import APPLIES_FROM, CheckFailed, Inconclusive, Job, measure_speedup
from autograder.engine.timing import num_cores
from autograder.lessons.checking import are_equal, name_the_mistake, require_equal, require_left_alone
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import (
    CUT,
    EVALUATED,
    FROM_IDS,
    HIDDEN,
    ROUNDED_AWAY,
    SECONDS,
    require_together,
)

# Shares of all that the weights moved. The order of sums differs by a millionth, messages in half precision by a few
# ten-thousandths, bfloat16 by 1/256; no other mistake is so small.
SAME, ROUNDED = 5e-5, 0.01
ABOUT_HALF = 0.55  # of the samples; of an odd number one rank has one more
MOST = 0.8  # of the parameters: where no gradient is exchanged, nearly all of them differ
MUCH_SLOWER = 0.5  # than one process: with two halves of a core it would be about as fast
MAX_CORES = 2.4  # two processes of one thread, and a little for what carries the gradients

_RANK_MEANS = "loss not rescaled: the mean of the ranks' means is not the mean of an uneven batch"
_MISTAKES = {
    "mean of rank means": _RANK_MEANS,
    "mean of rank means of halves": _RANK_MEANS,
    "mean of rank means of smaller halves": _RANK_MEANS,
    "sum of rank means": "the gradients of the ranks' means are summed: a step is world_size times too long",
    "multiplied twice": "multiplied by the ranks, but nothing divides by them: a step is world_size times too long",
    "divided twice": "divided by the ranks once too often: DDP makes a mean of their gradients",
    "a sum": "a sum over the rows, never divided by their number",
    "a sum by ranks": "a sum over the rows that is divided by ranks, and never by rows",
    "large losses left out": ROUNDED_AWAY,
    "old gradients": "gradients of earlier steps are left in: nothing sets them to zero",
    "gradients from before": "what was in `.grad` before the call goes into the first step",
}


def check_train_in_parallel(job: Job) -> None:
    """6.6: the weights of one process, half the samples on each rank, and 1.3× the samples per second."""
    job.talks = True
    baseline = job.worker("baseline", job.baseline)
    for num_steps, is_odd, kind in ((2, 1, "loud"), (3, 0, "Adam")):
        last_rows = 2 * int(job.rng.integers(1, 4)) + is_odd  # few, so that one row more on one rank shows
        arguments = {"seed": job.seed(), "num_steps": num_steps, "last_rows": last_rows, "kind": kind}
        alone, together = (
            worker.call("parallel_segment", seconds=SECONDS, **arguments) | {"told": worker.told.call}
            for worker in (baseline, job.learner())
        )
        _require_same_training(job, alone, together, arguments)
    sick = job.learner().call(
        "parallel_segment", seconds=SECONDS, seed=job.seed(), num_steps=1, last_rows=2, kind="sick"
    )
    require_together(job, sick | {"ranks": []})
    job.require(
        all(sick["is_nan"]),
        expected="weights that are NaN after a step in which a row has the loss NaN, as in one process",
        got="numbers",
        likely=HIDDEN,
        look="whoever trains must see that the model has diverged: make the step of the whole batch",
    )
    job.counts["samples_of_rank_0"], job.counts["samples_of_rank_1"] = together["rows"]
    if num_cores() < 2 and not job.is_reference:
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
        if job.speed is not None and job.speed.estimate > MUCH_SLOWER:
            _require_two_whole_cores(job)
        raise


def _require_two_whole_cores(job: Job) -> None:
    """A clock that says "too slow" is believed only where two processes that share nothing hardly slow each other.

    In CPU time half cores and a narrow memory bus show; in wall time also cores that others have, such as those of a
    host whose guest this machine is.
    """
    job.learner().kill()  # what it left behind would keep a core busy
    worker = job.worker("baseline", job.baseline)
    cpu: dict[int, list[float]] = {1: [], 2: []}
    wall: dict[int, list[float]] = {1: [], 2: []}
    for processes in (1, 2, 2, 1):
        arguments: dict[str, Any] = {"seed": job.seed(), "processes": processes}
        worker.call("parallel_segment", num_steps=1, **arguments)
        start, began = worker.cpu_seconds(), time.perf_counter()
        worker.call("parallel_segment", seconds=SECONDS, num_steps=20, **arguments)
        cpu[processes].append((worker.cpu_seconds() - start) / processes)
        wall[processes].append(time.perf_counter() - began)
    capacity = min(2 * sum(seconds[1]) / sum(seconds[2]) for seconds in (cpu, wall))
    job.conditions["two_processes_side_by_side"] = capacity
    if capacity < APPLIES_FROM * job.bar:
        raise Inconclusive(
            f"The clock could not decide: two processes that share nothing reach {capacity:.2f}× of one here, so no "
            f"solution could show {job.bar:g}× clearly: the second core seems to be half of the first, or busy with "
            "something else. Where it stays so, run `workbook calibrate`, which moves the points to counts on such a "
            "machine. The points that need no clock are yours."
        )


def _put_told(answer: dict[str, Any]) -> None:
    """Put in what was told of the ranks: steps, rows, and the rows of each step."""
    ranks = sorted(answer["told"].counts, key=lambda counts: counts.of)
    answer |= {"rows": [counts.num_rows for counts in ranks], "rows_of_steps": []}
    answer["steps"] = [counts.num_optimizer_steps for counts in ranks]
    for counts in ranks:
        rows = [0]
        for name, amount in counts.events:
            rows[-1] += amount * (name == "num_rows")
            rows += [0] * (name == "num_optimizer_steps")
        answer["rows_of_steps"].append(rows[:-1])


def _require_same_training(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], arguments: dict[str, Any] | None = None
) -> None:
    """`arguments` of the segment, where there is time to find out which mistake was made."""
    require_together(job, learner | {"ranks": []})
    for one in (baseline, learner):
        _put_told(one)
    total = sum(baseline["rows"])
    shares = learner["rows"]
    job.require(
        learner["steps"] == baseline["steps"] * 2,
        expected=f"{baseline['steps'][0]} optimizer steps on each rank",
        got=f"{learner['steps']}",
        likely="steps are left out, made twice, or made by one rank alone",
        look="one `optimizer.step()` for each batch, on each rank",
    )
    job.require(
        not np.array_equal(learner["weights"], learner["start"]),
        expected="the model that is handed in, trained",
        got="its weights as they were",
        likely="a copy is trained, or other parameters take the place of the model's: `optimizer` steps those it holds",
        look="is what you train the model itself, in place?",
    )
    likely = "no sharing: every rank computes the whole batch"
    if sum(shares) < total:
        likely = "samples are dropped where a batch does not divide evenly"
    elif min(shares) < total:
        likely = "samples are repeated where a batch does not divide evenly"
    job.require(
        sum(shares) == total,
        expected=f"{total} samples on all ranks together",
        got=f"{shares}",
        likely=likely,
        look="`tensor[rank::world_size]` gives each row to one rank",
    )
    job.require(
        max(shares) <= ABOUT_HALF * total,
        expected="about half of the samples on each rank",
        got=f"{shares}",
        likely="one rank does most of the work, and the other waits for it",
        look="deal the rows of every batch out in turn",
    )
    _require_halves(job, learner["rows_of_steps"])
    job.require(
        learner["largest_difference"] <= 1e-4,
        expected="the same weights on both ranks",
        got=f"a difference of {learner['largest_difference']:.3g}",
        likely="the gradients of some parameters are not exchanged, such as those of another group of the optimizer"
        if learner["share_that_differs"] < MOST
        else "gradients are not exchanged: each rank trains a model of its own",
        look="DDP, or an all-reduce of each gradient before the step",
    )
    job.require(
        not learner["has_evaluated"],
        expected="forwards in training mode",
        got="evaluation mode",
        likely=EVALUATED,
        look="`model.train()` before the loop",
    )
    require_equal(
        job,
        learner["weights"],
        baseline["weights"],
        dtype="float32",
        what="weights after training as in one process",
        likely=(
            likely := FROM_IDS
            if learner["is_from_ids"]
            else CUT
            if learner["num_words"] < baseline["num_words"]
            else _why(job, learner, baseline, arguments)
        ),
        look=(look := "the last batch may be odd; divide by its rows over all ranks"),
    )
    away = _share_away(learner["weights"], baseline)
    job.require(
        away <= SAME,
        expected=f"steps as in one process, within {SAME:g} of all that the weights move",
        got=f"weights that are {away:.2g} of it away",
        likely=likely,
        look=look,
    )
    job.require(
        not learner["batches_changed"],
        expected="the batches as they were before the call",
        got=f"{learner['batches_changed']} that are others",
        likely="the rows are cut out of the caller's own batches: the next epoch would train on a share of a share",
        look="make a new dict for this rank's rows",
    )
    for before, after in learner["switches"]:
        require_left_alone(job, before, after, when="before the call")


def _require_halves(job: Job, rows_of_steps: list[list[int]]) -> None:
    """Of every batch, and not of all of them together alone; what another optimizer steps is not seen here."""
    for number, rows in enumerate(zip(*rows_of_steps, strict=False), start=1):
        job.require(
            max(rows) <= ABOUT_HALF * sum(rows) + 0.5,
            expected="about half of every batch on each rank",
            got=f"{' and '.join(map(str, rows))} of the {sum(rows)} rows of batch {number}",
            likely="every batch is cut at the same place, as at half of the first one: of a shorter batch one rank has "
            "most or all, and the other waits for it",
            look="halve the batch that is there, inside the loop: `tensor[rank::world_size]` does",
        )


def _why(
    job: Job, learner: dict[str, Any], baseline: dict[str, Any], arguments: dict[str, Any] | None
) -> str:
    got: np.ndarray = learner["weights"]
    unknown = (
        "another loss than the mean over the whole batch's rows, or another step than the optimizer's; or something "
        "that an earlier call has left, such as hooks"
    )
    right = baseline["weights"]
    if arguments is None or got.shape != right.shape or _share_away(got, baseline) <= SAME:
        return unknown
    if _share_away(got, baseline) < ROUNDED and arguments["kind"] != "Adam":
        return "the gradients are rounded on their way, as by a message in half precision: almost right, and not equal"
    twin = job.twin(baselines.nothing(job.entry))
    mistake = name_the_mistake(
        _MISTAKES,
        twin=lambda name: twin.call("parallel_alone", mistake=name, **arguments),
        is_same=lambda wrong: are_equal(got, wrong, "float32"),
    )
    if not mistake and arguments["kind"] == "Adam":  # with SGD it was right
        return (
            "right with SGD and not with Adam: each rank steps with its own gradient, and weights are averaged in "
            "place of gradients; or the step is not the optimizer's own"
        )
    return mistake or unknown


def _share_away(got: np.ndarray, baseline: dict[str, Any]) -> float:
    """How far from the baseline's weights, as a share of the way that those have gone."""
    right = baseline["weights"]
    return float(np.linalg.norm(got - right) / np.linalg.norm(right - baseline["start"]))
