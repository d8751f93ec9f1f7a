"""The scale of a run of 2.2, worked out, and how it goes with one mistake in its rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_SCALE = 2.0**16


@dataclass(frozen=True)
class Plan:
    """What happens at each step of a run, and the options of its trainer."""

    is_bad: tuple[bool, ...]
    init_scale: float
    growth_interval: int
    resume_at: int
    """The step before which another trainer takes over, made without `init_scale`; beyond the last where none does.
    That one had a bad step first."""

    def scales(self, mistake: str = "none") -> list[float]:
        """The scale after each step."""
        scale, num_good, found = self.init_scale, 0, list[float]()
        if mistake in ("init ignored", "all shared"):
            scale = DEFAULT_SCALE
        growth = self.growth_interval + (mistake == "grows one late") - (mistake == "grows one early")
        for number, is_bad in enumerate(self.is_bad):
            if number == self.resume_at:
                scale = DEFAULT_SCALE / 2 if mistake in ("state lost", "scale lost") else scale
                num_good = 0 if mistake in ("state lost", "count lost") else num_good
            before = scale
            if is_bad:
                scale = scale if mistake in ("never halved", "no update") else scale / 2
                num_good = num_good if mistake == "count goes on" else 0
            else:
                num_good += 1
            if num_good >= growth and not is_bad and mistake not in ("never grows", "no update"):
                scale, num_good = 2 * scale, num_good if mistake == "count for ever" else 0
            found.append(before if mistake == "one behind" else scale)
            since = number if number < self.resume_at else number - self.resume_at
            if mistake in ("all shared", "count shared") and since < 3:  # the one beside it has a bad step
                scale, num_good = scale / (2 if mistake == "all shared" else 1), 0
        return [1.0] * len(found) if mistake == "switched off" else found


LIKELY = {
    "count lost": "the number of good steps is lost: the scaler's state is not saved, or only its scale, or another "
    "trainer in the process counts in the same place",
    "count shared": "another trainer in the process counts in the same place: its bad steps set the number of good "
    "ones back to 0",
    "scale lost": "the scale is not loaded: the trainer goes on with another one",
    "state lost": "the scaler's state is not saved, or not loaded: scale and number of good steps begin anew",
    "switched off": "no loss scaling: the scaler is switched off, or another number is reported",
    "no update": "the scale never moves: `update()` is missing, or its result is not the scale that is used",
    "init ignored": "the scale begins at 65,536, whatever `init_scale` is",
    "one behind": "the scale from before this step is reported",
    "never halved": "an infinite gradient must halve the scale: it stays as it is",
    "never grows": "the scale never doubles: the scaler does not get `growth_interval`, or good steps are not counted",
    "grows one late": "the scale doubles one good step too late",
    "grows one early": "the scale doubles one good step too early",
    "count goes on": "good steps *in a row* count: a bad one in between must set their number back to 0",
    "count for ever": "after a doubling the good steps must be counted from 0 again",
    "all shared": "two trainers in one process have one scale: a global, or an attribute of the class",
}


def likely_mistake(plan: Plan, own: Sequence[float], number: int) -> str:
    """Why the scale after step `number` is wrong, the first one that is; "" where nobody knows.

    Two mistakes may look alike up to that step, and not in the steps after it.
    """
    for length in (len(own), number + 1):
        for mistake, text in LIKELY.items():
            scales = plan.scales(mistake)[:length]
            if all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(own[:length], scales, strict=True)):
                return text
    return ""
