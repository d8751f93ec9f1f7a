"""The check of exercise 2.2: a step in fp16 with a scaler."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    require_close,
    require_keys,
    require_left_alone,
)
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.lesson_02.checks.around import (
    require_far_scales,
    require_high_scales,
    require_kept,
    require_kinds,
    require_second_trainer,
    require_true_scale,
)
from autograder.lessons.lesson_02.checks.gradients import BAD, ORDER, Where, require_gradients
from autograder.lessons.lesson_02.checks.rounding import all_of_16_bits
from autograder.lessons.lesson_02.checks.scales import Plan, likely_mistake
from autograder.lessons.lesson_02.checks.traces import (
    put_told_steps,
    require_own_device,
    require_told,
    require_trained,
    require_untouched,
)

_REFUSALS = {
    "already been called on this optimizer": "unscaled twice: the scaler lets you divide by the scale once a step",
    "FP16 gradients": "the weights themselves are fp16 (`.half()` on the model): autocast leaves them fp32",
    "step()": "`update()` is missing: the scaler still waits for the end of the last step",
    "inf checks": "the optimizer has no gradients when the scaler looks: clear them before backward, not after",
}


def check_fp16_trainer(job: Job) -> None:
    """2.2: the gradients that a step uses, the steps that are skipped, the scale, and a run resumed elsewhere."""
    # The longer one is saved after two good steps or three: more than a mere flag holds.
    short, long = ((2, 3), (2, 4), (3, 4))[job.rng.integers(3)]
    clips = {"max_norm": round(float(job.rng.uniform(0.01, 0.05)), 4)}
    _check_run(job, ("g" * (short - 1) + "b") * 2 + "b" + "g" * (short + 1), clips | _drawn(job, short))
    resume_at = long + 1
    roomy = {"max_norm": float(job.rng.integers(10**6, 10**7))}  # more than a norm times any scale
    _check_run(job, "bb" + "g" * (long - 1) + "gb" + "g" * (long + 1), roomy | _drawn(job, long), resume_at)


def _drawn(job: Job, growth_interval: int) -> dict[str, Any]:
    """A scale that is no power of two: high enough for the body's gradients when it is halved three times."""
    return {"init_scale": round(float(job.rng.uniform(6e3, 16e3)), 1), "growth_interval": growth_interval}


def _check_run(job: Job, kinds: str, options: dict[str, Any], resume_at: int | None = None) -> None:
    """One run over steps that are good or bad, as the letters of `kinds` say."""
    plan = Plan(
        tuple(kind == "b" for kind in kinds),
        options["init_scale"],
        options["growth_interval"],
        len(kinds) if resume_at is None else resume_at,
    )
    arguments = {
        "seed": job.seed(),
        "num_steps": len(kinds),
        "spikes": _spikes(job, plan),
        "options": options,
    }
    answer, twin = _both(job, arguments, 0, resume_at, None, None)
    require_told(job, answer["stumbled"])
    _require_run(job, answer, twin, plan, arguments)
    require_left_alone(job, answer["set_before"], answer["set_after"], when="after the steps")
    if resume_at is not None:
        resumed = _both(job, arguments, resume_at, None, answer["saved"], twin["saved"])
        _require_run(job, *resumed, plan, arguments, [step["report"]["scale"] for step in answer["steps"]])
        own, right = job.both(baselines.FP16_TRAINER, "high_scales", seed=arguments["seed"])
        require_high_scales(job, own, right)
        require_true_scale(job, job.learner().call("overflowing", seed=job.seed()))
        left = job.learner().call("step_without_a_label", seed=job.seed())
        require_left_alone(job, left["before"], left["after"], when="after an error of the loss")
        beside: dict[str, Any] = {"source": job.source, "entry": job.entry, "seed": job.seed()}
        require_own_device(job, job.learner().call("trainer_beside_a_gpu", **beside), "float16")


def _spikes(job: Job, plan: Plan) -> list[tuple[int, float, str]]:
    """Bad steps, the weight's place among all from 0 to 1, the kind: in a run first infinite and last, then NaN.

    The other run begins with a NaN; then the loss itself is one.
    """
    signs = [str(sign) for sign in job.rng.permutation(["inf", "-inf"])]
    how = [(1.0, signs[0]), (1.0, "nan"), (0.0, signs[1])]
    if plan.is_bad[0]:
        how = [(0.0, "nan"), (0.0, "loss"), (float(job.rng.uniform(0.2, 0.8)), signs[1])]
    numbers = [number for number, is_bad in enumerate(plan.is_bad) if is_bad]
    return [(number, *one) for number, one in zip(numbers, how, strict=True)]


def _both(
    job: Job, arguments: dict[str, Any], first: int, until: int | None, own: Any, right: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the learner's trainer and ours did from `first` on, each after loading what it had saved."""
    worker = job.learner() if own is None else job.worker("learner, later", job.source)
    part: dict[str, Any] = {"first": first, "until": until}
    answer = worker.call("fp16_steps", **arguments, **part, saved=own)
    _require_no_refusal(job, answer)
    _require_loadable(job, answer)
    _require_fp16(job, answer)
    put_told_steps(worker, answer["steps"], "the run")
    twin = job.twin(baselines.FP16_TRAINER).call("fp16_steps", **arguments, **part, saved=right)
    return answer, twin


def _require_run(
    job: Job,
    answer: dict[str, Any],
    twin: dict[str, Any],
    plan: Plan,
    arguments: dict[str, Any],
    scales: list[float] | None = None,
) -> None:
    """`scales`: those of the steps before, where this is a run that goes on."""
    first = len(scales or [])
    scales_of_all = [*(scales or []), *(step["report"].get("scale", math.nan) for step in answer["steps"])]
    losses = [step["report"]["loss"] for step in answer["steps"] if "loss" in step["report"]]
    job.require(
        not all_of_16_bits(losses, "float16"),
        expected="a loss in float32",
        got=f"losses that are all float16 numbers, such as {losses[0] if losses else math.nan:.6g}",
        likely="the loss is computed outside autocast, from fp16 logits, or by operations that autocast leaves in fp16",
        look="inside autocast `F.cross_entropy` is one of the operations that are kept in fp32",
    )
    norms = [step["report"].get("grad_norm", math.nan) for step in answer["steps"]]
    job.require(
        not all_of_16_bits(norms, "float16"),
        expected="norms in float32",
        got=f"norms that are all float16 numbers, such as {norms[-1]:.6g}",
        likely="the norm is rounded to fp16: the true gradients are fp32, and so is their norm",
        look="report the norm as `clip_grad_norm_` returns it",
    )
    for number, (own, right) in enumerate(zip(answer["steps"], twin["steps"], strict=True), start=first):
        where = Where(number, plan.is_bad[number], is_resumed=scales is not None, arguments=arguments)
        _require_step(job, own, right, plan, where)
        _require_scale(job, scales_of_all, plan, where)
        require_gradients(job, own, right, where)
    require_second_trainer(job, answer, twin, answer["defaults"])
    require_kept(job, answer)
    require_far_scales(job, answer["far"], twin["far"])
    require_untouched(job, answer["changed"])


def _require_no_refusal(job: Job, answer: dict[str, Any]) -> None:
    said = answer["refused"]
    if said is not None:
        likely = next((text for words, text in _REFUSALS.items() if words in said), "calls in another order")
        raise failure(
            expected="steps that the scaler takes", got=f"the scaler says: {said}", likely=likely, look=ORDER
        )


def _require_loadable(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        answer["unloadable"] is None,
        expected="a state that `torch.load(..., weights_only=True)` takes",
        got=f"one {answer['unloadable']}",
        likely="an object is saved, such as the scaler itself, and not its state",
        look="what does `scaler.state_dict()` hold?",
    )


def _require_fp16(job: Job, answer: dict[str, Any]) -> None:
    dtypes = sorted({dtype for step in answer["steps"] for dtype in step["dtypes"]})
    job.require(
        dtypes == ["float32"],
        expected="weights that are float32 at every step",
        got=f"weights of {', '.join(dtypes)}",
        likely="`.half()` on the model: small updates of the weights are rounded away",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    products = sorted({dtype for step in answer["steps"] for dtype in step["products"]})
    job.require(
        products == ["float16"],
        expected="layers that compute in float16",
        got=f"layers that compute in {', '.join(products) or 'nothing that is seen'}",
        likely="the model runs outside autocast, or in another type",
        look="`torch.autocast(device_type, torch.float16)`: on CPUs the default is bfloat16",
    )


def _require_step(job: Job, own: dict[str, Any], right: dict[str, Any], plan: Plan, where: Where) -> None:
    if where.is_bad:
        _, place, kind = where.spike
        job.require(
            not own["is_changed"],
            expected=f"unchanged weights in {where.text}, {BAD[kind]}",
            got="changed weights",
            likely=_why_used(where, place, kind),
            look="`scaler.step(optimizer)` skips it for you; `optimizer.step()` does not",
        )
        job.require(
            not own["is_average_changed"],
            expected=f"the optimizer's momentum as it was in {where.text}, {BAD[kind]}",
            got="another one",
            likely="a step is taken after all, with gradients of zero, or the optimizer's averages are thrown away",
            look="a step that overflowed never reaches the optimizer",
        )
    require_keys(job, own["report"], ("loss", "grad_norm", "scale"))
    require_kinds(job, own["kinds"])
    require_trained(job, own["num_forwards"], is_evaluated=own["is_evaluated"])
    _require_loss(job, own, right)
    if not where.is_bad:
        job.require(
            own["num_steps"] == 1,
            expected=f"one optimizer step in {where.text}",
            got=f"{own['num_steps']}",
            likely=_why_not_one(own["num_steps"], plan, where),
            look="what is done with a NaN that stayed from the last step?",
        )


def _why_used(where: Where, place: float, kind: str) -> str:
    """Of the bad gradients before this one none was used: that tells what is different now."""
    before = [
        spike for spike in where.arguments["spikes"] if spike[0] < where.number and not where.is_resumed
    ]
    if before and kind == "nan" and all(other[2] != "nan" for other in before):
        return "infinities are looked for, and NaN passes: one such step and all weights are NaN"
    if before and all(other[1] != place for other in before):
        return "some gradients are looked at, such as the last one, and not all"
    return (
        "a gradient that overflowed is used: one such step and all weights are NaN; or it is set to 0 and stepped with "
        "all the same, so that momentum and decay move them"
    )


def _why_not_one(num_steps: int, plan: Plan, where: Where) -> str:
    if num_steps > 1:
        return "a step is taken twice"
    if where.number and plan.is_bad[where.number - 1]:
        return "gradients left over from the step before: an infinity stays until they are cleared"
    return "the optimizer is never called, or a step is skipped whose gradient is finite"


def _require_loss(job: Job, own: dict[str, Any], right: dict[str, Any]) -> None:
    got, expected = own["report"]["loss"], right["report"]["loss"]
    if math.isnan(expected):
        job.require(
            not math.isfinite(got),
            expected="loss = NaN in the report, where it is",
            got=f"{got:g}",
            likely="a loss that is not finite is replaced: a broken step looks like a good one",
            look="report the loss as it comes",
        )
        return
    likely = "another loss than the cross-entropy of the batch"
    look = "cross-entropy of the logits and `labels`, its mean over the batch, and nothing multiplied with it"
    if abs(got) > 100 * abs(expected):  # no scale of the check is as small, no other mistake as large
        likely = "the loss is reported while it is multiplied by the scale"
        look = "keep the loss itself for the report"
    elif math.isclose(got, expected * own["num_rows"], rel_tol=1e-2):
        likely = "the sum over the batch, where its mean is asked for"
    require_close(job, "loss", got, expected, likely=likely, look=look)


def _require_scale(job: Job, scales: list[float], plan: Plan, where: Where) -> None:
    """`scales`: of all steps; up to this one they are right."""
    got, right = scales[where.number], plan.scales()[where.number]
    if not math.isclose(got, right, rel_tol=1e-6):
        is_left_out = where.is_bad and where.spike[2] == "loss" and got == scales[where.number - 1]
        raise failure(
            expected=f"scale = {right:g} after {where.text}",
            got=f"{got:g}",
            likely=(is_left_out and "a step whose loss is NaN is left out, and the scale never hears of it")
            or likely_mistake(plan, scales, where.number)
            or "the scale is not halved after a bad step and doubled after `growth_interval` good ones, and else kept",
            look="what does `scaler.state_dict()` hold?" if where.is_resumed else ORDER,
        )
