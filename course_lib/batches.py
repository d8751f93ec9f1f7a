"""Batches straight from a token store, in the order that a sampler says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor

from course_lib.data.batching import collate

if TYPE_CHECKING:
    from course_lib.data.store import TokenStore


class BatchOrder(Iterable[list[int]], Sized, Protocol):
    """Lists of indices, one list per batch: a `BucketBatchSampler`, or a plain list of lists."""


class Batches:
    """Collated batches of `store`, made when they are asked for. Iterating again gives the next epoch."""

    def __init__(self, store: TokenStore, order: BatchOrder) -> None:
        self.store = store
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for indices in self.order:
            yield collate([self.store[i] for i in indices])

    def set_epoch(self, epoch: int) -> None:
        set_epoch: Any = getattr(self.order, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(epoch)


def evaluation_batches(store: TokenStore, micro_batch_size: int) -> Batches:
    """Every sample once, shortest first, so that almost nothing is padding; the same order each time."""
    by_length = np.argsort(store.lengths, kind="stable").tolist()
    starts = range(0, len(by_length), micro_batch_size)
    return Batches(store, [by_length[start : start + micro_batch_size] for start in starts])
