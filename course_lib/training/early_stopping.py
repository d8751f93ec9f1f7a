"""Stop when a validation metric no longer improves."""

from __future__ import annotations

from typing import Any

from course_lib.base import UserError
from course_lib.training.callbacks import Callback, TrainState


class EarlyStopping(Callback):
    """Ends a run after `patience` validations in a row in which `monitor` did not improve on its best by more than
    `min_delta` (in the metric's own unit). `mode`: "min" for a loss, "max" for an accuracy. A NaN never improves.

    Its state is saved with a run, so an interrupted run stops where the uninterrupted one would have.
    Raises UserError for values that cannot be, and when a validation has no such metric.
    """

    name = "early_stopping"

    def __init__(
        self, monitor: str = "loss", mode: str = "min", patience: int = 3, min_delta: float = 0.0
    ) -> None:
        if mode not in ("min", "max") or patience < 1 or min_delta < 0:
            raise UserError(
                f"need mode min or max, patience >= 1 and min_delta >= 0; got {mode=}, {patience=}, {min_delta=}"
            )
        self.monitor, self.mode, self.patience, self.min_delta = monitor, mode, patience, min_delta
        self.best: float | None = None
        self.best_step = self.num_bad = 0

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        if record["kind"] != "validation":
            return
        value = record.get(self.monitor)
        if value is None:
            raise UserError(
                f"validation has no metric {self.monitor!r} to monitor; it has {', '.join(record)}"
            )
        sign = 1.0 if self.mode == "max" else -1.0
        if value == value and (self.best is None or sign * (value - self.best) > self.min_delta):
            self.best, self.best_step, self.num_bad = value, state.step, 0
            return
        self.num_bad += 1  # in a row
        if self.num_bad >= self.patience:
            best = f"best {self.best} at step {self.best_step}"
            state.stop(f"{self.monitor} has not improved in {self.num_bad} validations; {best}")

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "best_step": self.best_step, "num_bad": self.num_bad}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.best_step, self.num_bad = state["best"], state["best_step"], state["num_bad"]
