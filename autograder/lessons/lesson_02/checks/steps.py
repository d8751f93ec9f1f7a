"""The check of exercise 2.2: a step in fp16 with a scaler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    are_equal,
    name_the_mistake,
    require_close,
    require_equal,
    require_keys,
    twin_of,
)
from autograder.lessons.lesson_02 import baselines

ORDER = "scale, backward, unscale, clip, step, update: write the six down, then compare with your code"
_REFUSALS = {
    "already been called on this optimizer": "unscaled twice: the scaler lets you divide by the scale once a step",
    "FP16 gradients": "the weights themselves are fp16 (`.half()` on the model): autocast leaves them fp32",
    "step()": "`update()` is missing: the scaler still waits for the end of the last step",
    "inf checks": "the optimizer has no gradients when the scaler looks: clear them before backward, not after",
}


def check_fp16_trainer(job: Job) -> None:
    """2.2: the gradients that a step uses, the steps that are skipped, the scale, and a resumed run."""
    for max_norm, resumes in ((0.02, False), (1e3, True)):
        scale = 2.0 ** int(job.rng.integers(11, 14))
        bad = sorted(int(step) for step in job.rng.choice(np.arange(1, 9), size=2, replace=False))
        arguments: dict[str, Any] = {
            "seed": job.seed(),
            "num_steps": 12,
            "bad_steps": bad,
            "resume_at": bad[-1] + 2 if resumes else -1,
            "options": {"max_norm": max_norm, "init_scale": scale, "growth_interval": 3},
        }
        answer = job.learner().call("fp16_steps", **arguments)
        _require_no_refusal(job, answer)
        _require_loadable(job, answer)
        _require_fp16(job, answer)
        twin = job.twin(baselines.FP16_TRAINER).call("fp16_steps", **arguments)
        for number, (own, right) in enumerate(zip(answer["steps"], twin["steps"], strict=True)):
            where = _Where(number, number in bad, resumes and number >= arguments["resume_at"])
            _require_step(job, own, right, where, arguments)
    job.counts["float16_share"] = round(answer["float16_share"], 3)


def _require_no_refusal(job: Job, answer: dict[str, Any]) -> None:
    said = answer["refused"]
    if said is not None:
        likely = next((text for words, text in _REFUSALS.items() if words in said), "calls in another order")
        raise failure(
            expected="steps that the scaler takes", got=f"the scaler says: {said}", likely=likely, look=ORDER
        )


def _require_loadable(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        "unloadable" not in answer,
        expected="a state that `torch.load(..., weights_only=True)` takes",
        got=f"one with an object of {answer.get('unloadable')}",
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
    # On CPUs the models of this course compute attention in fp32, and small layers are mostly attention.
    job.require(
        answer["float16_share"] > 0.5,
        expected="matrix products in float16",
        got=f"{answer['float16_share']:.0%} of their FLOPs",
        likely="forward and loss run outside autocast, or in another type",
        look="`torch.autocast(device_type, torch.float16)`: on CPUs the default is bfloat16",
    )


class _Where:
    """Which step, and what is special about it."""

    def __init__(self, number: int, is_bad: bool, is_resumed: bool) -> None:
        self.is_bad, self.is_resumed = is_bad, is_resumed
        self.text = f"step {number}" + (", after a resume" if is_resumed else "")


def _require_step(
    job: Job, own: dict[str, Any], right: dict[str, Any], where: _Where, arguments: dict[str, Any]
) -> None:
    if where.is_bad:
        job.require(
            own["num_steps"] == 0 and not own["is_changed"],
            expected=f"no optimizer step and unchanged weights in {where.text}, whose gradient is infinite",
            got="changed weights" if own["is_changed"] else "an optimizer step",
            likely="a gradient that overflowed is used: one such step and all weights are NaN",
            look="`scaler.step(optimizer)` skips it for you; `optimizer.step()` does not",
        )
    else:
        job.require(
            own["num_steps"] == 1,
            expected=f"one optimizer step in {where.text}",
            got=f"{own['num_steps']}",
            likely="gradients are not cleared, so that an infinity of the step before skips this one, too; "
            "or a step is taken twice",
            look="what is done with a NaN that stayed from the last step?",
        )
    require_keys(job, own["report"], ("loss", "grad_norm", "scale"))
    _require_scale(job, own["report"]["scale"], right["report"]["scale"], where)
    _require_loss(job, own["report"]["loss"], right["report"]["loss"])
    if where.is_bad:
        return
    for part in ("body", "head"):
        if not are_equal(own["gradients"][part], right["gradients"][part], "float16"):
            _fail_by_name(job, own, right, part, where, arguments)
    require_close(
        job,
        "grad_norm",
        own["report"]["grad_norm"],
        right["report"]["grad_norm"],
        likely="the norm of scaled gradients, or of clipped ones",
        look="clip_grad_norm_ returns the norm from before; call it when the gradients are unscaled",
        rel_tol=2e-2,
    )


def _require_loss(job: Job, own: float, right: float) -> None:
    if abs(own) > 100 * abs(right):  # no scale of the check is as small, no other mistake as large
        likely = "the loss is reported while it is multiplied by the scale"
        look = "keep the loss itself for the report"
    else:
        likely = "the loss is computed outside autocast, from fp16 logits, or is another than the batch mean"
        look = "inside autocast the cross-entropy is one of the operations that are kept in fp32"
    require_close(job, "loss", own, right, likely=likely, look=look)


def _require_scale(job: Job, own: float, right: float, where: _Where) -> None:
    if own == 1.0:
        likely = "no loss scaling: the scaler is switched off, or another number is reported"
        look = "`GradScaler` does nothing with `enabled=False`; its `get_scale()` is then 1"
    elif where.is_resumed:
        likely = "the scaler's state is not saved, or only its scale: it counts the good steps as well"
        look = "what does `scaler.state_dict()` hold?"
    elif where.is_bad:
        likely = "an infinite gradient must halve the scale: `update()` is missing, or skipped with the step"
        look = ORDER
    else:
        likely = "`update()` is missing or called twice, or the scaler does not get `growth_interval`"
        look = "after `growth_interval` good steps in a row the scale doubles"
    job.require(
        math.isclose(own, right),
        expected=f"scale = {right:g} after {where.text}",
        got=f"{own:g}",
        likely=likely,
        look=look,
    )


def _fail_by_name(
    job: Job,
    own: dict[str, Any],
    right: dict[str, Any],
    part: str,
    where: _Where,
    arguments: dict[str, Any],
) -> None:
    """The gradients are wrong. Those of the first step show why: later ones start from other weights."""
    likely = {
        "no scaling": "no loss scaling: small gradients underflow to zero in fp16 on their way through the model",
        "divided alone": "no loss scaling before backward, and then a division by the scale all the same",
        "clipped while scaled": "clipping without unscale: the norm is the scale times too large, so all is clipped",
        "unscaled twice": "unscaled twice: the gradients are divided by the scale two times",
        "never unscaled": "the gradients are never divided by the scale, so each step is the scale times too long",
    }
    gradients, twin = own["gradients"][part], twin_of(job, baselines.FP16_TRAINER, "fp16_steps", arguments)
    mistake = name_the_mistake(
        {} if where.is_resumed else likely,
        twin=lambda mistake: twin(mistake)["steps"][0]["gradients"][part],
        is_same=lambda wrong: are_equal(gradients, wrong, "float16"),
    )
    if mistake:
        raise failure(
            expected="the gradients of a step with loss scaling, unscaled and then clipped",
            got="other gradients",
            likely=mistake,
            look=ORDER,
        )
    require_equal(
        job,
        gradients,
        right["gradients"][part],
        dtype="float16",
        what=f"gradients of the {part} in {where.text}",
        likely="another loss than the batch mean of the cross-entropy, or gradients left over from the step before",
        look=ORDER,
    )
