"""The check of exercise 3.3: autocast, scaler, clipping and schedule around a window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    TOLERANCES,
    are_equal,
    name_the_mistake,
    relative_difference,
    require_close,
    require_left_alone,
    require_products,
    twin_of,
)
from autograder.lessons.lesson_03 import twins
from autograder.lessons.lesson_03.checks.mixed_words import WRONG_NORM, WRONG_UPDATES
from autograder.lessons.lesson_03.checks.windows import (
    CUT_LOSS,
    LEFT_BEHIND,
    LOSS,
    put_told_calls,
    require_calls,
    require_cleared,
    require_frozen,
    require_told,
    require_untouched,
    require_updates,
)

# Right loops differed by 0.06 in a weight here and there, and by 0.005 in the length of all, the loss and the norm.
LENGTH_ROUNDING = 0.015
WAY_ROUNDING = 0.05  # the distance of two ends, as a share of the way: right loops came to 0.02
REPORT_ROUNDING = 0.015
CLIP_ROUNDING = 1e-3  # the clip is float32's
LOSS_ROUNDING = 3e-5  # of one text from logits that are equal to the bit
LOW_PRECISION_SLACK = 0.99  # the same matrix products are counted, whatever stands around them
LONG = 70  # updates: what is done every so many of them, or fills up
NUM_LONE = 7  # passes of one text: what one loss in bfloat16 hides by luck, seven do not


def check_train_accumulated_mixed(job: Job) -> None:
    """3.3: autocast, scaler, clipping and schedule, each once where it belongs."""
    cases = _cases(job)
    twin = job.twin(twins.TRAIN_ACCUMULATED_MIXED).call("mixed_all", cases=cases)
    answers = []
    for case, right in zip(cases, twin, strict=True):
        answers.append(job.learner().call("mixed_once", **case))
        put_told_calls(job, answers[-1])
        _require_pass(job, case, answers[-1], right)
    _require_exact_losses(job, cases[-NUM_LONE:], answers[-NUM_LONE:], twin[-NUM_LONE:])
    # Last: what it shows beside a loss that is cut has its name by now. Losses and norms of one update are far from
    # those of the others.
    sure = cases[4] | {"is_sure": True, "rows": [3, 2, 4, 1, 2], "easy": [0, 1], "grad_accum_steps": 2}
    # Short steps: over many of them roundings grow.
    long = cases[3] | {"rows": [2] * LONG, "grad_accum_steps": 1, "learning_rate": 0.02}
    for case in (sure, long):
        answer, right = job.both(twins.TRAIN_ACCUMULATED_MIXED, "mixed_once", **case)
        put_told_calls(job, answer)
        _require_pass(job, case, answer, right)
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
            # Small where the pass is the second one: bfloat16's roundings of the first grow with the steps.
            "learning_rate": float(rng.uniform(0.1, 0.25)) * (0.2 if number == 2 else 1.0),
            # Where gradients are never cleared, the next ones stand beside what was divided by the scale: a scale of 1
            # shows it, and tells it from gradients that were there before.
            "init_scale": 1.0 if of_steps == 1 else 2.0 ** int(rng.integers(7, 13)),
            "growth_interval": 3 if of_steps == 1 else 1 + number % 2,
            "is_in_groups": number in (0, 2, 3),
            "left": {3: 0.1, 4: math.nan, 5: 0.1}.get(number),
            "momentum": 0.5 * (number == 2),
            "easy": [],
            "is_frozen": number == 5,  # after NaN, which shows what is not cleared at all
            "is_training": bool(number % 2),
            "is_counted": number == 0,  # operators: it costs, and one pass shows it
            "is_sure": False,
            "is_again": number == 2,
        }
        for number, (num, of_steps, factor, max_norm) in enumerate(passes)
    ]


def _require_pass(job: Job, case: dict[str, Any], answer: dict[str, Any], right: dict[str, Any]) -> None:
    def name(likely: Mapping[str, str]) -> str:
        return name_the_mistake(
            likely,
            twin=twin_of(job, twins.TRAIN_ACCUMULATED_MIXED, "mixed_all", {"cases": [case]}),
            # Two mistakes may be near each other, as where only the last update is another.
            is_same=lambda wrong: _are_same_updates(answer["moved"], wrong[0]["moved"], WAY_ROUNDING / 3),
        )

    _require_no_complaint(job, answer, case["grad_accum_steps"])
    require_cleared(job, answer["moved"], case["left"])
    require_left_alone(job, answer["set_before"], answer["set_after"], when="after the call")
    require_untouched(job, is_changed=answer["is_changed"])
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
    require_frozen(job, answer["frozen"], name, WRONG_UPDATES)
    if not _are_same_updates(answer["moved"], right["moved"]):
        mistake = name(WRONG_UPDATES) or CUT_LOSS * case["is_sure"] or _why_again(job, case)
        share = float(np.linalg.norm(answer["moved"])) / max(float(np.linalg.norm(right["moved"])), 1e-12)
        raise failure(
            expected="the updates of a loop that scales, gathers, unscales, clips, steps, updates, schedules",
            got="other updates" if mistake else f"weights that moved {share:.2f} times as far, or elsewhere",
            likely=mistake
            or "gradients of two windows are mixed, or changed on the way (as where each group of parameters is "
            "clipped by its own norm), or a call is on the wrong side of the step, or another loss is minimised",
            look="write the calls of one update in order on paper, then compare",
        )
    longest = max(answer["step_norms"], default=0.0)
    job.require(
        longest <= (1 + CLIP_ROUNDING) * case["max_norm"],
        expected=f"steps with gradients of at most max_norm = {case['max_norm']:.6g}",
        got=f"one of {longest:.6g}",
        likely="clipped to a little more than `max_norm`",
        look="the length of all gradients together behind the clip, in float32",
    )
    updates = {"": "something else than optimizer steps is counted, such as micro-batches"}
    wrong = {"loss": LOSS, "grad_norm": WRONG_NORM, "num_updates": updates}
    require_told(job, answer, right["report"], wrong, rel_tol=REPORT_ROUNDING)
    if longest < 0.9 * case["max_norm"]:  # nothing was clipped: what was stepped with is what is to be told
        norm, taken = answer["report"]["grad_norm"], float(np.mean(answer["step_norms"]))
        require_close(job, "grad_norm", norm, taken, likely=WRONG_NORM[""], rel_tol=CLIP_ROUNDING)


def _why_again(job: Job, case: dict[str, Any]) -> str:
    """Of a pass that is wrong as the second one: LEFT_BEHIND where it is right as the first."""
    first = case | {"is_again": False}
    got, right = job.both(twins.TRAIN_ACCUMULATED_MIXED, "mixed_once", **first)
    return LEFT_BEHIND if case["is_again"] and _are_same_updates(got["moved"], right["moved"]) else ""


def _are_same_updates(got: np.ndarray, right: np.ndarray, way: float = WAY_ROUNDING) -> bool:
    """Each weight within a few of bfloat16's roundings; and all of them as far on the right way, which rounds away."""
    if got.shape != right.shape or not np.isfinite(got).all():
        return False
    wide, off = right.astype(np.float64), got.astype(np.float64) - right
    square = float(wide @ wide)
    return (
        relative_difference(got, right) <= 3 * TOLERANCES["bfloat16"]
        and float(off @ off) <= way**2 * square
        and abs(float(off @ wide)) <= LENGTH_ROUNDING * square
    )


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
        answer["autocast"] in (["torch.bfloat16"], ["torch.float16"]),
        expected="each forward pass under autocast to bfloat16",
        got=f"autocast: {', '.join(answer['autocast'])}",
        likely="autocast is missing, or closed before the model is called"
        if answer["autocast"] == ["none"]
        else "autocast is not around each forward pass",
        look='`with torch.autocast("cpu", torch.bfloat16):` around forward and loss',
    )
    job.require(
        answer["float16"] == 0,
        expected="matrix products in bfloat16",
        got=f"{answer['float16']:.0%} of them in float16",
        likely="autocast was given float16, which has another range and other rounding",
        look='`torch.autocast("cpu", torch.bfloat16)`',
    )
    if right["flops"]:
        require_products(job, answer["flops"], right["flops"])
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
    if relative_difference(got, expected) <= LOSS_ROUNDING:
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
        expected=f"the loss of one text from its logits in float32: {expected[worst]:.6g}, up to {LOSS_ROUNDING:g}",
        got=f"{got[worst]:.6g}",
        likely=cause or "the loss is computed or kept in a precision below float32",
        look="print the dtype of the loss",
    )
