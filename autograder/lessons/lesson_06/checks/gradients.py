"""The checks of exercises 6.2 and 6.4: gradients that are those of one process on all the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, Worker, failure
from autograder.lessons.checking import are_equal, name_the_mistake, require_equal
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import SECONDS, require_together

BOOKKEEPING = 2  # all-reduces of a step that carry no gradients, such as the number of samples


def check_plain_ddp(job: Job) -> None:
    """6.2: rank 0's weights on every rank, and the big batch's gradients, on uneven batches."""
    job.talks = True
    for rows in ([[12, 7], [5, 9]], [[4], [11], [2]]):
        arguments: dict[str, Any] = {"seed": job.seed(), "rows": rows}
        answer = job.learner().call("hand_made", seconds=SECONDS, **arguments)
        twin = job.twin(baselines.nothing(job.entry)).call("one_process", **arguments)
        ranks = require_together(job, answer)
        for rank, seen in enumerate(ranks):
            job.require(
                are_equal(seen["start"], twin["start"], "float32"),
                expected=f"rank 0's weights on rank {rank}, once the model is wrapped",
                got="its own",
                likely="nothing is broadcast at the start: every rank trains another model from the first step on",
                look="`dist.broadcast` for each parameter and buffer, from rank 0",
            )
        for rank, seen in enumerate(ranks):
            for got, expected in zip(seen["seen"], twin["seen"], strict=True):
                _require_gradients(job, got, expected, rank, len(rows))
    job.counts["ranks_tried"] = 3


def _require_gradients(
    job: Job, got: dict[str, Any], expected: dict[str, Any], rank: int, world_size: int
) -> None:
    gradients = got["gradients"]
    likely = {
        "own": "nothing is exchanged: these are this rank's own gradients",
        "mean_of_means": "mean of rank means: a rank with few samples weighs as much as one with many",
        "sum_of_means": "the gradients of the ranks' means are summed",
        "sum": "the gradients are summed, not averaged: each step is world_size times too long",
    }
    twins = expected | {"own": expected["own"][rank], "sum": world_size * expected["gradients"]}
    mistake = name_the_mistake(
        likely, twin=twins.__getitem__, is_same=lambda wrong: are_equal(gradients, wrong, "float32")
    )
    require_equal(
        job,
        gradients,
        expected["gradients"],
        dtype="float32",
        what=f"gradients on rank {rank} as in one process on all samples",
        likely=mistake
        or "another loss than the mean over all ranks' samples, or a parameter that is left out",
        look="write it for two ranks with 3 samples and 1: which number must each rank's sum be divided by?",
    )
    job.require(
        abs(got["loss"] - expected["loss"]) <= 1e-4 * abs(expected["loss"]),
        expected=f"the mean loss over all ranks' samples, {expected['loss']:.5f}, on rank {rank}",
        got=f"{got['loss']:.5f}",
        likely="the loss that is returned is this rank's own, or a mean of the ranks' means",
        look="sum of losses over ranks, divided by sum of samples over ranks",
    )


def check_accumulate(job: Job) -> None:
    """6.4: one all-reduce per bucket and optimizer step, the big batch's step, and sync on again after an error."""
    job.talks = True
    rows = [[[6, 3, 5, 2], [4, 7, 1, 5]], [[2, 2, 8, 3], [5, 1, 4, 9]]]
    arguments: dict[str, Any] = {"seed": job.seed(), "rows": rows}
    answer = job.learner().call("accumulated", seconds=SECONDS, **arguments)
    ranks = require_together(job, answer)
    twin = job.twin(baselines.nothing(job.entry))
    expected = twin.call("accumulated_alone", **arguments)
    num_steps, num_micro = len(rows), len(rows[0][0])
    for rank, seen in enumerate(ranks):
        num_rows = sum(sum(step[rank]) for step in rows)
        job.require(
            seen["optimizer_steps"] == num_steps and seen["rows"] == num_rows,
            expected=f"{num_steps} optimizer steps and {num_rows} samples on rank {rank}",
            got=f"{seen['optimizer_steps']} steps, {seen['rows']} samples",
            likely="a step after every micro-batch, or a micro-batch that is left out",
            look="one `optimizer.step()` for each call of your function",
        )
    seen = ranks[0]
    buckets = seen["num_buckets"]
    job.counts["buckets"], job.counts["all_reduces"] = buckets, seen["all_reduces"]
    job.counts["optimizer_steps"] = num_steps
    most = num_steps * (buckets + BOOKKEEPING)
    job.require(
        max(rank["all_reduces"] for rank in ranks) <= most,
        expected=f"{buckets} buckets × {num_steps} optimizer steps = {buckets * num_steps} all-reduces of gradients",
        got=f"{seen['gradient_all_reduces']}",
        likely=_why_so_many(seen["gradient_all_reduces"], buckets * num_steps, num_micro),
        look="all micro-batches but the last belong inside `with model.no_sync():`, forward *and* backward",
    )
    if not all(are_equal(rank["weights"], expected, "float32") for rank in ranks):
        _fail_by_name(ranks, twin, arguments)
    _require_closed(job, ranks, most // num_steps)


def _why_so_many(got: int, needed: int, num_micro: int) -> str:
    if got >= needed * num_micro:
        return (
            f"gradients cross at every micro-batch ({num_micro} a step): `no_sync` is missing, or only `backward` is "
            "inside it, while DDP decides in `forward`"
        )
    return "more than one backward of each step is synchronised"


def _fail_by_name(ranks: list[dict[str, Any]], twin: Worker, arguments: dict[str, Any]) -> None:
    """The weights are wrong."""
    weights = ranks[0]["weights"]
    if not are_equal(weights, ranks[1]["weights"], "float32"):
        likely = "the ranks' weights differ: the last micro-batch is inside `no_sync` too, so nothing was exchanged"
    else:
        likely = name_the_mistake(
            {
                "sum of micro-batch means": "loss not rescaled: the micro-batches' means are added up",
                "mean of rank means": "each rank divides by its own number of samples: a mean of rank means",
                "mean of micro-batch means": "loss not rescaled by samples: small micro-batches weigh as much as large "
                "ones",
                "not divided by the ranks": "loss not rescaled: DDP divides the sum over ranks by world_size once more",
            },
            twin=lambda mistake: twin.call("accumulated_alone", mistake=mistake, **arguments),
            is_same=lambda wrong: are_equal(weights, wrong, "float32"),
        )
    raise failure(
        expected="on every rank the weights of one process that takes all micro-batches as one batch",
        got=f"weights that differ by up to {_distance(ranks):.3g} between ranks, and from that process",
        likely=likely or "gradients of an earlier step are left in, or the loss is divided by another number",
        look="loss sum × world_size / samples of the whole step on all ranks; DDP's average makes a sum of it",
    )


def _distance(ranks: list[dict[str, Any]]) -> float:
    return float(np.abs(ranks[0]["weights"] - ranks[1]["weights"]).max())


def _require_closed(job: Job, ranks: list[dict[str, Any]], most: int) -> None:
    job.require(
        all(rank["raised"] for rank in ranks),
        expected="the error of a micro-batch that cannot be computed, as it was raised",
        got="none: the step went on without that micro-batch",
        likely="an `except` that swallows errors: the gradients are those of fewer samples, and nobody knows",
        look="let it pass; only put things back on its way",
    )
    after = [rank["weights_after"] for rank in ranks]
    job.require(
        not any(rank["left_open"] for rank in ranks)
        and ranks[0]["all_reduces_after"] >= 1
        and are_equal(after[0], after[1], "float32"),
        expected="after an error in a micro-batch: a next step that exchanges gradients again",
        got="gradients that stay on their rank"
        + ("; `require_backward_grad_sync` is still False" if ranks[0]["left_open"] else ""),
        likely="`no_sync` is left open when an exception is raised: from then on every rank trains alone, in silence",
        look="`with`, or `try … finally`: the way out must put it back",
    )
    job.require(
        max(rank["all_reduces_after"] for rank in ranks) <= most,
        expected=f"at most {most} all-reduces in the step after",
        got=f"{ranks[0]['all_reduces_after']}",
        likely="`no_sync` is not used again after an error",
        look="enter it anew in each call",
    )
