"""The check of exercise 2.2: a step in fp16 with a scaler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    TOLERANCES,
    name_the_mistake,
    require_close,
    require_keys,
    require_left_alone,
    twin_of,
)
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.lesson_02.checks.rounding import all_of_16_bits
from autograder.lessons.lesson_02.checks.scales import Plan, likely_mistake
from autograder.lessons.lesson_02.checks.traces import require_own_device, require_told

ORDER = "scale, backward, unscale, clip, step, update: write the six down, then compare with your code"
_REFUSALS = {
    "already been called on this optimizer": "unscaled twice: the scaler lets you divide by the scale once a step",
    "FP16 gradients": "the weights themselves are fp16 (`.half()` on the model): autocast leaves them fp32",
    "step()": "`update()` is missing: the scaler still waits for the end of the last step",
    "inf checks": "the optimizer has no gradients when the scaler looks: clear them before backward, not after",
}


def check_fp16_trainer(job: Job) -> None:
    """2.2: the gradients that a step uses, the steps that are skipped, the scale, and a run resumed elsewhere."""
    short, long = (int(n) for n in job.rng.permutation([2, 3]))
    clips = {"max_norm": round(float(job.rng.uniform(0.01, 0.05)), 4)}
    _check_run(job, "g" * (short - 1) + "bgbb" + "g" * (short + 1), clips | _drawn(job, short))
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
    for number, (own, right) in enumerate(zip(answer["steps"], twin["steps"], strict=True), start=first):
        where = _Where(number, plan.is_bad[number], is_resumed=scales is not None, arguments=arguments)
        _require_step(job, own, right, plan, where)
        _require_scale(job, scales_of_all, plan, where)
        _require_gradients(job, own, right, where)
    for own, right in zip(answer["beside"], twin["beside"], strict=True):
        job.require(
            not own["is_changed"] and math.isclose(own["report"]["scale"], right["report"]["scale"]),
            expected="of a second trainer, made without options, unchanged weights and a scale of "
            f"{right['report']['scale']:g}, for its gradients are infinite",
            got=f"a scale of {own['report']['scale']:g}" + (" and changed weights" * own["is_changed"]),
            likely="two trainers in one process share something, or the defaults of `__init__` are others",
            look="what a trainer knows belongs to `self`; the first scale is 65,536 unless it is given",
        )
    _require_states_left(job, answer["changed_states"])
    _require_low_scales(job, answer["low"], twin["low"])


def _require_states_left(job: Job, changed: list[str]) -> None:
    job.require(
        not changed,
        expected="states that stay as they are while training goes on",
        got=f"a state that was {changed[0] if changed else ''} before, and is another one now",
        likely="the trainer and its caller hold the same dict or tensor: training writes into a state that is saved "
        "later, or loaded a second time",
        look="copy what you are given, and hand out a copy",
    )


def _require_low_scales(job: Job, own: list[dict[str, float]], right: list[dict[str, float]]) -> None:
    """Of a trainer whose scale is small, the scales after two bad steps and a good one, and its large loss."""
    for step in own:
        require_keys(job, step, ("loss", "scale"))
    got, expected = ([step["scale"] for step in steps] for steps in (own, right))
    job.require(
        all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(got, expected, strict=True)),
        expected=f"scales of {', '.join(f'{scale:g}' for scale in expected)}, from 1.5 on: two bad steps, a good one",
        got=", ".join(f"{scale:g}" for scale in got),
        likely="the scale is kept above a limit: a bad step halves it, however small it is",
        look="nothing is wrong with a scale below 1: the gradients were that large",
    )
    require_close(
        job,
        "loss",
        own[-1]["loss"],
        right[-1]["loss"],
        likely="a loss of 20 and more is cut: the logarithm of a probability that was rounded, limited or added to",
        look="`F.cross_entropy` takes logits, and never makes a probability of them",
    )


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


class _Where:
    """Which step of which run, and what is special about it."""

    def __init__(self, number: int, is_bad: bool, *, is_resumed: bool, arguments: dict[str, Any]) -> None:
        self.number, self.is_bad, self.is_resumed, self.arguments = number, is_bad, is_resumed, arguments
        self.text = f"step {number}" + (", after a resume" if is_resumed else "")

    @property
    def spike(self) -> tuple[int, float, str]:
        """Of a bad step: its number, the place of its bad gradient, the kind."""
        found: tuple[int, float, str] = next(s for s in self.arguments["spikes"] if s[0] == self.number)
        return found


_BAD = {
    "inf": "in whose gradient one number is infinite",
    "-inf": "in whose gradient one number is infinite",
    "nan": "in whose gradient one number is NaN",
    "loss": "whose loss is NaN",
}


def _require_step(job: Job, own: dict[str, Any], right: dict[str, Any], plan: Plan, where: _Where) -> None:
    if where.is_bad:
        _, place, kind = where.spike
        job.require(
            not own["is_changed"],
            expected=f"unchanged weights in {where.text}, {_BAD[kind]}",
            got="changed weights",
            likely=_why_used(where, place, kind),
            look="`scaler.step(optimizer)` skips it for you; `optimizer.step()` does not",
        )
    require_keys(job, own["report"], ("loss", "grad_norm", "scale"))
    _require_loss(job, own, right)
    if not where.is_bad:
        job.require(
            own["num_steps"] == 1,
            expected=f"one optimizer step in {where.text}",
            got=f"{own['num_steps']}",
            likely=_why_not_one(own["num_steps"], plan, where),
            look="what is done with a NaN that stayed from the last step?",
        )


def _why_used(where: _Where, place: float, kind: str) -> str:
    """Of the bad gradients before this one none was used: that tells what is different now."""
    before = [
        spike for spike in where.arguments["spikes"] if spike[0] < where.number and not where.is_resumed
    ]
    if before and kind == "nan" and all(other[2] != "nan" for other in before):
        return "infinities are looked for, and NaN passes: one such step and all weights are NaN"
    if before and all(other[1] != place for other in before):
        return "some gradients are looked at, such as the last one, and not all"
    return "a gradient that overflowed is used: one such step and all weights are NaN"


def _why_not_one(num_steps: int, plan: Plan, where: _Where) -> str:
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


def _require_scale(job: Job, scales: list[float], plan: Plan, where: _Where) -> None:
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


_LIKELY_GRADIENTS = {
    "no scaling": "no loss scaling: small gradients underflow to zero in fp16 on their way through the model",
    "divided alone": "no loss scaling before backward, and then a division by the scale all the same",
    "clipped while scaled": "clipping without unscale: the norm is the scale times too large, so all is clipped",
    "unscaled twice": "unscaled twice: the gradients are divided by the scale two times",
    "never unscaled": "the gradients are never divided by the scale, so each step is the scale times too long",
    "never clipped": "the gradients are not clipped, or only after the step, or not to `max_norm`",
    "clipped by value": "each number is clipped by itself, and not the norm of all",
    "always clipped": "gradients shorter than `max_norm` are made longer: only longer ones are to be clipped",
    "not cleared": "gradients left over from the step before, or from another backward: they add up until they are "
    "cleared",
    "each group": "a group of the optimizer is clipped by itself, and not the norm of all gradients",
    "mask ignored": "the model does not get the attention mask: padding is read as text",
    "mask of ids": "the mask is made of the ids: what is padding, the batch's own mask says",
    "smoothed": "another loss than the cross-entropy of the batch: its labels are smoothed",
}


def _require_gradients(job: Job, own: dict[str, Any], right: dict[str, Any], where: _Where) -> None:
    if where.is_bad:
        return
    for part in ("body", "head"):
        away = _away(own["gradients"][part], right["gradients"][part])
        if not away <= TOLERANCES["float16"]:
            raise failure(
                expected=f"gradients of the {part} in {where.text} with loss scaling, unscaled and then clipped",
                got="NaN or infinity" if math.isnan(away) else f"gradients that are {away:.0%} away",
                likely=_mistake_in(job, own["gradients"], where)
                or "gradients of another loss, or otherwise changed",
                look=ORDER,
            )
    got, expected = own["report"]["grad_norm"], right["report"]["grad_norm"]
    likely = "not the norm of all gradients"
    if abs(got) > 50 * expected:
        likely = "the norm of gradients that are still multiplied by the scale"
    elif math.isclose(got, min(expected, where.arguments["options"]["max_norm"]), rel_tol=2e-2):
        likely = "the norm after clipping"
    look = "clip_grad_norm_ returns the norm from before; call it when the gradients are unscaled"
    require_close(job, "grad_norm", got, expected, likely=likely, look=look, rel_tol=TOLERANCES["float16"])


def _away(own: np.ndarray, right: np.ndarray) -> float:
    """How long the difference is, as a share of the right gradient; single numbers are noise in fp16."""
    return float(np.linalg.norm(own.astype(np.float64) - right) / np.linalg.norm(right.astype(np.float64)))


def _mistake_in(job: Job, gradients: dict[str, np.ndarray], where: _Where) -> str:
    def is_same(steps: list[dict[str, Any]]) -> bool:
        wrong = steps[where.number]["gradients"]
        return bool(wrong) and all(
            _away(gradients[part], wrong[part]) <= TOLERANCES["float16"] for part in wrong
        )

    twin = twin_of(job, baselines.FP16_TRAINER, "fp16_steps", where.arguments)
    return name_the_mistake(
        {} if where.is_resumed else _LIKELY_GRADIENTS,
        twin=lambda mistake: twin(mistake)["steps"],
        is_same=is_same,
    )
