"""What a run of steps did: losses, norms, throughput, padding, waiting; read with one sync."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor

Batch = Mapping[str, Tensor]
"""`input_ids` int64 [B, T], `attention_mask` bool [B, T] (True = real token), `labels` int64 [B]."""


class NonFiniteError(ArithmeticError):
    """The loss or the gradient norm became NaN or infinite; the message names the step."""


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
