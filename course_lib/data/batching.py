"""From samples to batches with little padding: dynamic padding and length bucketing."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from course_lib.base import UserError, digest

if TYPE_CHECKING:
    import torch

Sample = tuple[np.ndarray, int | np.ndarray]
"""Ids [length], and a class, a number, float32 [C] of zeros and ones, or one label per id (int64)."""

IGNORE = -100
"""The label of what is no item: padding, special tokens. It stands here because data are made without torch."""


class Filler(list[int]):
    """Indices of a micro-batch that a process computes only because the others do: its labels are all -100, or NaN
    where labels are floats, so that it weighs nothing."""


class Samples(Protocol):
    """What batches are made of, such as a `TokenStore`: `lengths` int64 [n] and, by index, samples."""

    @property
    def lengths(self) -> np.ndarray: ...
    def __getitem__(self, index: int) -> Sample: ...


def collate(
    batch: Sequence[Sample], *, pad_id: int = 0, pad_to: int | None = None
) -> dict[str, torch.Tensor]:
    """Pad samples to one width and stack them.

    Args:
        batch: B samples: (1-D integer ids, label); the label an int, a float, an array of floats, or an integer
            array as long as the ids.
        pad_id: the id that fills the rest of a row.
        pad_to: the width T; None for the longest sample of this batch.

    Returns:
        `input_ids` int64 [B, T], `attention_mask` bool [B, T] (True = a real token), `labels` int64 [B], float32 [B]
        or [B, C], or int64 [B, T] with -100 at the padding where each sample has labels per id.

    Raises:
        UserError: the batch is empty, or a sample is longer than `pad_to`.
    """
    import torch

    if not batch:
        raise UserError("collate got an empty batch: give it at least one sample")
    texts, of_texts = zip(*batch, strict=True)
    lengths = np.array([len(ids) for ids in texts])
    width = lengths.max() if pad_to is None else pad_to
    if lengths.max() > width:
        raise UserError(f"a sample has {lengths.max()} tokens but {pad_to=}: raise pad_to or cut the sample")
    # Filled as NumPy arrays, which torch then shares: 16 small tensors and a stack would cost several times more.
    attention_mask = np.arange(width) < lengths[:, None]
    input_ids = np.full(attention_mask.shape, pad_id, dtype=np.int64)
    input_ids[attention_mask] = np.concatenate(texts)
    first = of_texts[0]
    if isinstance(first, np.ndarray) and first.dtype.kind != "f":
        labels = np.full_like(input_ids, IGNORE)
        labels[attention_mask] = np.concatenate(of_texts)
    else:
        labels = np.array(of_texts, dtype=np.int64 if isinstance(first, int | np.integer) else np.float32)
    parts = {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}
    return {name: torch.from_numpy(part) for name, part in parts.items()}


class BucketBatchSampler:
    """Batches of samples of similar length, in an order that is new each epoch.

    Shuffle all indices, cut them into pools of `pool_batches` batches, sort each pool by length, cut it into
    batches, then shuffle the batches. Within an epoch every index comes exactly once. The order depends on
    `seed` and the epoch alone: call `set_epoch` before each epoch, as with torch's DistributedSampler.
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        micro_batch_size: int,
        *,
        seed: int = 0,
        pool_batches: int = 100,
    ) -> None:
        """
        Args:
            lengths: tokens per sample, [n].
            micro_batch_size: samples per batch; the last one may be shorter.
            pool_batches: larger pools pad less, smaller ones mix more.

        Raises:
            UserError: a size is below 1.
        """
        if min(micro_batch_size, pool_batches) < 1:
            raise UserError(f"{micro_batch_size=} and {pool_batches=} must be at least 1")
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.micro_batch_size = micro_batch_size
        self.seed = seed
        self.pool_batches = pool_batches
        self.epoch = self._position = self._resume_at = 0

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        return -(-len(self.lengths) // self.micro_batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        start, self._resume_at = self._resume_at, 0
        self._position = start
        for batch in self._batches()[start:]:
            self._position += 1
            yield batch.tolist()

    def set_epoch(self, epoch: int) -> None:
        """Choose the order. The same epoch again keeps a position that `load_state_dict` has set."""
        if epoch != self.epoch:
            self.epoch = epoch
            self._position = self._resume_at = 0

    def state_dict(self) -> dict[str, Any]:
        """Epoch, and batches handed out so far in it.

        A DataLoader with workers asks ahead: then count the batches trained on, and put that in "position".
        """
        return {"epoch": self.epoch, "position": self._position, "identity": self._identity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue: the next iteration yields what was left of that epoch.

        Raises:
            UserError: the state is of other data, another seed or another batch size.
        """
        if state["identity"] != self._identity:
            fix = "resume with the settings of the run, or start a new run"
            raise UserError(f"the sampler's position is of other data, micro_batch_size or seed: {fix}")
        self.epoch = int(state["epoch"])
        self._position = self._resume_at = int(state["position"])

    def _batches(self) -> list[np.ndarray]:
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(len(self.lengths))
        pool_size = self.micro_batch_size * self.pool_batches
        batches: list[np.ndarray] = []
        for start in range(0, len(order), pool_size):
            pool = order[start : start + pool_size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches += np.split(pool, range(self.micro_batch_size, len(pool), self.micro_batch_size))
        return [batches[i] for i in rng.permutation(len(batches))]

    @functools.cached_property
    def _identity(self) -> str:  # hashed once: each checkpoint asks for it
        settings = f"{self.micro_batch_size} {self.seed} {self.pool_batches}"
        return digest(settings, self.lengths.astype("<i8").tobytes())[:16]


class Batches:
    """Collated batches of `samples`, made when they are asked for. Iterating again gives the next epoch.

    `order` gives lists of indices, one list per batch: a `BucketBatchSampler`, or a plain list of lists.
    Widths are rounded up to a multiple of `width_multiple`, as far as `samples.max_length` allows: libraries that
    compile a kernel for each shape then see fewer shapes.
    """

    def __init__(self, samples: Samples, order: Any, *, width_multiple: int = 1) -> None:
        self.samples = samples
        self.order = order
        self.width_multiple = width_multiple

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        # A store fills a batch with a few array operations: twice as fast as sample by sample.
        make = getattr(self.samples, "batch", None) or self._collate
        for indices in self.order:
            batch = make(indices, pad_to=self._width(indices))
            if isinstance(indices, Filler):
                batch["labels"].fill_(math.nan if batch["labels"].is_floating_point() else IGNORE)
            yield batch

    def _collate(self, indices: list[int], *, pad_to: int | None) -> dict[str, torch.Tensor]:
        return collate([self.samples[i] for i in indices], pad_to=pad_to)

    def _width(self, indices: list[int]) -> int | None:
        if self.width_multiple == 1:
            return None
        longest = int(self.samples.lengths[indices].max())
        limit = getattr(self.samples, "max_length", sys.maxsize)
        return min(-(-longest // self.width_multiple) * self.width_multiple, max(limit, longest))

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.order, "set_epoch"):
            self.order.set_epoch(epoch)


def evaluation_batches(samples: Samples, micro_batch_size: int, *, width_multiple: int = 1) -> Batches:
    """Every sample once, shortest first, so that almost nothing is padding; the same order each time."""
    by_length = np.argsort(samples.lengths, kind="stable").tolist()
    starts = range(0, len(by_length), micro_batch_size)
    order = [by_length[start : start + micro_batch_size] for start in starts]
    return Batches(samples, order, width_multiple=width_multiple)


def pad_fraction(lengths: Sequence[int] | np.ndarray, batches: Iterable[Sequence[int]]) -> float:
    """1 - real tokens / (rows x width), over batches of indices padded to their longest. 0 for no batches."""
    sizes = np.asarray(lengths, dtype=np.int64)
    rows = [sizes[np.asarray(batch, dtype=np.int64)] for batch in batches]
    padded = sum(len(row) * int(row.max(initial=0)) for row in rows)
    return 1.0 - sum(int(row.sum()) for row in rows) / padded if padded else 0.0
