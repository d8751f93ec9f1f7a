"""The gradients that a step of 2.2 used, and how its weights moved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import TOLERANCES, name_the_mistake, require_close, twin_of
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.lesson_02.checks.around import relative
from autograder.lessons.lesson_02.checks.traces import require_clipped

ORDER = "scale, backward, unscale, clip, step, update: write the six down, then compare with your code"


class Where:
    """Which step of which run, and what is special about it."""

    def __init__(self, number: int, is_bad: bool, *, is_resumed: bool, arguments: dict[str, Any]) -> None:
        self.number, self.is_bad, self.is_resumed, self.arguments = number, is_bad, is_resumed, arguments
        self.text = f"step {number}" + (", after a resume" if is_resumed else "")

    @property
    def spike(self) -> tuple[int, float, str]:
        """Of a bad step: its number, the place of its bad gradient, the kind."""
        found: tuple[int, float, str] = next(s for s in self.arguments["spikes"] if s[0] == self.number)
        return found


BAD = {
    "inf": "in whose gradient one number is infinite",
    "-inf": "in whose gradient one number is infinite",
    "nan": "in whose gradient one number is NaN",
    "loss": "whose loss is NaN",
}


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


def require_gradients(job: Job, own: dict[str, Any], right: dict[str, Any], where: Where) -> None:
    """Fail unless a good step used and reports the true, clipped gradients, and moves the weights by them alone."""
    if where.is_bad:
        job.require(
            where.spike[2] == "loss" or not math.isfinite(own["report"]["grad_norm"]),
            expected=f"a norm that is infinite or NaN in {where.text}, {BAD[where.spike[2]]}",
            got=f"{own['report']['grad_norm']:g}",
            likely="the norm of a bad step is replaced in the report, or only the finite gradients are measured",
            look="report the norm as it comes",
        )
        return
    for part in ("body", "head"):
        away = relative(own["gradients"][part], right["gradients"][part])
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
    require_clipped(job, own["gradients"], got, where.arguments["options"]["max_norm"])
    away = relative(own["moved"], right["moved"])
    job.require(
        away <= 2 * TOLERANCES["float16"],
        expected=f"weights that move in {where.text} as the optimizer says",
        got=f"weights that move otherwise, by {away:.0%} of the way",
        likely="beside the optimizer's step the weights, its momentum or its learning rate are changed",
        look="a step is one call of the optimizer; a bad one changes nothing but the scale",
    )


def _mistake_in(job: Job, gradients: dict[str, np.ndarray], where: Where) -> str:
    def is_same(steps: list[dict[str, Any]]) -> bool:
        wrong = steps[where.number]["gradients"]
        return bool(wrong) and all(
            relative(gradients[part], wrong[part]) <= TOLERANCES["float16"] for part in wrong
        )

    twin = twin_of(job, baselines.FP16_TRAINER, "fp16_steps", where.arguments)
    return name_the_mistake(
        {} if where.is_resumed else _LIKELY_GRADIENTS,
        twin=lambda mistake: twin(mistake)["steps"],
        is_same=is_same,
    )
