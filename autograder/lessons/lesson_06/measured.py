"""What the measured quiz questions of lesson 06 ask for: counts on this machine's own data, no clock."""

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


@functools.cache
def waiting_single_texts_4() -> float:
    """The same for four ranks that take one text each, in random order. 0 … 1."""
    import numpy as np

    from course_lib.data import docstring_store

    lengths = docstring_store(max_length=MAX_LENGTH, progress=False)[0].lengths
    order = np.random.default_rng(0).permutation(len(lengths))
    steps = lengths[order[: len(order) // 4 * 4]].reshape(-1, 4)
    return float(1 - steps.sum() / (steps.max(axis=1).sum() * 4))


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "waiting_buckets_2": waiting_buckets_2,
    "waiting_single_texts_4": waiting_single_texts_4,
}
