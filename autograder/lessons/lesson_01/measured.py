"""What the measured quiz questions of lesson 01 ask for: counts on this machine's own data, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable

MICRO_BATCH_SIZE = 16


@functools.cache
def pad_fraction_random_16() -> float:
    """Share of padding when the training docstrings are batched at random, 16 to a batch. 0 … 1."""
    import numpy as np

    from course_lib.data import docstring_store, pad_fraction

    lengths = docstring_store(progress=False)[0].lengths
    order = np.random.default_rng(0).permutation(len(lengths))
    starts = range(0, len(order), MICRO_BATCH_SIZE)
    return pad_fraction(lengths, [order[start : start + MICRO_BATCH_SIZE].tolist() for start in starts])


@functools.cache
def pad_fraction_bucketed_16() -> float:
    """The same with batches of like length, as `course_lib` makes them. 0 … 1."""
    from course_lib.data import BucketBatchSampler, docstring_store, pad_fraction

    lengths = docstring_store(progress=False)[0].lengths
    return pad_fraction(lengths, BucketBatchSampler(lengths, MICRO_BATCH_SIZE, seed=0))


def places_ratio_bucketing_16() -> float:
    """How many times fewer places (rows x width) bucketed batches have than random ones."""
    # Both hold the same real tokens: places = real tokens / (1 - pad fraction).
    return (1.0 - pad_fraction_bucketed_16()) / (1.0 - pad_fraction_random_16())


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "pad_fraction_random_16": pad_fraction_random_16,
    "places_ratio_bucketing_16": places_ratio_bucketing_16,
}
