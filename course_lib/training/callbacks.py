"""What `fit` tells the outside: where the run is, what was measured, and when saving is safe; and three who listen."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule, supported_activities

from course_lib.base import UserError, atomic_file, atomic_write_text
from course_lib.measuring import mark_stages, step_breakdown


@dataclass
class TrainState:
    """Where a run is. Plain values, so that a checkpoint holds it as it is."""

    step: int = 0
    """Optimizer updates so far."""
    epoch: int = 0
    """Epochs completed."""
    step_in_epoch: int = 0
    """Updates in the current epoch; the next batch is the one after these."""
    num_samples: int = 0
    num_tokens: int = 0
    num_nonfinite: int = 0
    """Steps that a gradient scaler skipped because a gradient was infinite or NaN."""
    train_seconds: float = 0.0
    """Time in training steps, data wait included, evaluation and saving not."""
    last_validated_step: int = 0
    should_stop: bool = False
    """A callback sets this to end the run after the current step."""
    stop_reason: str = ""

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    def stop(self, reason: str) -> None:
        self.should_stop, self.stop_reason = True, reason


class Callback:
    """What may be hung into `fit`. Every method does nothing until it is overridden.

    One that has a `name`, `state_dict` and `load_state_dict` is saved in the checkpoints of a run.
    """

    def on_step(self, state: TrainState) -> None:
        """After each update. Reading a tensor here costs a sync per step."""

    def on_record(self, state: TrainState, record: dict[str, Any]) -> None:
        """A record was made; `record["kind"]` is `"train"`, `"validation"` or `"epoch"`."""

    def on_safe_point(self, state: TrainState) -> None:
        """Nothing is pending: all steps are logged and checked for NaN. The moment to write a checkpoint."""

    def on_end(self, state: TrainState) -> None:
        """The run is over, also by an error or an interrupt: what was opened can be closed."""


class InterruptBetweenSteps(Callback):
    """Ctrl-C ends the run after the current step, a second one at once.

    Python raises KeyboardInterrupt between any two instructions, within a library's lock too: TensorBoard's queue
    was seen to wait for ever after one. Use it around `fit` and as the last of its callbacks.
    """

    def __init__(self) -> None:
        self.is_asked = False

    def __enter__(self) -> InterruptBetweenSteps:
        # Where Ctrl-C is ignored (nohup) or handled by another, it stays so; only the main thread may ask.
        self.is_ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self.is_ours:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def on_step(self, state: TrainState) -> None:
        if self.is_asked:
            raise KeyboardInterrupt

    def _on_signal(self, _signal: int, _frame: object) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


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


WARMUP_STEPS = 3
NUM_OPERATORS = 15


class StepProfiler(Callback):
    """Profiles `num_steps` updates after `WARMUP_STEPS`; then `trace.json` (for Perfetto or chrome://tracing),
    `profile.json` (`breakdown`) and `profile.txt` (the same, and the operators that took longest) are in
    `directory`, and the run goes on as if without.

    Call `close` when the run ends: it may end before. Steps are slower while they are profiled, those of many
    small operations most: read the shares, and take speeds from the log.
    """

    def __init__(self, num_steps: int, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.breakdown: dict[str, Any] | None = None
        # The profiler is switched on after the first step, which is thus the first one of the warm-up.
        self._schedule = schedule(wait=0, warmup=WARMUP_STEPS - 1, active=num_steps, repeat=1)
        # Else Kineto writes its start and stop to stderr, into the progress bar.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        self._profile: Any = None  # made when it is switched on
        self._is_on: bool | None = None

    def on_step(self, state: TrainState) -> None:
        if self._is_on:
            self._profile.step()
            if self.breakdown is not None:
                self.close()
        elif self._is_on is None:
            self._switch(True)
            activities = supported_activities()
            if not torch.cuda.is_initialized():  # it is watched only where it is in use: that would start it
                activities.discard(ProfilerActivity.CUDA)
            self._profile = profile(
                activities=activities, schedule=self._schedule, on_trace_ready=self._write, acc_events=True
            )
            self._profile.start()

    def close(self) -> None:
        """Stop profiling, and write what was seen unless it is written."""
        if self._is_on:
            self._switch(False)
            self._profile.stop()

    def _switch(self, is_on: bool) -> None:
        self._is_on = is_on
        mark_stages(is_on)

    def _write(self, profiled: profile) -> None:
        trace = self.directory / "trace.json"
        with atomic_file(trace) as temporary:
            profiled.export_chrome_trace(str(temporary))
        self.breakdown = step_breakdown(trace)
        sort_by = "self_device_time_total" if torch.cuda.is_initialized() else "self_cpu_time_total"
        operators = profiled.key_averages().table(sort_by=sort_by, row_limit=NUM_OPERATORS)
        lines = [
            f"{row['seconds'] * 1e3:>12.3f} ms {row['share']:>6.1%}  {row['stage']}"
            for row in self.breakdown["stages"]
        ]
        atomic_write_text(self.directory / "profile.txt", "\n".join([*lines, "", operators]))
        atomic_write_text(self.directory / "profile.json", json.dumps(self.breakdown, indent=2) + "\n")
