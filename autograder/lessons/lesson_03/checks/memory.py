"""The checks of exercises 3.2 and 3.5: how many rows fit, and activations that are computed again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import TOLERANCES, relative_difference, require_equal
from autograder.lessons.lesson_03 import baselines

MAX_PEAK_SHARE = 0.6


def check_largest_micro_batch_size(job: Job) -> None:
    """3.2: exactly the largest size that fits, found in few steps, none of them far too large."""
    trusted = job.worker("trusted", baselines.SEARCH)
    for case in ("budget", "device", "all", "none"):
        fits = int(job.rng.integers(17, 32))
        max_size = {"all": fits}.get(case, 256)
        step: dict[str, Any] = {
            "seed": job.seed(),
            "d_model": 4 * int(job.rng.integers(3, 7)),
            "width": int(job.rng.integers(8, 16)),
        }
        first, last, beyond = (int(trusted.call("step_peak", rows=n, **step)) for n in (1, fits, fits + 1))
        budget = int(job.rng.integers(last, beyond))
        if case in ("device", "all"):
            budget *= 10
        elif case == "none":
            fits, budget = 0, first - 1
        most_rows = {"device": fits}.get(case, 10 * max_size)
        arguments = step | {"budget_bytes": budget, "max_size": max_size, "most_rows": most_rows}
        answer = job.learner().call("search_once", **arguments)
        _require_search(job, answer, max_size, fits)
        _require_largest(job, answer, fits, max_size, case)
        if case == "budget":
            job.counts |= {"budget_bytes": budget, "peak_bytes": last, "steps_tried": len(answer["tried"])}


def _require_search(job: Job, answer: dict[str, Any], max_size: int, fits: int) -> None:
    tried, failed = answer["tried"], answer["failed"]
    job.require(
        "out of memory" not in failed,
        expected="a search that goes on when a size is too large for the device",
        got="its OutOfMemoryError, out of your function",
        likely="the out-of-memory error is not caught; it says the same as a peak above the budget: does not fit",
        look="`try` … `except torch.OutOfMemoryError`",
    )
    job.require(
        "range" not in failed,
        expected=f"sizes from 1 to {max_size}",
        got=f"{tried[-1] if tried else 'none'}",
        likely="doubling runs past `max_size`, or bisection reaches 0",
        look="`min(2 * size, max_size)`",
    )
    most = 2 * math.ceil(math.log2(max_size)) + 3
    job.require(
        len(tried) <= most,
        expected=f"at most {most} steps tried for up to {max_size} rows",
        got=f"{len(tried)}" + (" and no end" if answer["answer"] < 0 else ""),
        likely="one size after the other: a search that grows with the answer",
        look="double until one does not fit, then halve the gap",
    )
    largest = max(tried, default=0)
    job.require(
        largest <= max(1, 2 * fits),
        expected=f"no step of more than twice the rows that fit: {max(1, 2 * fits)}",
        got=f"one of {largest}",
        likely="the search starts at the top: on a real machine such a step takes the whole device, or all of swap",
        look="come from below",
    )


def _require_largest(job: Job, answer: dict[str, Any], fits: int, max_size: int, case: str) -> None:
    got, tried = answer["answer"], answer["tried"]
    likely = "the search ends too early, or compares the wrong way round"
    if got == fits + 1:
        likely = "the first size that does not fit is returned, not the last one that does"
    elif 0 < got < fits and len(tried) > 3 and all(math.log2(size).is_integer() for size in tried):
        likely = "doubling alone: only powers of two are ever tried, and up to half of the memory stays free"
    elif case == "none":
        likely = "one row does not fit either, and the answer to that is 0"
    elif 0 < got < fits:
        likely = (
            "memory taken as proportional to the rows: weights' gradients and the optimizer's state are a part that "
            "does not grow"
        )
    job.require(
        got == fits,
        expected=f"{fits}, the most rows of up to {max_size} that fit",
        got=f"{got}",
        likely=likely,
        look="print each size tried with its peak and the budget",
    )


def check_checkpoint_blocks(job: Job) -> None:
    """3.5: equal gradients, dropout included, at 0.6 times the peak bytes, in at most 1.6 times the time."""
    for dropout in (0.0, 0.25):
        arguments: dict[str, Any] = {"seed": job.seed(), "dropout": dropout}
        answer = job.learner().call("checkpointed_once", **arguments)
        plain = job.worker("baseline", job.baseline).call("checkpointed_once", **arguments)
        _require_same_step(job, answer, plain, dropout)
    job.counts |= {"peak_bytes": answer["peak"], "peak_bytes_plain": plain["peak"]}
    job.counts["peak_share"] = round(answer["peak"] / plain["peak"], 3)
    job.require(
        answer["peak"] <= MAX_PEAK_SHARE * plain["peak"],
        expected=f"at most {MAX_PEAK_SHARE:.0%} of the plain model's peak of {plain['peak'] / 1e6:.1f} MB",
        got=f"{answer['peak'] / plain['peak']:.0%}",
        likely="one checkpoint around everything: when it is computed again, all of it is alive at once. Or only some "
        "of the blocks are checkpointed, or none",
        look="a checkpoint for each block: then one block at a time is alive",
    )
    measure_speedup(
        job,
        function="checkpoint_segment",
        compare=lambda a, b: _require_same_losses(job, a, b),
        likely=f"a step takes over {1 / job.bar:g} times the plain one: something is computed again more than once",
        look="one checkpoint for each block, none inside another",
    )


def _require_same_step(job: Job, answer: dict[str, Any], plain: dict[str, Any], dropout: float) -> None:
    tolerance = TOLERANCES["float32"]
    job.require(
        relative_difference(answer["evaluated"], plain["evaluated"]) <= tolerance,
        expected="the plain model's logits in evaluation",
        got="other logits",
        likely="other weights, or blocks in another order, or one block in place of all: a lambda in a loop sees the "
        "last value of the loop variable",
        look="`functools.partial` holds the block of its turn; the weights stay as they are",
    )
    job.require(
        relative_difference(answer["logits"], plain["logits"]) <= tolerance,
        expected=f"the plain model's logits in training, with dropout {dropout:g} under the same seed",
        got="other logits",
        likely="dropout is switched off, or draws at another place",
        look="the forward pass is the same; only what is kept for backward changes",
    )
    job.require(
        answer["num_without"] == 0,
        expected="a gradient for every parameter",
        got=f"none for {answer['num_without']} of them",
        likely="the graph is cut: a block ran under `no_grad` and was never computed again, or its output was detached",
        look="`torch.utils.checkpoint.checkpoint(..., use_reentrant=False)`",
    )
    job.require(
        relative_difference(answer["gradients"], plain["gradients"]) <= tolerance,
        expected="the plain model's gradients" + (f", with dropout {dropout:g}" if dropout else ""),
        got=f"gradients that differ by up to {np.abs(answer['gradients'] - plain['gradients']).max():.3g}",
        likely="the state of dropout's random numbers is lost: the second forward drops other values than the first"
        if dropout
        else "the second forward is not the first one again",
        look="`preserve_rng_state`, whose default is right",
    )


def _require_same_losses(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    require_equal(
        job,
        learner["losses"],
        baseline["losses"],
        dtype="float32",
        what="losses",
        likely="over several steps the gradients are not those of the plain model",
        look="train both for ten steps from one seed and compare the losses",
    )
    if "timed_saved_share" not in job.counts:
        seed = job.seed()
        own, plain = (
            int(worker.call("timed_saved_bytes", seed=seed))
            for worker in (job.learner(), job.worker("baseline", job.baseline))
        )
        job.counts["timed_saved_share"] = round(own / plain, 3)
        job.require(
            own <= MAX_PEAK_SHARE * plain,
            expected="checkpoints in the model that is timed, too",
            got=f"{own / plain:.0%} of what the plain one keeps for backward",
            likely="some models get checkpoints and others not",
            look="every model with `blocks`",
        )
