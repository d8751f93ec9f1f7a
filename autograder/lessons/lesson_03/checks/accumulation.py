"""The checks of exercises 3.1 and 3.3: several micro-batches, one update."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import are_equal, name_the_mistake, require_report, twin_of
from autograder.lessons.lesson_03 import baselines

# What another micro-batch of the same update keeps for backward may stand beside the one at work; the whole may not.
SAVED_BYTES_SLACK = 1.6
LOW_PRECISION_SLACK = 0.9


def check_train_accumulated(job: Job) -> None:
    """3.1: the weights of a loop with big batches, as many updates, and the memory of one micro-batch."""
    grad_accum_steps = 4
    # An even pass, one with a short last window, and one with a micro-batch that has no label.
    for num_micro_batches, empty in ((8, -1), (10, -1), (9, 5)):
        arguments: dict[str, Any] = {
            "seed": job.seed(),
            "num_micro_batches": num_micro_batches,
            "grad_accum_steps": grad_accum_steps,
            "empty": empty,
        }
        answer = job.learner().call("accumulated_once", **arguments)
        twin = job.twin(baselines.TRAIN_ACCUMULATED).call("accumulated_once", **arguments)
        _require_windows(job, answer, num_micro_batches, grad_accum_steps)
        job.require(
            empty < 0 or _is_finite(answer),
            expected="finite weights and a finite loss, also where a micro-batch has no label at all",
            got="NaN",
            likely="the mean over the labels of one micro-batch: 0 / 0 where it has none",
            look="sum the losses; divide by the labels of the whole window, which always has some",
        )
        if not are_equal(answer["weights"], twin["weights"], "float32"):
            _fail_by_divisor(job, answer, twin, arguments)
        job.counts["optimizer_steps"] = answer["optimizer_steps"]
        job.counts["saved_bytes"] = answer["saved_bytes"]
        job.require(
            answer["saved_bytes"] <= SAVED_BYTES_SLACK * twin["saved_bytes"],
            expected=f"the activations of one micro-batch at a time: {twin['saved_bytes']:,} bytes",
            got=f"{answer['saved_bytes']:,} bytes kept for backward",
            likely="the losses of the window are added up and one backward follows: every graph is alive until then",
            look="call `backward()` for each micro-batch: it adds to the gradients and frees the activations",
        )
        _require_report(job, answer["report"], twin["report"])


def _is_finite(answer: dict[str, Any]) -> bool:
    return bool(np.isfinite(answer["weights"]).all()) and math.isfinite(answer["report"].get("loss", 0.0))


def _require_windows(job: Job, answer: dict[str, Any], num_micro_batches: int, steps: int) -> None:
    updates = math.ceil(num_micro_batches / steps)
    got = answer["optimizer_steps"]
    likely = "a window is stepped twice, or its step is missing"
    if got == num_micro_batches:
        likely = "a step at every micro-batch: the window never gathers, and the batch stays small"
    elif got == num_micro_batches // steps:
        likely = "the last partial window is dropped: its gradients never reach the weights"
    job.require(
        got == updates,
        expected=f"{updates} optimizer steps for {num_micro_batches} micro-batches in windows of {steps}",
        got=f"{got}",
        likely=likely,
        look="list by hand which micro-batches belong to which update, the last one included",
    )
    job.require(
        answer["forwards"] == num_micro_batches,
        expected=f"{num_micro_batches} forward passes, one for each micro-batch",
        got=f"{answer['forwards']}",
        likely="the window is put together into one big batch: its memory is what accumulation should save"
        if answer["forwards"] < num_micro_batches
        else "micro-batches are computed more than once",
        look="one micro-batch at a time through the model",
    )


def _fail_by_divisor(
    job: Job, answer: dict[str, Any], twin: dict[str, Any], arguments: dict[str, Any]
) -> None:
    """The weights are wrong."""
    likely = {
        "not divided": "the loss is not divided: the means of the micro-batches are added up, so the step grows with "
        "the number of micro-batches",
        "sum": "the loss is not divided: the sum over all labels is used as it is",
        "mean of means": "divided by the wrong count: the number of micro-batches. A label in a short micro-batch "
        "weighs more than one in a long one",
        "full window": "divided by the wrong count: `grad_accum_steps`, also where the last window is shorter and the "
        "micro-batches are uneven",
        "positions": "divided by the wrong count: all positions, padding and -100 included",
        "tokens": "divided by the wrong count: real tokens, also those whose label is -100",
        "rows": "divided by the wrong count: rows, not labels",
        "sum over steps": "divided by the wrong count: sums of losses, divided by the number of micro-batches",
        "cleared inside": "`zero_grad` inside the window: only the last micro-batch reaches the step",
        "never cleared": "gradients are never cleared: each update adds those of all updates before",
    }
    mistake = name_the_mistake(
        likely,
        twin=twin_of(job, baselines.TRAIN_ACCUMULATED, "accumulated_once", arguments),
        is_same=lambda wrong: are_equal(answer["weights"], wrong["weights"], "float32"),
    )
    difference = float(np.abs(answer["weights"] - twin["weights"]).max())
    raise failure(
        expected="the weights of a loop that takes each window as one big batch",
        got="other weights" if mistake else f"weights that differ by up to {difference:.3g}",
        likely=mistake
        or "another loss than the mean over the labels of the window, or gradients of other micro-batches",
        look="two micro-batches, one with 1 label and one with 3: what does each label weigh?"
        if mistake
        else "compare `p.grad` before the step with that of one big batch made of the same rows",
    )


def _require_report(job: Job, report: dict[str, float], expected: dict[str, float]) -> None:
    averaged = math.isclose(report.get("loss", math.nan), expected["mean_of_means"], rel_tol=1e-4)
    likely = {
        "loss": "a mean of the micro-batches' means"
        if averaged
        else "a sum, or a mean over the wrong number",
        "num_updates": "micro-batches are counted",
    }
    require_report(job, report, expected, likely)


def check_train_accumulated_mixed(job: Job) -> None:
    """3.3: autocast, scaler, clipping and schedule, each once where it belongs."""
    num_micro_batches, grad_accum_steps = 11, 4
    # Without clipping the divisor shows in the length of the updates, with it the clipping itself.
    for gradient_scale, max_norm in ((1.0, 50.0), (20.0, 0.5)):
        arguments: dict[str, Any] = {
            "seed": job.seed(),
            "num_micro_batches": num_micro_batches,
            "grad_accum_steps": grad_accum_steps,
            "max_norm": max_norm,
            "gradient_scale": gradient_scale,
        }
        answer = job.learner().call("mixed_once", **arguments)
        twin = job.twin(baselines.TRAIN_ACCUMULATED_MIXED).call("mixed_once", **arguments)
        job.require(
            not answer["is_unscaled_twice"],
            expected="one unscale for each update",
            got="torch's error: unscale_() has already been called since the last update()",
            likely="unscale and clip at every micro-step; they belong to the update. Or `scaler.update()` is missing",
            look="indent: what stands inside the loop over the window, and what after it?",
        )
        _require_windows(job, answer, num_micro_batches, grad_accum_steps)
        _require_schedule_and_scale(job, answer, twin, num_micro_batches)
        job.counts["low_precision_share"] = round(answer["low_precision"], 3)
        job.require(
            answer["low_precision"] >= LOW_PRECISION_SLACK * twin["low_precision"],
            expected="forward and loss under autocast: matrix products in bfloat16",
            got=f"{answer['low_precision']:.0%} of the operations in low precision",
            likely="autocast is missing, or closed before the model is called",
            look='`with torch.autocast("cpu", torch.bfloat16):` around forward and loss',
        )
        job.require(
            answer["dtypes"] == ["torch.float32"],
            expected="weights in float32",
            got=", ".join(answer["dtypes"]),
            likely="the model was converted; autocast converts by itself, operation by operation",
            look="no `.half()` and no `.bfloat16()` on the model",
        )
        if not are_equal(answer["moved"], twin["moved"], "bfloat16"):
            _fail_by_place(job, answer, twin, arguments)
        _require_mixed_report(job, answer["report"], twin["report"])


def _require_schedule_and_scale(
    job: Job, answer: dict[str, Any], twin: dict[str, Any], num_micro_batches: int
) -> None:
    updates, got = twin["scheduler_steps"], answer["scheduler_steps"]
    job.require(
        got == updates,
        expected=f"{updates} scheduler steps, one for each update",
        got=f"{got}",
        likely="the scheduler is stepped per micro-batch: the schedule ends after a fraction of the run"
        if got == num_micro_batches
        else "the scheduler is stepped at other times than the optimizer",
        look="the schedule was planned in updates",
    )
    job.require(
        answer["scale"] == twin["scale"],
        expected=f"a scale of {twin['scale']:g} at the end: `scaler.update()` once for each update",
        got=f"{answer['scale']:g}",
        likely="`scaler.update()` is missing, or called at other times than the step",
        look="inside a window the scale must stay: gradients of two scales cannot be added",
    )


def _fail_by_place(job: Job, answer: dict[str, Any], twin: dict[str, Any], arguments: dict[str, Any]) -> None:
    """The updates are wrong."""
    likely = {
        "clipped at every micro-step": "clipping at every micro-step: what is left of the sum depends on the order of "
        "the micro-batches",
        "clipped while scaled": "the clip sees scaled gradients: `unscale_` comes after it, or not at all",
        "unclipped": "no clipping, or clipping after the step",
        "not divided": "the loss is not divided by the samples of the window",
        "mean of means": "divided by the wrong count: the number of micro-batches, which are uneven",
    }
    mistake = name_the_mistake(
        likely,
        twin=twin_of(job, baselines.TRAIN_ACCUMULATED_MIXED, "mixed_once", arguments),
        is_same=lambda wrong: are_equal(answer["moved"], wrong["moved"], "bfloat16"),
    )
    share = float(np.linalg.norm(answer["moved"])) / max(float(np.linalg.norm(twin["moved"])), 1e-12)
    raise failure(
        expected="the updates of a loop that scales, gathers, unscales, clips, steps, updates, schedules",
        got="other updates" if mistake else f"weights that moved {share:.2f} times as far, or elsewhere",
        likely=mistake
        or "gradients of two windows are mixed, or a call stands on the wrong side of the step",
        look="write the calls of one update in order on paper, then compare",
    )


def _require_mixed_report(job: Job, report: dict[str, float], expected: dict[str, float]) -> None:
    likely = {
        "loss": "a mean of the micro-batches' means, or a loss that is still scaled",
        "grad_norm": "the norm after clipping, of scaled gradients, or of one micro-batch",
        "num_updates": "micro-batches are counted",
    }
    require_report(job, report, expected, likely, rel_tol=0.03)
