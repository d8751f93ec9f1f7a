"""What the measured quiz question of lesson 06 asks for: a count on this machine's own data, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable

MICRO_BATCH_SIZE, WORLD_SIZE, MAX_LENGTH = 16, 2, 256


@functools.cache
def waiting_buckets_2() -> float:
    """Share of the time of two ranks spent waiting when bucketed batches are dealt out at random. 0 … 1."""
    import numpy as np

    from course_lib.data import BucketBatchSampler, docstring_store

    lengths = docstring_store(max_length=MAX_LENGTH, progress=False)[0].lengths
    widths = np.array(
        [lengths[batch].max() for batch in BucketBatchSampler(lengths, MICRO_BATCH_SIZE, seed=0)]
    )
    steps = widths[: len(widths) // WORLD_SIZE * WORLD_SIZE].reshape(-1, WORLD_SIZE)
    return float(1 - steps.sum() / (steps.max(axis=1).sum() * WORLD_SIZE))


MEASUREMENTS: dict[str, Callable[[], float]] = {"waiting_buckets_2": waiting_buckets_2}
