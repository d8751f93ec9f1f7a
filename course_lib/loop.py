"""The training loop: `train_step`, `train_one_epoch`, `evaluate`, `fit`.

No value is read from a tensor inside a step. Losses and norms stay tensors on the device until log time,
when all of a window are read at once: one sync per window, and still the exact step of a NaN is known.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

Batch = Mapping[str, Tensor]


class Scheduler(Protocol):
    def step(self) -> None: ...


class NonFiniteError(ArithmeticError):
    """The loss or the gradient norm became NaN or infinite; the message names the step."""


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


class Window:
    """What happened in the steps since the last read. Tensors stay where they are until `read`."""

    def __init__(self, first_step: int = 1) -> None:
        self.first_step = first_step
        self.losses: list[Tensor] = []
        self.grad_norms: list[Tensor] = []
        self.real_tokens: list[Tensor] = []
        self.rows: list[int] = []
        self.num_positions = 0
        self.data_seconds = 0.0
        self.start = time.perf_counter()

    def add(self, batch: Batch, metrics: Mapping[str, Tensor], data_seconds: float = 0.0) -> None:
        """Note one step; `data_seconds` is what the loop waited for this batch."""
        mask = batch["attention_mask"]
        self.losses.append(metrics["loss"])
        self.grad_norms.append(metrics["grad_norm"])
        self.real_tokens.append(mask.sum())
        self.rows.append(mask.shape[0])
        self.num_positions += mask.numel()
        self.data_seconds += data_seconds

    def read(self) -> dict[str, float]:
        """Means and rates of the window: `loss` over samples, `grad_norm` over steps, rates per second.

        The one sync of the window. Raises NonFiniteError naming the first step that went wrong.
        """
        num_steps = len(self.losses)
        values = torch.stack([*self.losses, *self.grad_norms]).double().cpu()
        self._check_finite(values)
        losses, grad_norms = values[:num_steps], values[num_steps:]
        seconds = max(time.perf_counter() - self.start, 1e-9)
        num_samples, num_tokens = sum(self.rows), int(torch.stack(self.real_tokens).sum())
        return {
            "loss": float(losses @ torch.tensor(self.rows, dtype=torch.float64)) / num_samples,
            "grad_norm": float(grad_norms.mean()),
            "num_steps": num_steps,
            "num_samples": num_samples,
            "num_tokens": num_tokens,
            "pad_fraction": 1.0 - num_tokens / self.num_positions,
            "seconds": seconds,
            "samples_per_sec": num_samples / seconds,
            "tokens_per_sec": num_tokens / seconds,
            "step_time": seconds / num_steps,
            "data_wait_fraction": min(1.0, self.data_seconds / seconds),
        }

    def _check_finite(self, values: Tensor) -> None:
        is_bad = ~values.isfinite().reshape(2, -1)
        if not is_bad.any():
            return
        offset = int(is_bad.any(dim=0).nonzero()[0])
        loss, grad_norm = values.reshape(2, -1)[:, offset].tolist()
        raise NonFiniteError(
            f"step {self.first_step + offset}: loss is {loss:.4g}, gradient norm is {grad_norm:.4g}; "
            f"training stopped. Lower learning_rate, lengthen the warmup, or lower max_norm"
        )


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


def timed(batches: Iterable[Batch]) -> Iterator[tuple[Batch, float]]:
    """Each batch with the seconds that the loop waited for it."""
    iterator = iter(batches)
    while True:
        start = time.perf_counter()
        try:
            batch = next(iterator)
        except StopIteration:
            return
        yield batch, time.perf_counter() - start


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch on `device`; itself when it is there already. Copies from pinned memory do not block."""
    if batch["input_ids"].device == device:
        return batch
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
