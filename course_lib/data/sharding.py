"""Who computes which micro-batch: a sampler's order dealt out to several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np

from course_lib.base import UserError
from course_lib.data.batching import Filler

_POOL_WINDOWS = 256


class Ranks(Protocol):
    """Which of how many processes this is, such as `course_lib.distributed.Ranks`."""

    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...


class ShardedOrder:
    """This process's share of the micro-batches of `sampler`, in windows of one update each.

    An update takes `world_size * grad_accum_steps` micro-batches, and which ones depends on that product
    alone: 2 processes, or 1 that accumulates twice, train on the same. Micro-batches of about the same width
    (`sampler.lengths`) are put into one window, so that no process waits long for another. The last window of
    an epoch may have fewer: its samples are dealt again, evenly, so that all processes make the same number
    of micro-batches; one that gets no sample computes a `Filler`, which weighs nothing.
    """

    def __init__(self, sampler: Any, ranks: Ranks, grad_accum_steps: int = 1) -> None:
        self.sampler = sampler
        self.ranks = ranks
        self.window_size = ranks.world_size * grad_accum_steps
        self.epoch = 0
        self._position = self._resume_at = 0

    def __len__(self) -> int:
        """Micro-batches of this process in a whole epoch."""
        windows, rest = divmod(len(self.sampler), self.window_size)
        return windows * (self.window_size // self.ranks.world_size) + -(-rest // self.ranks.world_size)

    def __iter__(self) -> Iterator[list[int]]:
        start, self._resume_at, self._position = self._resume_at, 0, 0
        for window in self._windows():
            self._position += len(window)
            if self._position > start:
                yield from self._share(window)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order. The same epoch again keeps a position that `load_state_dict` has set."""
        if epoch != self.epoch:
            self.epoch = epoch
            self._position = self._resume_at = 0
            if hasattr(self.sampler, "set_epoch"):
                self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Epoch, and micro-batches handed out so far in it, over all processes.

        Where batches are made ahead, put the updates made times `window_size` in "position" instead.
        """
        return {"epoch": self.epoch, "position": self._position, "identity": self._identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with the next window, on this number of processes or another with the same window.

        Raises UserError when the state is of other data, another seed, batch size or window.
        """
        if state["identity"] != self._identity():
            raise UserError(
                "the saved position belongs to other data, seed, micro_batch_size or number of micro-batches per "
                f"update (now {self.window_size}): keep processes x grad_accum_steps, or start a new run"
            )
        self.set_epoch(int(state["epoch"]))
        self._position = self._resume_at = int(state["position"])

    def _identity(self) -> str:
        inner = self.sampler.state_dict()["identity"] if hasattr(self.sampler, "state_dict") else ""
        return f"{inner} {self.window_size}"

    def _windows(self) -> Iterator[list[list[int]]]:
        """The micro-batches of each update. Those left over make the last window; they are the last ones that
        the sampler gives, whose order is random, and not the widest."""
        size, micro_batches = self.window_size, iter(self.sampler)
        while pool := list(islice(micro_batches, _POOL_WINDOWS * size)):
            whole = len(pool) - len(pool) % size
            by_width = sorted(range(whole), key=lambda number: self._width(pool[number]))
            windows = [by_width[start : start + size] for start in range(0, whole, size)]
            for window in sorted(windows, key=min):  # random again: by the sampler's place of its first
                yield [pool[number] for number in window]
            if whole < len(pool):
                yield pool[whole:]

    def _width(self, indices: Sequence[int]) -> int:
        lengths = getattr(self.sampler, "lengths", None)
        return 0 if lengths is None or self.window_size == 1 else int(lengths[indices].max())

    def _share(self, window: list[list[int]]) -> list[list[int]]:
        rank, world_size = self.ranks.rank, self.ranks.world_size
        if len(window) % world_size:
            samples = np.asarray(list(chain.from_iterable(window)))
            lengths = getattr(self.sampler, "lengths", None)
            if lengths is not None:
                samples = samples[np.argsort(lengths[samples], kind="stable")]
            num_parts = -(-len(window) // world_size) * world_size
            parts = np.array_split(samples, num_parts)
            window = [part.tolist() or Filler(samples[:1].tolist()) for part in parts]
        return window[rank::world_size]


def shard_evenly(batches: Sequence[list[int]], ranks: Ranks) -> list[list[int]]:
    """Every `world_size`-th batch, beginning at `rank`; the same number on all processes, if need be by a
    `Filler`. For evaluation: each sample counts exactly once."""
    missing = -len(batches) % ranks.world_size
    return [*batches, *(Filler(batches[0][:1]) for _ in range(missing))][ranks.rank :: ranks.world_size]
