"""The training loop: `train_step`, `train_one_epoch`, `evaluate`, `fit`.

No value is read from a tensor inside a step. Losses and norms stay tensors on the device until log time,
when all of a window are read at once: one sync per window, and still the exact step of a NaN is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from course_lib.callbacks import Callback, TrainState
from course_lib.window import Batch, Window, timed
from course_lib.window import NonFiniteError as NonFiniteError


class Scheduler(Protocol):
    def step(self) -> None: ...


def train_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    *,
    scheduler: Scheduler | None = None,
    max_norm: float = 1.0,
) -> dict[str, Tensor]:
    """One update: forward, mean cross-entropy, backward, clip, step. No sync.

    `batch`: `input_ids` int64 [B, T], `attention_mask` bool [B, T], `labels` int64 [B].
    Returns 0-d tensors `loss` and `grad_norm` (before clipping). `max_norm=inf` clips nothing.
    """
    logits = model(batch["input_ids"], batch["attention_mask"])
    loss = F.cross_entropy(logits, batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grad_norm = clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    if scheduler is not None:
        scheduler.step()
    return {"loss": loss.detach(), "grad_norm": grad_norm}


def train_one_epoch(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    scheduler: Scheduler | None = None,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """One pass over `batches`, one sync at its end. Returns what `Window.read` returns.

    Raises ValueError when there is no batch.
    """
    device = next(model.parameters()).device
    model.train()
    window = Window()
    for batch, data_seconds in timed(batches):
        metrics = train_step(
            model, to_device(batch, device), optimizer, scheduler=scheduler, max_norm=max_norm
        )
        window.add(batch, metrics, data_seconds)
    if not window.losses:
        raise ValueError("there is no batch to train on: `batches` is empty, or an iterator already used up")
    return window.read()


@torch.inference_mode()
def evaluate(
    model: nn.Module, batches: Iterable[Batch], *, return_predictions: bool = False
) -> dict[str, Any]:
    """Mean `loss` over samples, `accuracy` in [0, 1] and `num_samples`, with one sync.

    Dropout is off meanwhile; every module leaves in the mode it came in. With `return_predictions=True` also
    `predictions` and `labels`, int64 tensors [N] on the CPU in the order of `batches`.
    """
    device = next(model.parameters()).device
    losses, predictions, labels = [], [], []
    with evaluation_mode(model):
        for batch in batches:
            batch = to_device(batch, device)
            logits = model(batch["input_ids"], batch["attention_mask"])
            # A sum, not a mean: the short last batch then weighs what its samples weigh.
            losses.append(F.cross_entropy(logits.float(), batch["labels"], reduction="sum"))
            predictions.append(logits.argmax(dim=1))
            labels.append(batch["labels"])
    if not losses:
        raise ValueError("there is no batch to evaluate: `batches` is empty, or an iterator already used up")
    all_predictions, all_labels = torch.cat(predictions), torch.cat(labels)
    num_samples = all_labels.numel()
    num_correct = (all_predictions == all_labels).sum()
    loss, correct = torch.stack([torch.stack(losses).double().sum(), num_correct.double()]).cpu().tolist()
    result: dict[str, Any] = {
        "loss": loss / num_samples,
        "accuracy": correct / num_samples,
        "num_samples": num_samples,
    }
    if return_predictions:
        result |= {"predictions": all_predictions.cpu().clone(), "labels": all_labels.cpu().clone()}
    return result


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """`model.eval()` inside the block; afterwards every submodule has its own mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch on `device`; itself when it is there already. Copies from pinned memory do not block."""
    if batch["input_ids"].device == device:
        return batch
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


def fit(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    *,
    scheduler: Scheduler | None = None,
    validation_batches: Iterable[Batch] | None = None,
    max_epochs: int = 1,
    max_steps: int | None = None,
    max_norm: float = 1.0,
    log_every_steps: int = 50,
    validate_every_steps: int | None = None,
    callbacks: Sequence[Callback] = (),
    state: TrainState | None = None,
) -> list[dict[str, Any]]:
    """Train until `max_epochs` or `max_steps`, whichever comes first; returns the records made.

    `batches` is iterated once per epoch; its `set_epoch(n)`, if any, is called before a new epoch. Validation
    runs at the end of each epoch, and every `validate_every_steps` when given. To continue an interrupted
    run, give the `state` it had and `batches` that begin at `state.step_in_epoch`.

    Raises NonFiniteError at the log after a NaN, ValueError when an epoch has no batch.
    """
    state = state or TrainState()
    run = _Fit(model, validation_batches, callbacks, state)
    device = next(model.parameters()).device
    model.train()
    while state.epoch < max_epochs and not run.is_over(max_steps):
        if state.step_in_epoch == 0 and hasattr(batches, "set_epoch"):
            batches.set_epoch(state.epoch)
        run.window = Window(state.step + 1)
        for batch, data_seconds in timed(batches):
            run.learning_rate = optimizer.param_groups[0]["lr"]
            on_device = to_device(batch, device)
            metrics = train_step(model, on_device, optimizer, scheduler=scheduler, max_norm=max_norm)
            run.window.add(batch, metrics, data_seconds)
            state.step += 1
            state.step_in_epoch += 1
            for callback in callbacks:
                callback.on_step(state)
            must_validate = validate_every_steps is not None and state.step % validate_every_steps == 0
            if must_validate or state.step % log_every_steps == 0:
                run.pause(validate=must_validate)
            if run.is_over(max_steps):  # inside an epoch, which stays open: a longer run could continue it
                run.pause(validate=True)
                return run.history
        run.end_epoch()
    return run.history


@dataclass
class _Fit:
    """What `fit` does between steps."""

    model: nn.Module
    validation_batches: Iterable[Batch] | None
    callbacks: Sequence[Callback]
    state: TrainState
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
        self.state.num_tokens += int(values["num_tokens"])
        self.state.train_seconds += values["seconds"]
        self._record("train", {"learning_rate": self.learning_rate, **values})
        self._restart_window()

    def validate(self) -> None:
        if self.validation_batches is None or self.state.last_validated_step == self.state.step:
            return
        self.state.last_validated_step = self.state.step
        self._record("validation", evaluate(self.model, self.validation_batches))
        self._restart_window()

    def pause(self, *, validate: bool) -> None:
        self.log()
        if validate:
            self.validate()
        self.safe_point()

    def safe_point(self) -> None:
        for callback in self.callbacks:
            callback.on_safe_point(self.state)
        self._restart_window()

    def end_epoch(self) -> None:
        if self.state.step_in_epoch == 0:
            raise ValueError("there is no batch to train on: `batches` is empty, or already used up")
        self.log()
        self.validate()
        self.state.epoch += 1
        self.state.step_in_epoch = 0
        self.safe_point()

    def _record(self, kind: str, values: dict[str, Any]) -> None:
        record = {"kind": kind, "step": self.state.step, "epoch": self.state.epoch, **values}
        self.history.append(record)
        for callback in self.callbacks:
            callback.on_record(self.state, record)

    def _restart_window(self) -> None:
        # The next window's clock starts after logging, evaluation and saving: they are not step time.
        self.window = Window(self.state.step + 1)
