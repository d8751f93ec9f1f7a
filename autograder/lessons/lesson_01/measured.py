"""What the measured quiz questions of lesson 01 ask for: counts on this machine's own data, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

MICRO_BATCH_SIZE = 16


def _at_random(num_texts: int, rows: int) -> list[list[int]]:
    import numpy as np

    order = np.random.default_rng(0).permutation(num_texts)
    return [order[start : start + rows].tolist() for start in range(0, num_texts, rows)]


def _pad_fraction_random(rows: int) -> float:
    from course_lib.data import docstring_store, pad_fraction

    lengths = docstring_store(progress=False)[0].lengths
    return pad_fraction(lengths, _at_random(len(lengths), rows))


@functools.cache
def pad_fraction_random_16() -> float:
    """Share of padding when the training docstrings are batched at random, 16 to a batch. 0 … 1."""
    return _pad_fraction_random(MICRO_BATCH_SIZE)


@functools.cache
def pad_fraction_random_2() -> float:
    """The same with 2 to a batch. 0 … 1."""
    return _pad_fraction_random(2)


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


@functools.cache
def attention_ratio_bucketing_16() -> float:
    """How many times less work attention has, rows x width² over all batches, in bucketed than in random ones."""
    from course_lib.data import BucketBatchSampler, docstring_store

    lengths = docstring_store(progress=False)[0].lengths

    def work(batches: Iterable[list[int]]) -> int:
        return sum(len(batch) * int(lengths[batch].max()) ** 2 for batch in batches)

    at_random = _at_random(len(lengths), MICRO_BATCH_SIZE)
    return work(at_random) / work(BucketBatchSampler(lengths, MICRO_BATCH_SIZE, seed=0))


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "pad_fraction_random_16": pad_fraction_random_16,
    "pad_fraction_random_2": pad_fraction_random_2,
    "places_ratio_bucketing_16": places_ratio_bucketing_16,
    "attention_ratio_bucketing_16": attention_ratio_bucketing_16,
}
