"""The check of exercise 6.1: which samples each rank takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_each_once, require_repeatable


def check_shard_sampler(job: Job) -> None:
    """6.1: every sample on some rank, equal lengths, repeats only to fill up, and new shards each epoch."""
    rng = job.rng
    cases = [(1003, 4), (96, 3), (int(rng.integers(200, 700)), int(rng.integers(5, 9))), (3, 8), (17, 1)]
    for num_samples, world_size in cases:
        epochs = [0, 1, 1]
        ranks = job.learner().call(
            "shard_epochs", num_samples=num_samples, world_size=world_size, seed=job.seed(), epochs=epochs
        )
        for number, epoch in enumerate(epochs):
            _require_shards(job, ranks, number, epoch, num_samples, world_size)
        if num_samples > 50:
            _require_new_order(job, ranks, world_size)
    job.counts["world_sizes_tried"] = len(cases)


def _require_shards(
    job: Job, ranks: list[dict[str, Any]], number: int, epoch: int, num_samples: int, world_size: int
) -> None:
    share = math.ceil(num_samples / world_size)
    who = f"{num_samples} samples on {world_size} ranks, epoch {epoch}: "
    sizes = [len(rank["orders"][number]) for rank in ranks]
    likely = "ranks get different numbers of samples: the last steps would wait for one that never comes"
    if world_size > 1 and max(sizes) >= num_samples > share:
        likely = "no sampler: every rank goes over all the samples, so nothing is shared out"
    elif max(sizes) == num_samples // world_size:
        likely = "the tail is dropped: what does not divide by the number of ranks is never seen"
    elif world_size > 2 * num_samples and max(sizes) == share:
        likely = "the filling ends too early: with so many ranks one repetition of the order is not enough"
    job.require(
        set(sizes) == {share},
        expected=f"{who}{share} indices on every rank",
        got=f"{sizes[:8]}",
        likely=likely,
        look="ceil(N / world_size) each; the missing ones are filled up from the start of the order, again and again",
    )
    job.require(
        all(rank["len"] == share for rank in ranks),
        expected=f"{who}len(sampler) = {share}",
        got=f"{[rank['len'] for rank in ranks][:8]}",
        likely="`__len__` counts all samples, or without the filling",
        look="it is the number of indices that one rank yields",
    )
    most = math.ceil(world_size * share / num_samples)
    require_each_once(
        job,
        np.concatenate([rank["orders"][number] for rank in ranks]),
        range(num_samples),
        most=most,
        expected=f"{who}each index 0 … {num_samples - 1} on some rank, and none more than {most} times",
        likely="each rank shuffles for itself (its rank is in the seed), so that the shards overlap and leave gaps",
        look="all ranks make the *same* order from seed and epoch; then each takes its part of it",
        likely_repeated="the filling repeats one sample over and over: it counts for many",
        look_repeated="fill up with the first samples of the order, each once",
    )


def _require_new_order(job: Job, ranks: list[dict[str, Any]], world_size: int) -> None:
    for number, rank in enumerate(ranks):
        first, second, again = rank["orders"]
        require_repeatable(
            job,
            what="order",
            is_same=np.array_equal(second, again),
            when="for the same seed and epoch",
            unseeded="an unseeded generator, or one that carries on: ranks could not agree on an order",
            look_unseeded="make the generator anew in `__iter__`",
            is_another=not np.array_equal(first, second),
            another=f"on rank {number} after set_epoch(1)",
            fixed="forgot set_epoch: the order does not depend on the epoch, so every epoch is the same",
            look_fixed="make the generator from seed and epoch",
        )
        both = len(np.intersect1d(first, second)) / len(first)
        job.require(
            both <= 0.5 + 0.5 / world_size,
            expected=f"other samples on rank {number} in the next epoch",
            got=f"{both:.0%} of them are the same",
            likely="the data are divided first and shuffled inside each shard: a rank sees one part of them for ever",
            look="shuffle all indices, then take every world_size-th",
        )
