"""The training loop: `train_step`, `train_one_epoch`, `evaluate`, `fit`.

No value is read from a tensor inside a step. Losses and norms stay tensors on the device until log time,
when all of a window are read at once: one sync per window, and still the exact step of a NaN is known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from course_lib.base import UserError, on_device
from course_lib.distributed import device_of, unwrap, whole
from course_lib.measuring import stage
from course_lib.training.between_steps import BetweenSteps
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.evaluation import evaluate as evaluate
from course_lib.training.losses import Loss, at_least_one, cross_entropy_gradients, own_gradients
from course_lib.training.precision import FULL_PRECISION, Precision
from course_lib.training.window import (
    Batch,
    MicroBatches,
    Window,
    begin_epoch,
    micro_batches,
    timed,
    to_device,
)
from course_lib.training.window import NonFiniteError as NonFiniteError


class Scheduler(Protocol):
    def step(self) -> None: ...


def train_step(
    model: nn.Module,
    batch: Batch | MicroBatches,
    optimizer: torch.optim.Optimizer,
    *,
    loss: Loss | None = None,
    scheduler: Scheduler | None = None,
    max_norm: float = 1.0,
    precision: Precision = FULL_PRECISION,
    label_smoothing: float = 0.0,
) -> dict[str, Tensor]:
    """One update from one batch, or from several micro-batches whose gradients add up. No sync.

    Each item weighs the same, whatever micro-batch or process it is in: the loss is the sum over items
    divided by the number of items of the whole update, so the gradients are those of one big batch.

    `batch`: any nest of tensors on the model's device, or a list of such (`micro_batches` says which it is).
    `loss(model, batch)` returns the sum of the loss over the batch's items, a 0-d tensor, and their number. Without
    it the loss is cross-entropy, with `label_smoothing`, of `model(x)` for a batch `(x, y)` or a mapping of one
    input and `labels`, and of `model(input_ids, attention_mask)` for texts: `input_ids` int64 [B, T],
    `attention_mask` bool [B, T], `labels` int64 [B] or [B, T]; -100 is no item.

    Returns 0-d tensors: `loss` (mean over this process's items), `num_items` and `grad_norm` (before
    clipping). `max_norm=inf` clips nothing. Raises UserError where the default loss does not fit, or `loss`
    returns something else.
    """
    if loss is not None and label_smoothing:
        raise UserError("label_smoothing belongs to the default loss: smooth in loss= itself")
    batches = micro_batches(batch)
    optimizer.zero_grad(set_to_none=True)
    with precision.casts_once():
        if loss is None:
            total, items = cross_entropy_gradients(model, batches, precision, label_smoothing)
        else:
            total, items = own_gradients(model, batches, optimizer, precision, loss)
    with stage("optimizer"):
        if precision.scaler is None:
            grad_norm = whole(clip_grad_norm_(model.parameters(), max_norm))
            optimizer.step()
        else:
            precision.scaler.unscale_(optimizer)  # before clipping, which must see the true norm
            grad_norm = whole(clip_grad_norm_(model.parameters(), max_norm))
            precision.scaler.step(optimizer)  # a sync: it must know whether to skip the step
            precision.scaler.update()
    if scheduler is not None:
        scheduler.step()
    return {"loss": total / at_least_one(items), "num_items": items, "grad_norm": grad_norm}


def train_one_epoch(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    scheduler: Scheduler | None = None,
    max_norm: float = 1.0,
    *,
    loss: Loss | None = None,
) -> dict[str, float]:
    """One pass over `batches`, one sync at its end; `loss` as in `train_step`. Returns what `Window.read` returns.

    Raises ValueError when there is no batch.
    """
    device = device_of(model)
    model.train()
    window = Window()
    for batch, data_seconds in timed(batches):
        metrics = train_step(
            model, to_device(batch, device), optimizer, loss=loss, scheduler=scheduler, max_norm=max_norm
        )
        window.add(batch, metrics, data_seconds)
    if not window.losses:
        raise ValueError("there is no batch to train on: `batches` is empty, or an iterator already used up")
    return window.read()


def fit(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    *,
    loss: Loss | None = None,
    scheduler: Any = None,
    validation_batches: Iterable[Batch] | None = None,
    max_epochs: int = 1,
    max_steps: int | None = None,
    max_norm: float = 1.0,
    grad_accum_steps: int = 1,
    precision: Precision = FULL_PRECISION,
    label_smoothing: float = 0.0,
    log_every_steps: int = 50,
    validate_every_steps: int | None = None,
    callbacks: Sequence[Callback] = (),
    state: TrainState | None = None,
) -> list[dict[str, Any]]:
    """Train until `max_epochs` or `max_steps`, whichever comes first; returns the records made.

    `batches`: any iterable that can be iterated again, such as a DataLoader; `train_step` says what a batch may be,
    and what `loss` is. Each is brought to the model's device. `batches` is iterated once per epoch; before a new
    one its `set_epoch(n)`, if any, is called, and its samplers'. Every `grad_accum_steps` of them make one update.
    Validation, by the same `loss`, runs at the end of each epoch, and every `validate_every_steps` when given; a
    scheduler with `step_metric` is then told the loss. To continue an interrupted run, give the `state` it had and
    `batches` that begin where it stopped.

    Raises NonFiniteError at the log after a NaN, ValueError when an epoch has no batch.
    """
    state = state or TrainState()
    run = BetweenSteps(unwrap(model), validation_batches, loss, callbacks, state, scheduler, precision)
    device = device_of(model)
    model.train()
    with on_device(device), _told_of_the_end(callbacks, state):
        while state.epoch < max_epochs and not run.is_over(max_steps):
            if state.step_in_epoch == 0:
                begin_epoch(batches, state.epoch)
            run.restart_window()
            for batch, data_seconds in timed(batches, grad_accum_steps, is_resumed=state.step_in_epoch > 0):
                # The rate that was asked for, which embeddings exceed and lower layers do not reach.
                first = optimizer.param_groups[0]
                run.learning_rate = first["lr"] / first.get("lr_scale", 1.0)
                metrics = train_step(
                    model,
                    to_device(batch, device),
                    optimizer,
                    loss=loss,
                    scheduler=scheduler,
                    max_norm=max_norm,
                    precision=precision,
                    label_smoothing=label_smoothing,
                )
                run.window.add(batch, metrics, data_seconds)
                state.step += 1
                state.step_in_epoch += 1
                for callback in callbacks:
                    callback.on_step(state)
                must_validate = validate_every_steps is not None and state.step % validate_every_steps == 0
                if must_validate or state.step % log_every_steps == 0:
                    run.pause(validate=must_validate)
                if run.is_over(max_steps):  # inside an epoch, which stays open: a longer run could go on
                    run.pause(validate=True)
                    return run.history
            run.end_epoch()
        return run.history


@contextlib.contextmanager
def _told_of_the_end(callbacks: Sequence[Callback], state: TrainState) -> Iterator[None]:
    try:
        yield
    finally:
        for callback in callbacks:
            callback.on_end(state)
