"""The check of exercise 3.3: autocast, scaler, clipping and schedule around a window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import are_equal, name_the_mistake, require_left_alone, twin_of
from autograder.lessons.lesson_03 import twins
from autograder.lessons.lesson_03.checks.windows import (
    CUT_LOSS,
    LOSS,
    ROUNDING,
    require_calls,
    require_cleared,
    require_told,
    require_untouched,
    require_updates,
)

# Right loops differed by 0.06 in a weight here and there, and by 0.005 in the length of all, the loss and the norm.
LENGTH_ROUNDING = 0.015
REPORT_ROUNDING = 0.015
LOW_PRECISION_SLACK = 0.99  # the same matrix products are counted, whatever stands around them
NUM_LONE = 7  # passes of one text: what one loss in bfloat16 hides by luck, seven do not
_DIVIDED_WRONG = "divided by the wrong count: "
# The first pass clips nothing: what is wrong there is no clip. Where a clip strikes, a wrong one is the likely mistake.
WRONG_UPDATES = {
    "thawed": "parameters that came frozen are trained: `requires_grad_(True)` is not asked for",
    "one group clipped": "only the gradients of the optimizer's first parameter group are clipped",
    "one group cleared": "only the gradients of the optimizer's first parameter group are cleared",
    "left over": "gradients that were there before the call reach the first update: nothing clears them",
    "clipped at every micro-step": "clipping at every micro-step: what is left of the sum depends on the order of "
    "the micro-batches",
    "clipped while scaled": "the clip sees scaled gradients: `unscale_` comes after it, or not at all",
    "unclipped": "no clipping, or clipping after the step",
    "clipped by value": "each value is clipped, not the norm of them all",
    "clipped to 1": "clipped to a norm of 1, whatever `max_norm` says",
    "never cleared": "gradients are never cleared: each update adds those of all updates before",
    "cleared inside": "`zero_grad` inside the window: only the last micro-batch reaches the step",
    "first alone": "the windows begin at the wrong place: the first micro-batch makes an update of its own, and the "
    "last ones make none",
    "not divided": "the loss is not divided by the samples of the window: the means of the micro-batches are added up",
    "sum": "the loss is not divided by the samples of the window: the sum is used as it is",
    "mean of means": f"{_DIVIDED_WRONG}the number of micro-batches, which are uneven",
    "full window": f"{_DIVIDED_WRONG}`grad_accum_steps`, also where the window is shorter and micro-batches are uneven",
    "sum over steps": f"{_DIVIDED_WRONG}sums of losses, divided by the number of micro-batches",
    "never unscaled": "the step is taken with scaled gradients",
    "schedule first": "the scheduler moves before the optimizer: the first rate is never used",
    "mask from ids": "the mask is made from the ids, and is not the one that came: an id of 0 may stand inside a text",
    "one autocast": "one autocast around all updates: until it is left it keeps its bfloat16 copies of the weights, so "
    "that later updates compute with the first weights",
}
WRONG_NORM = {
    "clipped": "the norm *after* clipping",
    "scaled": "the norm of gradients that are still scaled",
    "last": "the norm of the last update alone",
    "largest": "the largest norm, where the mean is asked for",
    "norms": "a sum of norms that is divided by nothing",
    "first group": "the norm of the optimizer's first parameter group alone",
    "root": "the root of the mean of the squared norms, where the mean of the norms is asked for",
    "by samples": "a mean over samples, where that over updates is asked for",
    "": "another norm than that of all gradients of an update, unscaled, before they are clipped",
}


def check_train_accumulated_mixed(job: Job) -> None:
    """3.3: autocast, scaler, clipping and schedule, each once where it belongs."""
    cases = _cases(job)
    twin = job.twin(twins.TRAIN_ACCUMULATED_MIXED).call("mixed_all", cases=cases)
    answers = []
    for case, right in zip(cases, twin, strict=True):
        answers.append(job.learner().call("mixed_once", **case))
        _require_pass(job, case, answers[-1], right)
    _require_exact_losses(job, cases[-NUM_LONE:], answers[-NUM_LONE:], twin[-NUM_LONE:])
    # Last: what it shows beside a loss that is cut has its name by now. Losses and norms of one update are far from
    # those of the others.
    sure = cases[4] | {"is_sure": True, "rows": [3, 2, 4, 1, 2], "easy": [0, 1], "grad_accum_steps": 2}
    right = job.twin(twins.TRAIN_ACCUMULATED_MIXED).call("mixed_once", **sure)
    _require_pass(job, sure, job.learner().call("mixed_once", **sure), right)
    job.counts["low_precision_share"] = round(answers[0]["bfloat16"], 3)


def _cases(job: Job) -> list[dict[str, Any]]:
    """Passes that differ in all that the text leaves open."""
    rng, steps = job.rng, int(job.rng.integers(3, 5))
    short = int(rng.integers(1, steps))
    # Micro-batches, window, factor of the gradients, limit of their norm. Without clipping the divisor shows in the
    # length of the updates, with it the clipping itself.
    passes: list[tuple[int, int, float, float]] = [
        (2 * steps + short, steps, 1.0, float(rng.uniform(40.0, 60.0))),
        (steps + short, steps, 20.0, float(rng.uniform(0.3, 0.6))),
        (4, 2, 20.0, float(rng.uniform(1.2, 2.0))),
        (3, 1, 1.0, 50.0),
        (3, 8, 1.0, float("inf")),
    ]
    passes += [(1, 1 + number % 3, 1.0, 50.0) for number in range(NUM_LONE)]
    return [
        {
            "seed": job.seed(),
            "rows": [1] if number >= len(passes) - NUM_LONE else rng.integers(1, 10, size=num).tolist(),
            "grad_accum_steps": of_steps,
            "max_norm": max_norm,
            "gradient_scale": factor,
            "learning_rate": float(rng.uniform(0.1, 0.25)),
            # Where gradients are never cleared, the next ones stand beside what was divided by the scale: a scale of 1
            # shows it, and tells it from gradients that were there before.
            "init_scale": 1.0 if of_steps == 1 else 2.0 ** int(rng.integers(7, 13)),
            "growth_interval": 3 if of_steps == 1 else 1 + number % 2,
            "is_in_groups": number in (0, 2, 3),
            "left": {3: 0.1, 4: math.nan}.get(number),
            "momentum": 0.5 * (number == 2),
            "easy": [],
            "is_frozen": number == 2,
            "is_training": bool(number % 2),
            "is_counted": number == 0,  # operators: it costs, and one pass shows it
            "is_sure": False,
        }
        for number, (num, of_steps, factor, max_norm) in enumerate(passes)
    ]


def _require_pass(job: Job, case: dict[str, Any], answer: dict[str, Any], right: dict[str, Any]) -> None:
    def name(likely: Mapping[str, str]) -> str:
        return name_the_mistake(
            likely,
            twin=twin_of(job, twins.TRAIN_ACCUMULATED_MIXED, "mixed_all", {"cases": [case]}),
            is_same=lambda wrong: _are_same_updates(answer["moved"], wrong[0]["moved"]),
        )

    _require_no_complaint(job, answer, case["grad_accum_steps"])
    require_cleared(job, answer["moved"], case["left"])
    require_left_alone(job, answer["set_before"], answer["set_after"], when="after the call")
    require_untouched(job, answer["changed"])
    num_micro_batches = len(case["rows"])
    require_updates(
        job,
        answer,
        num_micro_batches=num_micro_batches,
        grad_accum_steps=case["grad_accum_steps"],
        updates=right["optimizer_steps"],
        name=name,
    )
    require_calls(job, answer["calls"], right["calls"])
    _require_schedule_and_scale(job, answer, right, num_micro_batches, case["grad_accum_steps"])
    _require_precision(job, answer, right)
    if not _are_same_updates(answer["moved"], right["moved"]):
        mistake = name(WRONG_UPDATES) or CUT_LOSS * case["is_sure"]
        share = float(np.linalg.norm(answer["moved"])) / max(float(np.linalg.norm(right["moved"])), 1e-12)
        raise failure(
            expected="the updates of a loop that scales, gathers, unscales, clips, steps, updates, schedules",
            got="other updates" if mistake else f"weights that moved {share:.2f} times as far, or elsewhere",
            likely=mistake
            or "gradients of two windows are mixed or changed on the way, or a call is on the wrong side of the step, "
            "or another loss is minimised",
            look="write the calls of one update in order on paper, then compare",
        )
    updates = {"": "something else than optimizer steps is counted, such as micro-batches"}
    wrong = {"loss": LOSS, "grad_norm": WRONG_NORM, "num_updates": updates}
    require_told(job, answer, right["report"], wrong, rel_tol=REPORT_ROUNDING)


def _are_same_updates(got: np.ndarray, right: np.ndarray) -> bool:
    """Each weight within bfloat16's rounding; and all of them as far on the right way, which rounds away."""
    if not are_equal(got, right, "bfloat16"):
        return False
    wide = right.astype(np.float64)
    return bool(abs(float(got @ wide) / float(wide @ wide) - 1.0) <= LENGTH_ROUNDING)


def _require_no_complaint(job: Job, answer: dict[str, Any], grad_accum_steps: int) -> None:
    """The scaler itself says when it is called in another order; here its words are told in others."""
    says, has_stepped = answer["scaler_says"], answer["optimizer_steps"] > 0
    likely, expected = "", "one unscale for each update"
    if "unscale_() has already" in says:
        likely = "unscale and clip at every micro-step; they belong to the update"
        if has_stepped:
            likely = "`unscale_` is called twice for one update"
    elif "unscale_() is being called after" in says:
        likely = "`unscale_` and the clip come after the step, which they are for"
        if len(answer["calls"]) > grad_accum_steps:
            expected = "one `scaler.update()` for each step"
            likely = "`scaler.update()` is missing: for the scaler the update before is still open"
    elif "step() has already" in says:
        expected, likely = (
            "one `scaler.update()` for each step",
            "`scaler.update()` is missing after the step",
        )
    elif "No inf checks" in says:
        expected = "`scaler.step(optimizer)` before each `scaler.update()`"
        likely = (
            "`scaler.update()` at another time than once behind `scaler.step(optimizer)`; or `optimizer.step()` in its "
            "place, which the scaler hears nothing of"
        )
    elif says:
        expected, likely = "losses that are scaled", "`scaler.scale` is never called"
    job.require(
        not says,
        expected=expected,
        got=f"torch's error: {' '.join(says.split())[:160]}",
        likely=likely,
        look="indent: what stands inside the loop over the window, and what after it?",
    )


def _require_schedule_and_scale(
    job: Job, answer: dict[str, Any], right: dict[str, Any], num_micro_batches: int, grad_accum_steps: int
) -> None:
    updates, got = right["scheduler_steps"], answer["scheduler_steps"]
    job.require(
        got == updates,
        expected=f"{updates} scheduler steps, one for each update",
        got=f"{got}",
        likely="the scheduler is stepped per micro-batch: the schedule ends after a fraction of the run"
        if got == num_micro_batches
        else "the scheduler never moves"
        if got == 0
        else "the scheduler does not move at the update of the last, shorter window"
        if got == num_micro_batches // grad_accum_steps
        else "the scheduler is stepped at other times than the optimizer",
        look="the schedule was planned in updates",
    )
    job.require(
        answer["is_scaler_used"],
        expected="losses that are scaled by `scaler`",
        got="a scaler that was never asked",
        likely="the scaler is left out: bfloat16 seldom needs it, but it was asked for",
        look="`scaler.scale(loss).backward()`",
    )
    job.require(
        answer["scale"] == right["scale"],
        expected=f"a scale of {right['scale']:g} at the end: `scaler.update()` once for each update",
        got=f"{answer['scale']:g}",
        likely="`scaler.update()` is missing, or called at other times than the step",
        look="inside a window the scale must stay: gradients of two scales cannot be added",
    )


def _require_precision(job: Job, answer: dict[str, Any], right: dict[str, Any]) -> None:
    job.require(
        answer["float16"] == 0,
        expected="matrix products in bfloat16",
        got=f"{answer['float16']:.0%} of them in float16",
        likely="autocast was given float16, which has another range and other rounding",
        look='`torch.autocast("cpu", torch.bfloat16)`',
    )
    low = answer["bfloat16"]  # 0, as the twin's, where nothing is counted
    job.require(
        low >= LOW_PRECISION_SLACK * right["bfloat16"],
        expected=f"forward and loss under autocast: {right['bfloat16']:.0%} of the matrix products in bfloat16",
        got=f"{low:.0%}",
        likely="autocast is missing, or closed before the model is called"
        if low == 0
        else "autocast is not around each forward pass",
        look='`with torch.autocast("cpu", torch.bfloat16):` around forward and loss',
    )
    job.require(
        answer["dtypes"] == ["torch.float32"],
        expected="weights in float32",
        got=", ".join(answer["dtypes"]),
        likely="the model was converted; autocast converts by itself, operation by operation",
        look="no `.half()` and no `.bfloat16()` on the model",
    )


def _require_exact_losses(
    job: Job, cases: list[dict[str, Any]], answers: list[dict[str, Any]], right: list[dict[str, Any]]
) -> None:
    """Before the first step the logits are equal to the bit, so the loss has no rounding but its own."""
    got, expected = (np.array([one["report"]["loss"] for one in some]) for some in (answers, right))
    if are_equal(got, expected, "float32"):
        return
    cause = name_the_mistake(
        {
            "loss in bfloat16": "the loss is computed in bfloat16: outside of autocast, which takes float32 for "
            "`F.cross_entropy`; or by operations for which it does not, as `log_softmax` on the CPU"
        },
        twin=twin_of(job, twins.TRAIN_ACCUMULATED_MIXED, "mixed_all", {"cases": cases}),
        is_same=lambda wrong: are_equal(got, np.array([one["report"]["loss"] for one in wrong]), "float32"),
    )
    worst = int(np.abs(got - expected).argmax())
    raise failure(
        expected=f"the loss of one text from its logits in float32, {expected[worst]:.6g}, up to {ROUNDING:g} of it",
        got=f"{got[worst]:.6g}",
        likely=cause or "the loss is computed or kept in a precision below float32",
        look="print the dtype of the loss",
    )
