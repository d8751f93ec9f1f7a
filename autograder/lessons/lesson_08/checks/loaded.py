"""What a loader of 8.1 gives in an epoch: every sample, in batches, from so many workers, in a new order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_each_once

#: Where noise comes from → its column of a sample; before them stand the sample's index and its worker.
SOURCES = {"`dataset.rng`": 2, "NumPy": 3, "Python's random": 4, "torch": 5}
GENERATOR = 6
"""The column that says whether `dataset.rng` is what it was: a `Generator` of NumPy."""
DEFAULTS = {"micro_batch_size": 32, "num_workers": 0}


def require_loaded(job: Job, answer: dict[str, Any], size: int, settings: Mapping[str, int]) -> None:
    """Fail unless each epoch has each sample once, in batches of the size that was asked for, from as many workers."""
    asked = DEFAULTS | dict(settings)
    most, num_workers = asked["micro_batch_size"], asked["num_workers"]
    for epoch, sizes in zip(answer["epochs"], answer["sizes"], strict=True):
        require_each_once(
            job,
            epoch[:, 0],
            range(size),
            expected=f"a loader that gives each of {size} samples once an epoch, and can be iterated again",
            likely=_why_missing(size, len(epoch), most),
            look="return the `DataLoader` itself, without `drop_last`",
            likely_repeated="samples are drawn with replacement, or an epoch goes over the data more than once",
        )
        job.require(
            max(sizes) <= most and all(some == most for some in sorted(sizes)[1:]),
            expected=f"batches of {most} samples, and one of the rest"
            + (", with the defaults of the signature" if not settings else ""),
            got=f"batches of {', '.join(map(str, sizes[:4]))}",
            likely="`micro_batch_size` does not reach the loader, or another number stands in its place",
            look="`DataLoader(batch_size=micro_batch_size)`",
        )
        job.require(
            bool(epoch[:, GENERATOR].all()),
            expected="`dataset.rng` to be a NumPy `Generator`, as it was",
            got="another object in its place",
            likely="`RandomState`, or Python's `Random`, draws some of the same numbers and lacks the rest, such as "
            "`integers`: a data set that asks for it breaks",
            look="`np.random.default_rng(seed)` makes a `Generator`",
        )
        workers = {*np.unique(epoch[:, 1]).astype(int).tolist()}
        wanted = {*range(min(num_workers, len(sizes)))} or {-1}
        job.require(
            workers == wanted,
            expected=f"samples read by {num_workers} workers"
            if num_workers
            else "samples read in this process",
            got=f"{len(workers - {-1})} workers",
            likely="`num_workers` does not reach the loader, or another number stands in its place",
            look="`DataLoader(num_workers=num_workers)`",
        )


def _why_missing(size: int, found: int, micro_batch_size: int) -> str:
    if size % micro_batch_size and found == size - size % micro_batch_size:
        return "the last batch, which is short, is left out: `drop_last`"
    if not found:
        return "the loader is an iterator, and is used up after the first epoch"
    return "samples are left out or repeated: drawn with replacement, or only a part of the data is read"


def require_new_each_epoch(job: Job, epochs: list[np.ndarray]) -> None:
    """Fail unless order and noise are new in each epoch, and the order is a shuffle of all samples."""
    for number, epoch in enumerate(epochs, start=1):
        order = epoch[:, 0]
        in_turn = int((np.diff(order) == 1).sum())
        job.require(
            in_turn <= len(order) // 2,
            expected="a shuffled order",
            got=f"{in_turn} of {len(order) - 1} samples that follow their neighbour, in epoch {number}",
            likely="shuffling is off"
            if in_turn == len(order) - 1
            else "whole batches are shuffled, not samples",
            look="`shuffle=True`",
        )
    for one, two in itertools.combinations(epochs, 2):
        job.require(
            not np.array_equal(one[:, 0], two[:, 0]),
            expected="another order in each epoch",
            got="the same order in two epochs",
            likely="the generator of the order starts anew each epoch, or the order is drawn once",
            look="a generator that is made once goes on by itself",
        )
        neighbours = {frozenset(pair) for pair in itertools.pairwise(one[:, 0])}
        num_kept = sum(frozenset(pair) in neighbours for pair in itertools.pairwise(two[:, 0]))
        job.require(
            num_kept <= len(one) // 2,
            expected="another order in each epoch",
            got=f"{num_kept} of {len(one) - 1} neighbours that were neighbours in an epoch before",
            likely="the order is drawn once, and turned round or moved on in each epoch",
            look="a shuffle of all samples in each epoch: `shuffle=True`",
        )
        for source, column in SOURCES.items():
            num_repeated = len(np.intersect1d(one[:, column], two[:, column]))
            job.require(
                num_repeated == 0,
                expected=f"new noise from {source} in another epoch",
                got=f"{num_repeated} of {len(one)} values from an epoch before again",
                likely=_why_repeated(one, two, column)
                if one[0, 1] >= 0
                else "the data set's generator, or a global one, is seeded anew each epoch",
                look="torch gives each worker a seed that is new in each epoch: `get_worker_info().seed`",
            )


def _why_repeated(one: np.ndarray, two: np.ndarray, column: int) -> str:
    """Of noise that workers repeat: that of their own number, or of their neighbour's."""
    _, first, second = np.intersect1d(one[:, column], two[:, column], return_indices=True)
    if np.any(one[first, 1] != two[second, 1]):
        return (
            "the numbers of epoch and worker are added: worker 0 of an epoch gets the seed that worker 1 had in the "
            "one before"
        )
    return (
        "the workers are seeded with the same number each epoch: `seed + worker_id` does not know the epoch"
    )
