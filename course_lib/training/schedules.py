"""Learning rate schedules: one closed formula each, so that a step's rate depends on its number alone.

Torch's `OneCycleLR`, `CosineAnnealingWarmRestarts` and `StepLR` give the same numbers (the tests compare them);
a closed formula also gives them in advance, to be looked at before any training, and again after a resume.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from course_lib.base import UserError, require
from course_lib.training.registry import LR_SCALING_POWERS, SCHEDULES

ONE_CYCLE_RISE, ONE_CYCLE_START = 0.3, 1 / 25
PATIENCE = 2


@dataclass(frozen=True)
class Schedule:
    """Called with a step, counted from 0, gives the share of the peak learning rate.

    The share rises linearly to 1 over `warmup_steps`; from there to `max_steps`
    - `constant` stays; so does `plateau`, until `PlateauSchedule` hears of a validation loss that stalls;
    - `linear` falls to `final_ratio` along a line, `cosine` along half a cosine (Loshchilov and Hutter, 2017);
    - `cosine-restarts` does so `num_cycles` times, and leaps back to 1 in between (same paper);
    - `step` is divided by 10 after one and after two thirds (He et al., 2016), never below `final_ratio`;
    - `one-cycle` has a warmup of its own shape (from 1/25 along half a cosine, over 30 % of the steps unless
      `warmup_steps` says otherwise), then falls as `cosine` (Smith and Topin, 2018; the momentum stays).

    Raises UserError for numbers that make no schedule.
    """

    name: str
    max_steps: int
    warmup_steps: int = 0
    final_ratio: float = 0.0
    num_cycles: int = 1

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise UserError(f"there is no schedule {self.name!r}: take one of {', '.join(SCHEDULES)}")
        if self.max_steps < 1 or not 0 <= self.warmup_steps <= self.max_steps:
            raise UserError(f"need 0 <= warmup_steps <= max_steps and max_steps >= 1, got {self}")
        if not 0.0 <= self.final_ratio <= 1.0 or self.num_cycles < 1:
            raise UserError(f"need 0 <= final_ratio <= 1 and num_cycles >= 1, got {self}")

    def __call__(self, step: int) -> float:
        rise = self.warmup_steps
        if self.name == "one-cycle":
            rise = rise or round(ONE_CYCLE_RISE * self.max_steps)
            if step < rise:
                return 1.0 - (1.0 - ONE_CYCLE_START) * _half_cosine(step / rise)
        if step < rise:
            return (step + 1) / rise
        if self.name in ("constant", "plateau"):
            return 1.0
        span = max(1, self.max_steps - rise)
        done = min(step - rise, span)
        if self.name == "step":
            return max(self.final_ratio, 0.1 ** min(2, 3 * done // span))
        if self.name == "cosine-restarts" and done < span:
            done = done * self.num_cycles % span  # whole numbers: no rounding error delays a restart
        share = 1.0 - done / span if self.name == "linear" else _half_cosine(done / span)
        return self.final_ratio + (1.0 - self.final_ratio) * share


def _half_cosine(progress: float) -> float:
    """From 1 to 0 while `progress` goes from 0 to 1."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def make_schedule(optimizer: torch.optim.Optimizer, name: str, **numbers: Any) -> LambdaLR | PlateauSchedule:
    """The schedule `name` of `SCHEDULES` for each group of `optimizer`, whose learning rate is the peak.

    `numbers`: `max_steps`, and `warmup_steps`, `final_ratio`, `num_cycles` as `Schedule` explains. Call `.step()`
    once after each `optimizer.step()`, and `.step_metric(loss)`, where there is one, after each validation.
    """
    schedule = Schedule(name, **numbers)
    return PlateauSchedule(optimizer, schedule) if name == "plateau" else LambdaLR(optimizer, schedule)


class PlateauSchedule:
    """Warmup, then torch's `ReduceLROnPlateau`: halves the rate after `PATIENCE` + 1 validations in a
    row without a lower loss, down to `final_ratio` of the peak. The rates themselves live in the optimizer."""

    def __init__(self, optimizer: torch.optim.Optimizer, schedule: Schedule) -> None:
        self.schedule = schedule
        floors = [schedule.final_ratio * group["lr"] for group in optimizer.param_groups]
        self.warmup = LambdaLR(optimizer, schedule)
        self.plateau = ReduceLROnPlateau(optimizer, factor=0.5, patience=PATIENCE, min_lr=floors)

    def step(self) -> None:
        """After each update. Does nothing once the warmup is over: it would undo what the plateau did."""
        if self.warmup.last_epoch < self.schedule.warmup_steps:
            self.warmup.step()

    def step_metric(self, value: float) -> None:
        """After each validation, with its loss. During the warmup it does not count."""
        if self.warmup.last_epoch >= self.schedule.warmup_steps:
            self.plateau.step(value)

    def state_dict(self) -> dict[str, Any]:
        return {"warmup": self.warmup.state_dict(), "plateau": self.plateau.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.warmup.load_state_dict(state["warmup"])
        self.plateau.load_state_dict(state["plateau"])


def warmup_cosine(optimizer: torch.optim.Optimizer, **numbers: Any) -> LambdaLR | PlateauSchedule:
    """`make_schedule(optimizer, "cosine", warmup_steps=…, max_steps=…)`: what most transformers train with."""
    return make_schedule(optimizer, "cosine", **numbers)


def schedule_values(name: str, peak: float, max_steps: int, **numbers: Any) -> np.ndarray:
    """Learning rate of each step, float64 [max_steps]; for `plateau` as long as nothing stalls."""
    return peak * np.array(list(map(Schedule(name, max_steps, **numbers), range(max_steps))))


def plot_schedule(name: str, peak: float, max_steps: int, **numbers: Any) -> Any:
    """A matplotlib Figure of `schedule_values`, which takes the same arguments."""
    figures = require("matplotlib.figure")  # not pyplot: no global state, no window
    figure = figures.Figure(figsize=(6, 2.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(schedule_values(name, peak, max_steps, **numbers))
    axes.set(title=name, xlabel="step", ylabel="learning rate", ylim=(0, None))
    return figure


def scaled_learning_rate(
    rule: str, learning_rate: float, global_batch_size: int, base_batch_size: int
) -> float:
    """The learning rate for another batch size than the one it was found with.

    `linear`: × k for a batch k times as large (Goyal et al., 2017, for SGD), with a warmup of about 5 epochs,
    without which it diverges early; `sqrt`: × √k, which keeps the variance of an update (Krizhevsky, 2014; Hoffer
    et al., 2017) and suits Adam (Malladi et al., 2022); `none`: as it is. Raises UserError for another rule.
    """
    if rule not in LR_SCALING_POWERS:
        raise UserError(f"there is no scaling rule {rule!r}: take one of {', '.join(LR_SCALING_POWERS)}")
    return learning_rate * (global_batch_size / base_batch_size) ** LR_SCALING_POWERS[rule]
