"""Harness of 6.1: which samples each rank takes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import elsewhere, learner

BROKEN_OFF = 1  # the pass that is begun once, broken off, and begun anew
TWICE = 2  # the pass that is gone over a second time

# Run where hashes of texts are others. The reports come back through a pipe, as rows of numbers.
_ORDERS = """
num_samples, world_size, seed, epoch = request
orders = []
for rank in range(world_size):
    sampler = learner(num_samples, rank, world_size, seed)
    sampler.set_epoch(epoch)
    orders.append([int(index) for index in sampler])
say(orders)
"""


def shard_epochs(
    num_samples: int, world_size: int, seeds: list[int | None], epochs: list[int]
) -> list[list[dict[str, Any]]]:
    """For each seed and rank its length and its indices in each of these epochs, one of them twice. None: no seed.

    No processes: a shard is arithmetic. Beside the ranks stand a sampler of another task, in another epoch, and one
    that differs in the number of samples alone.
    """
    found = []
    for number, seed in enumerate(seeds):
        named = {} if seed is None else {"seed": seed}
        ranks = [learner(num_samples, rank, world_size, **named) for rank in range(world_size)]
        beside = learner(num_samples + 5, 0, world_size + 1, number)
        larger = learner(num_samples + 5, 0, world_size, **named)
        reports: list[dict[str, Any]] = [{"len": [len(rank)], "orders": []} for rank in ranks]
        for epoch in epochs:
            for rank in ranks:
                rank.set_epoch(epoch)
            beside.set_epoch(epoch + 61 + number)
            for rank, report in zip(ranks, reports, strict=True):
                if len(report["orders"]) == BROKEN_OFF:  # after its first indices
                    next(zip(rank, range(2), strict=False), None)
                    rank.set_epoch(epoch)
                    beside.set_epoch(epoch + 61 + number)
                # An endless iterator is a wrong answer, and no reason to wait.
                report["orders"].append(_indices(islice(rank, 3 * num_samples + 64)))
                if len(report["orders"]) == TWICE + 1:
                    report["again"] = _indices(islice(rank, 3 * num_samples + 64))
                    report["amid"] = _indices(islice(_drawing(rank), 3 * num_samples + 64))
                report["len"].append(len(rank))
        epoch = max(epochs) + 1  # a new one, which the sampler for more samples is the first to go through
        for member, report in zip([larger, *ranks], [{}, *reports], strict=True):
            member.set_epoch(epoch)
            report["beside"] = _indices(islice(member, 3 * num_samples + 64))
        found.append(reports)
    return found


def _drawing(indices: Iterator[int]) -> Iterator[int]:
    """The same indices, for somebody who draws numbers meanwhile, as a training does between its batches."""
    for index in indices:
        random.random()
        np.random.random()
        torch.rand(1)
        yield index


def whole_orders(num_samples: int, world_size: int, seeds: list[int], epochs: list[int]) -> list[np.ndarray]:
    """For each seed the indices of all ranks, one rank after the other, a row for each epoch."""
    found = []
    for seed in seeds:
        ranks = [learner(num_samples, rank, world_size, seed) for rank in range(world_size)]
        rows = []
        for epoch in epochs:
            for rank in ranks:
                rank.set_epoch(epoch)
            rows.append(np.concatenate([_indices(rank) for rank in ranks]))
        found.append(np.stack(rows))
    return found


def _indices(values: Any) -> Any:
    """As an array, or the name of the type of a value that is no int of Python's own."""
    indices = list(values)
    odd = [type(value).__name__ for value in indices if type(value) is not int]
    return odd[0] if odd else np.array(indices, dtype=np.int64)


def shards_elsewhere(source: str, entry: str, request: list[int], hash_seed: int) -> list[Any]:
    """The indices of each rank in a fresh interpreter, as each rank is one: `request` is N, W, seed and epoch."""
    orders = elsewhere(_ORDERS, source, entry, request, hash_seed)
    return [np.array(order, dtype=np.int64) for order in orders]
