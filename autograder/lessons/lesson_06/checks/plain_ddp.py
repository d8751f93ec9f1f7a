"""The check of exercise 6.2: gradients by hand that are those of one process on all the samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import are_equal, name_the_mistake, require_equal, require_left_alone
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import (
    EVALUATED,
    FROM_IDS,
    HIDDEN,
    OTHER_MODES,
    ROUNDED_AWAY,
    SECONDS,
    require_own_rows,
    require_together,
)
from autograder.lessons.lesson_06.checks.own_forward import require_its_own_gradients, require_its_own_loss

LOUD = 1  # of two models side by side: the one with large losses
NUM_CLASSES = 5
# Of a loss: one process computes it of all rows at once, and each product of matrices adds up in another order.
CLOSE = 1e-5
SAME = 5e-5  # of the length of all gradients: a message in half precision costs five times that


def check_plain_ddp(job: Job) -> None:
    """6.2: rank 0's weights and buffers on every rank, and the big batch's gradients, on uneven batches."""
    job.talks = True
    for world_size, num_batches in ((2, 3), (3, 2)):
        arguments: dict[str, Any] = {
            "seed": job.seed() % 10**6,
            "rows": _rows(job.rng, world_size, num_batches),
        }
        answer = job.learner().call("hand_made", seconds=SECONDS, **arguments)
        twin = job.twin(baselines.nothing(job.entry)).call("one_process", **arguments)
        ranks: Any = require_together(job, answer)  # of each rank two models
        for number, expected in enumerate(twin):
            for rank, models in enumerate(ranks):
                _require_start(job, models[number], expected["start"], rank)
            for batch, wanted in enumerate(expected["seen"]):
                for rank, models in enumerate(ranks):
                    got = models[number]["seen"][batch]
                    if math.isnan(wanted["loss"]):
                        _require_no_number(job, got, rank)
                    else:
                        _require_gradients(job, got, wanted, rank, world_size, is_loud=number == LOUD)
                        _require_kept(job, got, wanted)
        for rank, models in enumerate(ranks):
            for number, expected in enumerate(twin):
                _require_unrounded(job, models[number]["seen"], expected["seen"], rank)
            require_own_rows(job, max(each["num_foreign"] for one in models for each in one["seen"]), rank)
        for number in range(len(twin)):
            by_chance = [models[number]["by_chance"] for models in ranks]
            require_its_own_loss(job, by_chance)
            require_its_own_gradients(job, by_chance)
    job.counts["ranks_tried"] = 3


def _rows(rng: np.random.Generator, world_size: int, num_batches: int) -> list[list[int]]:
    """Of each rank. Other sizes on each, so that a mean of means is another number; one row alone; and never as many
    on all ranks together as in another batch."""
    while True:
        rows = [rng.permutation(np.arange(1, 13))[:world_size] for _ in range(num_batches)]
        rows[-1][rows[-1].argmin()] = 1
        if len({int(of_batch.sum()) for of_batch in rows}) == num_batches:
            return [[int(of_batch[rank]) for of_batch in rows] for rank in range(world_size)]


def _require_unrounded(
    job: Job, got: list[dict[str, Any]], expected: list[dict[str, Any]], rank: int
) -> None:
    for one, wanted in zip(got, expected, strict=True):
        right = wanted["gradients"]
        away = float(np.linalg.norm(one["gradients"] - right) / np.linalg.norm(right))
        job.require(
            math.isnan(wanted["loss"]) or away <= SAME,
            expected=f"gradients on rank {rank} within {SAME:g} of those of one process, by their length",
            got=f"{away:.2g} of it away",
            likely="the gradients are rounded on their way, as by half precision; or small ones are dropped",
            look="send them as they are, in float32",
        )
        is_close = math.isclose(one["loss"], wanted["loss"], rel_tol=CLOSE)
        is_rounded = one["loss"] in (
            round(one["loss"], 6),
            round(one["loss"], 7),
        )  # no sum comes out so by itself
        job.require(
            math.isnan(wanted["loss"]) or (is_close and not is_rounded),
            expected=f"the mean loss over all ranks' samples, {wanted['loss']:.10g}, on rank {rank}",
            got=f"{one['loss']:.10g}",
            likely="the loss that is returned is rounded",
            look="return the number as it comes; whoever prints it rounds it",
        )


def _are_same(own: np.ndarray, right: np.ndarray) -> bool:
    is_finite = np.isfinite(right)
    return bool(np.array_equal(own[~is_finite], right[~is_finite])) and are_equal(
        own[is_finite], right[is_finite], "float32"
    )


def _require_start(job: Job, got: dict[str, Any], expected: dict[str, Any], rank: int) -> None:
    job.require(
        got["num_replaced"] == 0,
        expected=f"rank 0's weights and buffers in the tensors that the model of rank {rank} had before",
        got=f"{got['num_replaced']} of its tensors are others",
        likely="parameters or buffers are replaced instead of written into: whoever held them before, such as an "
        "optimizer, has the old ones",
        look="`dist.broadcast` writes in place; so does `tensor.copy_` under `torch.no_grad()`",
    )
    job.require(
        are_equal(got["start"]["weights"], expected["weights"], "float32"),
        expected=f"rank 0's weights on rank {rank}, once the model is wrapped",
        got="its own",
        likely="nothing is broadcast at the start, or not every weight: every rank trains another model from the "
        "first step on",
        look="`dist.broadcast` for each parameter and buffer, from rank 0",
    )
    own, right = got["start"]["buffers"], expected["buffers"]
    job.require(
        _are_same(own, right),
        expected=f"rank 0's buffers on rank {rank}, once the model is wrapped",
        got="NaN" if np.isnan(own).any() else "its own",
        likely="the other ranks' values are multiplied by 0 and are summed with zeros: infinity times 0 is NaN"
        if np.isnan(own).any()
        else "the buffers are not broadcast: running means and the like are no parameters, and are left out",
        look="`model.buffers()`, or all of `model.state_dict()`",
    )
    for what in ("weights", "buffers"):
        job.require(
            got["start"][f"exact_{what}"] == expected[f"exact_{what}"],
            expected=f"rank 0's {what} on rank {rank}, to the last bit",
            got="some others",
            likely="a tensor is left out, or crosses in another dtype than its own (half precision rounds weights, "
            "and no float holds every int64), or as a sum with zeros, of which -0.0 comes out as 0.0",
            look="send every tensor, in the dtype that it has",
        )


def _require_no_number(job: Job, got: dict[str, Any], rank: int) -> None:
    job.require(
        math.isnan(got["loss"]) and bool(np.isnan(got["gradients"][-NUM_CLASSES:]).all()),
        expected=f"NaN as loss and in the gradients on rank {rank}, for the model gives NaN for a sample of one rank",
        got=f"a loss of {got['loss']:.5g}, and gradients that are numbers"
        if np.isfinite(got["gradients"]).all()
        else f"a loss of {got['loss']:.5g}",
        likely=HIDDEN,
        look="whoever trains must see that the model has diverged: hand on what comes out",
    )


def _require_gradients(
    job: Job,
    got: dict[str, Any],
    expected: dict[str, Any],
    rank: int,
    world_size: int,
    *,
    is_loud: bool,
) -> None:
    gradients = got["gradients"]
    job.require(
        not got["modes_changed"],
        expected="all parts of the model in the mode in which they came, in the forward and after the call",
        got="another mode",
        likely=EVALUATED if got["has_evaluated"] and not is_loud else OTHER_MODES,
        look="the mode is the caller's affair: leave it as it is",
    )
    job.require(
        got["frozen_have_none"],
        expected="a frozen parameter that stays frozen, with `.grad` None",
        got="a gradient, or a parameter that is trained now",
        likely="frozen parameters get a gradient: with weight decay an optimizer would move them",
        look="leave out those whose `.grad` is None after backward",
    )
    likely = {
        "own": "nothing is exchanged: these are this rank's own gradients",
        "own_share": "nothing is exchanged: this is this rank's own part of the sum",
        "mean_of_means": "mean of rank means: a rank with few samples weighs as much as one with many",
        "sum_of_means": "the gradients of the ranks' means are summed",
        "sum": "the gradients are summed, not averaged: each step is world_size times too long",
        "divided_twice": "divided by the ranks once too often: the gradients are world_size times too small",
        "sum_of_sums": "a sum over all samples, never divided by their number",
        "mean_of_sums": "each rank's sum of losses is never divided by samples, only by the number of ranks",
    }
    twins = expected | {
        "own": expected["own"][rank],
        "own_share": expected["own_shares"][rank],
        "sum": world_size * expected["gradients"],
        "divided_twice": expected["gradients"] / world_size,
        "mean_of_sums": expected["sum_of_sums"] / world_size,
    }
    mistake = "only rank 0 has the result: the others have what `reduce` has left there"
    if got["is_from_ids"]:
        mistake = FROM_IDS
    elif not rank:  # those of the others are looked at when rank 0's are right
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
        or (
            ROUNDED_AWAY  # the other model's gradients were right
            if is_loud
            else "another loss than the mean over all ranks' samples (as one that weighs words), or a parameter that "
            "is left out, or sent twice, as one that two modules share"
        ),
        look="write it for two ranks with 3 samples and 1: which number must each rank's sum be divided by?",
    )
    job.require(
        are_equal(got["weights"], expected["weights"], "float32"),
        expected="weights as they were before the call",
        got="others",
        likely="the weights are changed as well: the step is the optimizer's affair",
        look="forward, backward and exchange, and no more",
    )
    job.require(
        not got["weights_moved"],
        expected="weights as they were before the call, to the last bit",
        got="almost those",
        likely="the weights are changed as well, if only a little, as by a decay: the step is the optimizer's affair",
        look="forward, backward and exchange, and no more",
    )
    job.require(
        got["type"] == "float",
        expected="the mean as a Python number, a float",
        got=f"a value of type {got['type']}",
        likely="nothing is returned"
        if got["type"] == "NoneType"
        else "a tensor is returned, or a number of NumPy's: `-> float` is promised",
        look="`.item()` gives the number of a tensor of one element",
    )
    job.require(
        abs(got["loss"] - expected["loss"]) <= 1e-4 * abs(expected["loss"]),
        expected=f"the mean loss over all ranks' samples, {expected['loss']:.7g}, on rank {rank}",
        got=f"{got['loss']:.7g}",
        likely="the loss that is returned is this rank's own, or a mean of the ranks' means",
        look="sum of losses over ranks, divided by sum of samples over ranks",
    )


def _require_kept(job: Job, got: dict[str, Any], expected: dict[str, Any]) -> None:
    job.require(
        got["exact_buffers"] == expected["exact_buffers"],
        expected="buffers as they were before the call, to the last bit",
        got="others",
        likely="the buffers are changed as well: forward, backward and exchange leave them alone",
        look="read the batch, and write into tensors of your own",
    )
    job.require(
        not got["is_changed"],
        expected="the batch as it was before the call",
        got="another one",
        likely="parts of the caller's own batch are taken out or written over: the next epoch would train on others",
        look="read the batch, and write into tensors of your own",
    )
    require_left_alone(job, *got["switches"], when="before the call")
