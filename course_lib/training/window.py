"""Batches on their way into a step, and what a run of steps did: losses, norms, throughput; read with one sync."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from course_lib.base import is_nest, leaves, map_leaves
from course_lib.distributed import sum_across_ranks
from course_lib.measuring import stage

Batch = Any
"""Tensors in any nest of dicts, lists, tuples and dataclasses, samples along their first dimension.

Texts are a mapping: `input_ids` int64 [B, T], `attention_mask` bool [B, T] (True = real token), `labels` int64 [B]
or [B, T]. Where there is such a mask, padding and tokens are counted."""


class MicroBatches(list[Batch]):
    """The micro-batches of one update, by a name of their own: a plain list may be one batch, too."""


class NonFiniteError(ArithmeticError):
    """The loss or the gradient norm became NaN or infinite; the message names the step and its batch."""


class Window:
    """What happened in the steps since the last read. Tensors stay where they are until `read`."""

    def __init__(self, first_step: int = 1, *, first_batch: int = 1, skips_nonfinite: bool = False) -> None:
        self.first_step, self.first_batch = first_step, first_batch
        self.skips_nonfinite = skips_nonfinite
        self.losses: list[Tensor] = []
        self.grad_norms: list[Tensor] = []
        self.items: list[Tensor] = []
        self.real_tokens: list[Tensor] = []
        self.num_rows = 0
        self.num_positions = 0
        self.data_seconds = 0.0
        self.start = time.perf_counter()

    def add(
        self, batch: Batch | MicroBatches, metrics: Mapping[str, Tensor], data_seconds: float = 0.0
    ) -> None:
        """Note one step; `data_seconds` is what the loop waited for its data. `metrics` as of `train_step`;
        without `num_items` the step weighs its rows."""
        num_rows = self.num_rows
        for micro_batch in micro_batches(batch):
            mask = micro_batch.get("attention_mask") if isinstance(micro_batch, Mapping) else None
            if isinstance(mask, Tensor) and mask.ndim == 2:
                self.real_tokens.append(mask.sum())
                self.num_positions += mask.numel()
            self.num_rows += num_samples(micro_batch)
        self.losses.append(metrics["loss"])
        self.grad_norms.append(metrics["grad_norm"])
        items = metrics.get("num_items")
        self.items.append(torch.tensor(self.num_rows - num_rows) if items is None else items)
        self.data_seconds += data_seconds

    def read(self) -> dict[str, float]:
        """Means and rates of the window: `loss` over items, `grad_norm` over steps, rates per second, over
        all processes. `num_tokens`, `tokens_per_sec` and `pad_fraction` where batches have an `attention_mask`.

        The one sync of the window. Raises NonFiniteError naming the first step that went wrong; with
        `skips_nonfinite` such steps are left out of the means and counted.
        """
        num_steps = len(self.losses)
        # Beside an offloaded model its norms are on the CPU, and so are counts of rows.
        device = self.losses[0].device
        on_device = torch.cat(
            [torch.stack(values).to(device) for values in (self.losses, self.grad_norms, self.items)]
        )
        values = on_device.cpu().double().numpy().reshape(3, num_steps)  # Apple's GPUs have no float64
        is_good = np.isfinite(values).all(axis=0)
        if not self.skips_nonfinite and not is_good.all():
            self._complain(values, int(np.flatnonzero(~is_good)[0]))
        losses, grad_norms, weights = values[:, is_good]
        seconds = max(time.perf_counter() - self.start, 1e-9)
        tokens = torch.stack(self.real_tokens).sum().item() if self.real_tokens else 0
        counts = [self.num_rows, tokens, self.num_positions]
        totals = torch.tensor([losses @ weights, weights.sum(), *counts], dtype=torch.float64)
        loss_sum, num_items, *sums = sum_across_ranks(totals).tolist()
        num_samples, num_tokens, num_positions = map(int, sums)
        read = {
            "loss": loss_sum / (num_items or 1.0),
            "grad_norm": float(grad_norms.mean()) if len(grad_norms) else 0.0,
            "num_steps": num_steps,
            "num_nonfinite": num_steps - len(losses),
            "num_samples": num_samples,
            "seconds": seconds,
            "samples_per_sec": num_samples / seconds,
            "step_time": seconds / num_steps,
            "data_wait_fraction": min(1.0, self.data_seconds / seconds),
        }
        if num_positions:
            read["num_tokens"] = num_tokens
            read["tokens_per_sec"] = num_tokens / seconds
            read["pad_fraction"] = 1.0 - num_tokens / num_positions
        return read

    def _complain(self, values: np.ndarray, offset: int) -> NoReturn:
        loss, grad_norm, _ = values[:, offset]
        raise NonFiniteError(
            f"step {self.first_step + offset} (batch {self.first_batch + offset} of the epoch): loss is "
            f"{loss:.4g}, gradient norm is {grad_norm:.4g}; training stopped. Lower learning_rate, lengthen "
            f"the warmup, or lower max_norm"
        )


def micro_batches(batch: Batch | MicroBatches) -> MicroBatches:
    """One batch, or the micro-batches of one update, as the latter.

    A list or tuple whose parts are all nests themselves is taken for micro-batches, and one that holds a tensor
    for a batch, such as a DataLoader's `[x, y]`. `MicroBatches` settles it where a batch is a list of nests.
    Raises ValueError when there is none.
    """
    if isinstance(batch, MicroBatches):
        return batch
    is_one = isinstance(batch, Mapping) or hasattr(batch, "to") or not isinstance(batch, Sequence)
    if is_one or hasattr(batch, "_fields") or not all(map(is_nest, batch)):
        return MicroBatches([batch])
    if not batch:
        raise ValueError("there is no batch to train on: an update needs at least one")
    return MicroBatches(batch)


def num_samples(batch: Batch) -> int:
    """The first dimension of the first tensor that has one; 0 where there is none."""
    return next((leaf.shape[0] for leaf in leaves(batch) if isinstance(leaf, Tensor) and leaf.ndim), 0)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch on `device`; itself when it is there already.

    What is no tensor goes along as it is, unless it has a method `to` of its own. For CUDA, Python does not wait: it
    queues steps ahead of the GPU, and a batch travels while those before it are computed.
    """

    def is_elsewhere(leaf: Any) -> bool:
        return leaf.device != device if isinstance(leaf, Tensor) else hasattr(leaf, "to")

    if not any(map(is_elsewhere, leaves(batch))):
        return batch
    with stage("transfer"):
        if device.type == "cuda":
            return _by_side_stream(batch, device, is_elsewhere)
        return map_leaves(lambda leaf: leaf.to(device) if is_elsewhere(leaf) else leaf, batch)


def _by_side_stream(batch: Batch, device: torch.device, is_elsewhere: Callable[[Any], bool]) -> Batch:
    """Copied from pinned memory by a stream of its own. In the stream that computes, a copy would wait its turn behind
    all kernels queued before, and from memory that is not pinned Python would wait with it."""
    computing, copying = torch.cuda.current_stream(device), _copy_stream(device)

    def copy(leaf: Any) -> Any:
        if not is_elsewhere(leaf):
            return leaf
        if not (isinstance(leaf, Tensor) and leaf.device.type == "cpu" and leaf.layout is torch.strided):
            return leaf.to(device)
        pinned = (
            leaf if leaf.is_pinned() else leaf.pin_memory()
        )  # a copy on the host, into memory that is kept
        with torch.cuda.stream(copying):
            there = pinned.to(device, non_blocking=True)  # torch keeps `pinned` until it has been read
        there.record_stream(computing)  # its memory is of the other stream, which must not reuse it too early
        return there

    there = map_leaves(copy, batch)
    computing.wait_stream(copying)
    return there


@functools.cache
def _copy_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def begin_epoch(batches: object, epoch: int) -> None:
    """Tell whatever orders these batches which epoch begins, so that each has an order of its own.

    It is called where torch puts it: `batches` itself, a `DataLoader`'s `dataset`, `sampler` and `batch_sampler`, and
    the `sampler` in that. A DataLoader has no `set_epoch` that would pass it on.
    """
    batch_sampler = getattr(batches, "batch_sampler", None)
    places = [batches, *(getattr(batches, name, None) for name in ("dataset", "sampler")), batch_sampler]
    told: list[object] = []
    for place in [*places, getattr(batch_sampler, "sampler", None)]:
        if not any(place is other for other in told) and hasattr(place, "set_epoch"):
            place.set_epoch(epoch)
            told.append(place)


def timed(
    batches: Iterable[Batch], grad_accum_steps: int = 1, *, is_resumed: bool = False
) -> Iterator[tuple[MicroBatches, float]]:
    """The micro-batches of each update (the last one may have fewer) with the seconds that the loop waited.

    A DataLoader draws a random number when it begins. With `is_resumed` that is taken back: the epoch goes on, and
    its number was drawn when it began.
    """
    random_state = torch.get_rng_state() if is_resumed else None
    iterator = iter(batches)
    if random_state is not None:
        torch.set_rng_state(random_state)
    while True:
        start = time.perf_counter()
        with stage("data"):
            window = MicroBatches(islice(iterator, grad_accum_steps))
        if not window:
            return
        yield window, time.perf_counter() - start
