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

from course_lib.distributed import no_sync, sum_across_ranks, unwrap, whole, world_size
from course_lib.measuring import stage
from course_lib.training.between_steps import BetweenSteps
from course_lib.training.callbacks import Callback, TrainState
from course_lib.training.evaluation import evaluate as evaluate
from course_lib.training.losses import loss_sum, num_items
from course_lib.training.precision import FULL_PRECISION, Precision
from course_lib.training.window import Batch, Window, begin_epoch, micro_batches, timed, to_device
from course_lib.training.window import NonFiniteError as NonFiniteError


class Scheduler(Protocol):
    def step(self) -> None: ...


def train_step(
    model: nn.Module,
    batch: Batch | Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    *,
    scheduler: Scheduler | None = None,
    max_norm: float = 1.0,
    precision: Precision = FULL_PRECISION,
    label_smoothing: float = 0.0,
) -> dict[str, Tensor]:
    """One update from one batch, or from several micro-batches whose gradients add up. No sync.

    Each item weighs the same, whatever micro-batch or process it is in: the loss is the sum over items
    divided by the number of items of the whole update, so the gradients are those of one big batch.
    `batch`: `input_ids` int64 [B, T], `attention_mask` bool [B, T], `labels` int64 [B] or [B, T], on the
    model's device. Returns 0-d tensors: `loss` (mean over this process's items), `num_items` and
    `grad_norm` (before clipping). `max_norm=inf` clips nothing.
    """
    batches = micro_batches(batch)
    local_items = num_items(batches[0]["labels"])
    for other in batches[1:]:
        local_items = local_items + num_items(other["labels"])
    # DDP averages gradients over processes; times their number, the average becomes the sum.
    share = world_size() / sum_across_ranks(local_items).clamp(min=1)
    optimizer.zero_grad(set_to_none=True)
    total = None
    for number, micro_batch in enumerate(batches, start=1):
        with no_sync(model, is_last=number == len(batches)):
            with precision.autocast(), stage("forward"):
                logits = model(micro_batch["input_ids"], micro_batch["attention_mask"])
                loss = loss_sum(logits, micro_batch["labels"], label_smoothing)
            with stage("backward"):
                scaled = loss * share
                (scaled if precision.scaler is None else precision.scaler.scale(scaled)).backward()
        total = loss.detach() if total is None else total + loss.detach()
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
    assert total is not None
    return {"loss": total / local_items.clamp(min=1), "num_items": local_items, "grad_norm": grad_norm}


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
        on_device = [to_device(micro_batch, device) for micro_batch in batch]
        metrics = train_step(model, on_device, optimizer, scheduler=scheduler, max_norm=max_norm)
        window.add(batch, metrics, data_seconds)
    if not window.losses:
        raise ValueError("there is no batch to train on: `batches` is empty, or an iterator already used up")
    return window.read()


def fit(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    *,
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

    `batches` is iterated once per epoch; before a new one its `set_epoch(n)`, if any, is called, and its samplers'.
    Every `grad_accum_steps` of them make one update. Validation runs at the end of each epoch, and every
    `validate_every_steps` when given; a scheduler with `step_metric` is then told the loss. To continue an
    interrupted run, give the `state` it had and `batches` that begin where it stopped.

    Raises NonFiniteError at the log after a NaN, ValueError when an epoch has no batch.
    """
    state = state or TrainState()
    run = BetweenSteps(unwrap(model), validation_batches, callbacks, state, scheduler, precision)
    device = next(model.parameters()).device
    model.train()
    with _told_of_the_end(callbacks, state):
        while state.epoch < max_epochs and not run.is_over(max_steps):
            if state.step_in_epoch == 0:
                begin_epoch(batches, state.epoch)
            run.restart_window()
            for batch, data_seconds in timed(batches, grad_accum_steps):
                # The rate that was asked for, which embeddings exceed and lower layers do not reach.
                first = optimizer.param_groups[0]
                run.learning_rate = first["lr"] / first.get("lr_scale", 1.0)
                on_device = [to_device(micro_batch, device) for micro_batch in batch]
                metrics = train_step(
                    model,
                    on_device,
                    optimizer,
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
