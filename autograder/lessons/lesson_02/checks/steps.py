"""The checks of exercises 2.2 and 2.3: a step in fp16 with a scaler, a step in bf16 without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.job import Job, failure
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.requirements import require_close, require_keys
from autograder.quality import are_equal, require_equal

MIN_SHARE = 0.9
MAX_SAVED = 0.65
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
            likely="a step with finite gradients is skipped, or one is taken twice",
            look="what is done with a NaN that stayed from the last step?",
        )
    require_keys(job, own["report"], ("loss", "grad_norm", "scale"))
    _require_scale(job, own["report"]["scale"], right["report"]["scale"], where)
    require_close(
        job,
        "loss",
        own["report"]["loss"],
        right["report"]["loss"],
        likely="the loss is reported while it is multiplied by the scale",
        look="keep the loss itself for the report",
    )
    if where.is_bad:
        return
    for part in ("body", "head"):
        if not are_equal(own["gradients"][part], right["gradients"][part], "float16"):
            _name_the_mistake(job, own, right, part, where, arguments)
    require_close(
        job,
        "grad_norm",
        own["report"]["grad_norm"],
        right["report"]["grad_norm"],
        likely="the norm of scaled gradients, or of clipped ones",
        look="clip_grad_norm_ returns the norm from before; call it when the gradients are unscaled",
        rel_tol=2e-2,
    )


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


def _name_the_mistake(
    job: Job,
    own: dict[str, Any],
    right: dict[str, Any],
    part: str,
    where: _Where,
    arguments: dict[str, Any],
) -> None:
    """The gradients are wrong. A twin that makes one known mistake and has equal ones names it."""
    mistakes = {
        "no scaling": "no loss scaling: small gradients underflow to zero in fp16 on their way through the model",
        "divided alone": "no loss scaling before backward, and then a division by the scale all the same",
        "clipped while scaled": "clipping without unscale: the norm is the scale times too large, so all is clipped",
        "unscaled twice": "unscaled twice: the gradients are divided by the scale two times",
        "never unscaled": "the gradients are never divided by the scale, so each step is the scale times too long",
    }
    if where.is_resumed:
        mistakes = {}
    for mistake, text in mistakes.items():
        source = baselines.FP16_TRAINER.replace('MISTAKE = "none"', f'MISTAKE = "{mistake}"')
        # The first step shows it: later ones start from other weights.
        wrong = job.twin(source).call("fp16_steps", **arguments)["steps"][0]
        if are_equal(own["gradients"][part], wrong["gradients"][part], "float16"):
            raise failure(
                expected="the gradients of a step with loss scaling, unscaled and then clipped",
                got="other gradients",
                likely=text,
                look=ORDER,
            )
    require_equal(
        job,
        own["gradients"][part],
        right["gradients"][part],
        dtype="float16",
        what=f"gradients of the {part} in {where.text}",
        likely="another loss than the batch mean of the cross-entropy, or gradients left over from the step before",
        look=ORDER,
    )


def check_mixed_step(job: Job) -> None:
    """2.3: the products in bf16, weights, loss and gradients in fp32, autocast closed before backward."""
    arguments: dict[str, Any] = {"seed": job.seed(), "num_steps": 3, "rows": 16, "width": 32, "max_norm": 0.3}
    answer = job.learner().call("bf16_steps", **arguments)
    twin = job.twin(baselines.STEP).call("bf16_steps", **arguments)
    full = job.twin(baselines.STEP.replace("torch.bfloat16", "torch.float32")).call("bf16_steps", **arguments)
    saved = answer["saved_bytes"] / full["saved_bytes"]
    job.counts["bfloat16_share"] = round(answer["bfloat16_share"], 3)
    job.counts["saved_bytes_ratio"] = round(saved, 3)
    if answer["unwatched"]:
        job.flag(f"{answer['unwatched']} forwards or steps ran where operators are not counted")
    job.require(
        answer["weight_dtypes"] == ["float32"],
        expected="weights that are float32 before, during and after a step",
        got=f"weights of {', '.join(answer['weight_dtypes'])}",
        likely="`.bfloat16()` or `.half()` on the model: updates smaller than the rounding of the weights are lost",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    job.require(
        answer["bfloat16_share"] >= MIN_SHARE,
        expected=f"at least {MIN_SHARE:.0%} of the matrix products' FLOPs in bfloat16",
        got=f"{answer['bfloat16_share']:.0%}",
        likely="autocast is around the loss alone, or not open while the model runs",
        look="the call of the model must stand inside the `with`",
    )
    job.require(
        len(answer["gradients"]) == arguments["num_steps"],
        expected=f"{arguments['num_steps']} optimizer steps for as many calls",
        got=f"{len(answer['gradients'])}",
        likely="the step is missing, or taken twice",
        look="one `optimizer.step()` a call",
    )
    _require_loss_in_fp32(job, answer, twin)
    job.require(
        not answer["autocast_in_backward"],
        expected="autocast closed when `backward()` starts",
        got="autocast open while gradients were computed",
        likely="autocast around backward: what forward kept in fp32 on purpose is then computed in 16 bits",
        look="backward uses the types that forward chose; end the `with` before it",
    )
    job.require(
        not answer["autocast_at_step"],
        expected="autocast closed at the optimizer's step",
        got="autocast open",
        likely="the `with` goes on after the loss",
        look="only the call of the model and the loss belong inside",
    )
    job.require(
        saved <= MAX_SAVED,
        expected=f"at most {MAX_SAVED:g} of the bytes that fp32 saves for backward",
        got=f"{saved:.2f}",
        likely="activations are saved in fp32 as well, by conversions of your own",
        look="leave the types inside the model to autocast",
    )
    for own, right in zip(answer["gradients"], twin["gradients"], strict=True):
        for part in ("body", "head"):
            require_equal(
                job,
                own[part],
                right[part],
                dtype="bfloat16",
                what=f"clipped gradients of the {part}",
                likely="gradients of an earlier step are still there, or clipping is missing or after the step",
                look="clear, backward, clip, step",
            )


def _require_loss_in_fp32(job: Job, answer: dict[str, Any], twin: dict[str, Any]) -> None:
    for own, right in zip(answer["reports"], twin["reports"], strict=True):
        require_keys(job, own, ("loss", "grad_norm"))
        job.require(
            answer["loss_dtypes"] == ["float32"],
            expected="a float32 loss",
            got=f"a loss of {', '.join(answer['loss_dtypes'])}",
            likely="the loss is computed outside autocast, from bf16 logits: it has three digits left",
            look="inside autocast the cross-entropy is one of the operations that are kept in fp32",
        )
        require_close(
            job,
            "loss",
            own["loss"],
            right["loss"],
            likely="the loss was rounded to bf16, or is another than the mean cross-entropy of the batch",
            look="inside autocast the cross-entropy is one of the operations that are kept in fp32",
        )
        require_close(
            job,
            "grad_norm",
            own["grad_norm"],
            right["grad_norm"],
            likely="the norm after clipping, or of gradients of two steps",
            look="clip_grad_norm_ returns the norm from before",
            rel_tol=1e-2,
        )
