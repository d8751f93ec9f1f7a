"""What `fit` does between steps: logging, validation, the end of an epoch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from course_lib.base import memory_bytes
from course_lib.distributed import device_of, from_main_process, share_buffers, whole
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.evaluation import evaluate
from course_lib.training.losses import Loss
from course_lib.training.precision import Precision
from course_lib.training.window import Batch, Window


@dataclass
class BetweenSteps:
    """A run of `fit`: its window, its records, and what is due after a step."""

    model: nn.Module
    validation_batches: Iterable[Batch] | None
    loss: Loss | None
    callbacks: Sequence[Callback]
    state: TrainState
    scheduler: Any
    precision: Precision
    window: Window = field(default_factory=Window)
    learning_rate: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)

    def is_over(self, max_steps: int | None) -> bool:
        return self.state.should_stop or (max_steps is not None and self.state.step >= max_steps)

    def log(self) -> None:
        if not self.window.losses:
            return
        values = self.window.read()
        self.state.num_samples += int(values["num_samples"])
        self.state.num_tokens += int(values.get("num_tokens", 0))
        self.state.num_nonfinite += int(values["num_nonfinite"])
        self.state.train_seconds += values["seconds"]
        self._record("train", {"learning_rate": self.learning_rate, **values})
        self.restart_window()

    def validate(self) -> None:
        if self.validation_batches is None or self.state.last_validated_step == self.state.step:
            return
        self.state.last_validated_step = self.state.step
        share_buffers(self.model)
        scores = evaluate(self.model, self.validation_batches, loss=self.loss, precision=self.precision)
        if hasattr(self.scheduler, "step_metric"):
            self.scheduler.step_metric(scores["loss"])
        self._record("validation", scores)

    def pause(self, *, validate: bool) -> None:
        self.log()
        if validate:
            self.validate()
        for callback in self.callbacks:
            callback.on_safe_point(self.state)
        # Clocks and signals differ between processes: all stop when the first one does.
        self.state.should_stop = from_main_process(self.state.should_stop)
        self.restart_window()

    def end_epoch(self) -> None:
        if self.state.step_in_epoch == 0:
            raise ValueError("there is no batch to train on: `batches` is empty, or already used up")
        self.log()
        self.validate()
        norms = torch._foreach_norm([parameter.detach() for parameter in self.model.parameters()])
        weight_norm = torch.stack([whole(norm).float() for norm in norms]).norm()
        memory = memory_bytes(device_of(self.model))
        values = {"weight_norm": float(weight_norm), "num_nonfinite": self.state.num_nonfinite, **memory}
        self._record("epoch", values)
        self.state.epoch += 1
        self.state.step_in_epoch = 0
        self.pause(validate=False)

    def _record(self, kind: str, values: dict[str, Any]) -> None:
        record = {"kind": kind, "step": self.state.step, "epoch": self.state.epoch, **values}
        self.history.append(record)
        for callback in self.callbacks:
            callback.on_record(self.state, record)

    def restart_window(self) -> None:
        # The next window's clock starts after logging, evaluation and saving: they are not step time.
        self.window = Window(
            self.state.step + 1,
            first_batch=self.state.step_in_epoch + 1,
            skips_nonfinite=self.precision.scaler is not None,
        )
