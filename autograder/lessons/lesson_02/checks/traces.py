"""What a step or an epoch leaves behind beside its weights, after an error of the model too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.engine import Job, Worker, failure
from autograder.lessons.checking import require_left_alone

MIN_SHARE = 0.9


def require_own_device(job: Job, found: Mapping[str, Any], dtype: str) -> None:
    """Fail where the device is not taken from the model: `found` by the harness's `beside_a_gpu`, in the last call."""
    for counts in job.learner().told.call.counts:
        found = {**found, "share": min(found["share"], counts.share_of_flops(dtype))}
    job.require(
        found["share"] >= MIN_SHARE,
        expected=f"{dtype} for a model that lies on the CPU, on a machine that has a GPU as well",
        got=found["said"] or f"{found['share']:.0%} of the matrix products in it",
        likely="the device is what the machine has, and not where the model lies",
        look="`next(model.parameters()).device.type`",
    )


def put_told_steps(worker: Worker, steps: Sequence[dict[str, Any]], name: str) -> None:
    """Into each of the steps how many forwards and optimizer steps were told of it, as the harness's `Watched` does."""
    seen = worker.told.call.seen
    for number, step in enumerate(steps):
        step["num_forwards"] = seen[f"forward of {name}"].count([number])
        step["num_steps"] = seen[f"step of {name}"].count([number])


def require_told(job: Job, stumbled: Mapping[str, Any]) -> None:
    """Fail where an error of the model was swallowed, or left a switch of the process other than it was."""
    job.require(
        stumbled["is_told"],
        expected="an error that the model raises to reach the caller",
        got="no error",
        likely="an error is caught and swallowed: the run goes on, and nobody knows that a step is missing",
        look="catch nothing that you cannot mend",
    )
    when = "after an error of the model"
    require_left_alone(job, stumbled["before"], stumbled["after"], when=when)


def require_untouched(job: Job, changed: Sequence[str]) -> None:
    """Fail where a call changed what it was handed beside the model: `changed` as the harness's `Watched` has it."""
    if changed:
        what = changed[0]
        raise failure(
            expected=f"{what} as they were before",
            got="others",
            likely=f"{what} are changed on the way: what the caller does next with them goes otherwise",
            look="make a copy of what you have to change",
        )


def require_trained(job: Job, num_forwards: int, *, is_evaluated: bool) -> None:
    """Fail unless a step has one forward, in the training mode in which the model was handed over."""
    job.require(
        not is_evaluated,
        expected="a model that trains in training mode, as it was handed over",
        got="evaluation mode: dropout would be off",
        likely="the step switches the model to evaluation, or leaves it so",
        look="no step needs `model.eval()`",
    )
    job.require(
        num_forwards == 1,
        expected="one forward for a step",
        got=f"{num_forwards}",
        likely="work is done twice, such as a second forward for the report, or for another try",
        look="one forward, one backward, one step",
    )


def require_clipped(job: Job, gradients: Mapping[str, Any], norm: float, max_norm: float) -> None:
    """Fail unless the gradients that a step used are as long as `norm` says of before, and at most `max_norm`."""
    used = math.hypot(*(float(np.linalg.norm(part.astype(np.float64))) for part in gradients.values()))
    expected = min(norm, max_norm)
    job.require(
        math.isclose(used, expected, rel_tol=2e-3, abs_tol=1e-5),
        expected=f"gradients whose norm is {expected:.5g}: it was {norm:.5g}, and `max_norm` is {max_norm:g}",
        got=f"{used:.5g}",
        likely="clipped to another norm than `max_norm`, or clipped a second time",
        look="measure the norm again after clipping",
    )


def require_used(job: Job, case: Mapping[str, Any], own: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Fail unless an epoch's gradients are as long as they should be, and rounded where autocast rounds them alone."""
    rounded = [
        set(names) <= set(others) for names, others in zip(own["rounded"], right["rounded"], strict=True)
    ]
    job.require(
        all(rounded),
        expected="gradients in float32",
        got="gradients that are all numbers of 16 bits, where autocast leaves them float32",
        likely="the gradients are rounded to 16 bits: they stay fp32, as the weights do",
        look="backward leaves them in the type of the weights",
    )
    max_norm = 1.0 if case["max_norm"] is None else case["max_norm"]
    for used, expected in zip(own["norms"], right["norms"], strict=True):
        job.require(
            used <= max_norm * 1.002 and (expected < max_norm * 0.99 or used >= max_norm * 0.9),
            expected=f"gradients whose norm is {expected:.4g}, at a `max_norm` of {max_norm:g}",
            got=f"{used:.4g}",
            likely="the gradient is clipped to another norm than `max_norm`",
            look="measure the norm again after clipping",
        )
