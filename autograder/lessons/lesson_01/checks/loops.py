"""The checks of exercises 1.3 and 1.4: one epoch of training, and an evaluation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    TOLERANCES,
    are_equal,
    name_the_mistake,
    require_report,
    twin_of,
    watched,
)
from autograder.lessons.lesson_01 import baselines

MAX_SYNCS_PER_EPOCH = 8


def check_train_one_epoch(job: Job) -> None:
    """1.3: the weights and the report of a hand-written loop, without a sync per step."""
    learner, num_batches = job.learner(), 24
    for gradient_scale in (1.0, 20.0):
        arguments: dict[str, Any] = {
            "seed": job.seed(),
            "num_batches": num_batches,
            "max_norm": 0.5,
            "gradient_scale": gradient_scale,
        }
        answer = learner.call("train_epoch_once", **arguments)
        twin = job.twin(baselines.TRAIN_EPOCH).call("train_epoch_once", **arguments)
        _require_steps(job, answer, num_batches)
        if not are_equal(answer["weights"], twin["weights"], "float32"):
            _fail_by_name(job, answer, twin, arguments)
        _require_report(job, answer["report"], twin["report"])
    job.counts["syncs_per_epoch"] = answer["syncs"]
    job.counts["steps_per_epoch"] = num_batches
    watched(job, answer, "syncs are not counted, as in another thread")
    job.require(
        answer["syncs"] <= MAX_SYNCS_PER_EPOCH,
        expected=f"at most {MAX_SYNCS_PER_EPOCH} device syncs in an epoch of {num_batches} steps",
        got=f"{answer['syncs']}",
        likely="a sync every step: `.item()`, `float()`, `int()` or `if tensor` inside the loop",
        look="keep sums as tensors, and bring them to Python after the loop",
    )


def _require_steps(job: Job, answer: dict[str, Any], num_batches: int) -> None:
    job.require(
        answer["optimizer_steps"] == num_batches,
        expected=f"{num_batches} optimizer steps for {num_batches} batches",
        got=f"{answer['optimizer_steps']}",
        likely="a batch is skipped, or stepped twice",
        look="one `optimizer.step()` per batch",
    )
    job.require(
        answer["scheduler_steps"] == num_batches,
        expected=f"{num_batches} scheduler steps, one per optimizer step",
        got=f"{answer['scheduler_steps']}",
        likely="the scheduler is stepped per epoch, or not at all",
        look="the schedule counts steps: call it inside the loop",
    )
    job.require(
        answer["train_mode"],
        expected="the model in training mode at every step",
        got="evaluation mode: dropout was off",
        likely="`model.train()` is missing; an evaluation before may have left the model in eval()",
        look="switch the mode in the first line of an epoch",
    )


def _fail_by_name(job: Job, answer: dict[str, Any], twin: dict[str, Any], arguments: dict[str, Any]) -> None:
    """The weights are wrong."""

    def unclipped(wrong: dict[str, Any]) -> str:
        if math.isclose(
            answer["report"].get("grad_norm", math.nan), wrong["report"]["grad_norm"], rel_tol=1e-3
        ):
            return "clipping comes after the optimizer's step, so the step itself is unclipped"
        return "clipping comes before backward (or not at all), so there is nothing to clip yet"

    mistake = name_the_mistake(
        {
            "scheduler first": "the scheduler is stepped before the optimizer, so every step uses the next step's lr",
            "gradients never cleared": "gradients are never cleared: each step adds those of all steps before",
            "unclipped": unclipped,
        },
        twin=twin_of(job, baselines.TRAIN_EPOCH, "train_epoch_once", arguments),
        is_same=lambda wrong: are_equal(answer["weights"], wrong["weights"], "float32"),
    )
    if mistake:
        raise failure(
            expected="the weights of a loop that clears, goes backward, clips, steps, schedules",
            got="other weights",
            likely=mistake,
            look="write the five calls of a step in order on paper, then compare",
        )
    difference = float(np.abs(answer["weights"] - twin["weights"]).max())
    raise failure(
        expected="the weights of a hand-written loop on the same batches",
        got=f"weights that differ by up to {difference:.3g}",
        likely="another loss than the batch mean of the cross-entropy, or a step that works on something else",
        look="run one batch by hand and compare each number with your loop's",
    )


_BY_HAND = "work NAME out by hand for two batches of 3 and 1 samples"


def _require_report(job: Job, report: dict[str, float], expected: dict[str, float]) -> None:
    likely = {
        "loss": _why_another_loss(report, expected),
        "grad_norm": "the norm after clipping, or only of the last step; clip_grad_norm_ returns the norm before",
        "num_samples": "batches counted as if all were full",
        "num_tokens": "padding counted as tokens",
        "pad_fraction": "the mean of the batches' fractions; it is one fraction over the whole epoch",
    }
    require_report(job, report, expected, likely, look=_BY_HAND)


def _why_another_loss(report: dict[str, float], expected: dict[str, float]) -> str:
    if math.isclose(report.get("loss", math.nan), expected["mean_of_means"], rel_tol=TOLERANCES["float32"]):
        return "averaged batch means: the short last batch counts as much as a full one"
    return "a sum where a mean is asked for, or a mean over the wrong number"


def check_evaluate(job: Job) -> None:
    """1.4: evaluation mode, no gradients, means over samples, and the model left as it came."""
    for training in (True, False):
        arguments: dict[str, Any] = {"seed": job.seed(), "num_batches": 6, "training": training}
        answer = job.learner().call("evaluate_once", **arguments)
        twin = job.twin(baselines.EVALUATE).call("evaluate_once", **arguments)
        _require_quiet_forward(job, answer, twin, training)
        likely = {
            "loss": _why_another_loss(answer["report"], twin["report"]),
            "accuracy": "the mean of the batches' accuracies, or a count that was not divided",
            "num_samples": "batches counted",
        }
        require_report(job, answer["report"], twin["report"], likely, look=_BY_HAND)


def _require_quiet_forward(job: Job, answer: dict[str, Any], twin: dict[str, Any], training: bool) -> None:
    job.require(
        answer["eval_mode"],
        expected="the model in evaluation mode while it is measured",
        got="training mode: dropout was on" if answer["forwards"] else "no forward pass at all",
        likely="forgot `model.eval()`",
        look="what do dropout layers do in training mode?",
    )
    job.require(
        not answer["gradients"],
        expected="no gradients recorded",
        got="a forward pass that keeps everything for backward",
        likely="gradients are still on: `torch.inference_mode()` or `torch.no_grad()` is missing",
        look="memory: what is kept of each batch, and for whom?",
    )
    job.require(
        np.array_equal(answer["weights"], twin["weights"]),
        expected="the weights as they came",
        got="changed weights",
        likely="an optimizer step inside the evaluation",
        look="take the step out: measuring must not train",
    )
    job.require(
        not answer["left_frozen"],
        expected="parameters that still ask for gradients",
        got="frozen ones",
        likely="`requires_grad_(False)` is not put back: the next epoch would train nothing",
        look="put it back last; or use `torch.inference_mode()`, which ends by itself",
    )
    job.require(
        answer["left_training"] == training,
        expected=f"the model back in {'training' if training else 'evaluation'} mode, as it came",
        got="the other mode",
        likely="the mode is not put back: the next epoch would train without dropout"
        if training
        else "`model.train()` is called whatever the mode was before",
        look="remember `model.training` first; put it back last, also when an error is raised",
    )
