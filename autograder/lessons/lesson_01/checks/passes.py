"""The passes over drawn lengths that 1.2 is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_01.checks.orders import (
    as_batches,
)

SIZE, ROWS = 2003, 16
# Epochs that a sampler which counts them up to some number cannot tell apart; and how far seeds are apart.
MANY_EPOCHS = (0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 20, 32, 50, 64, 100, 128, 1000)
MANY_SEEDS = (0, 256, 512, 1000, 2**16)
# Whatever two numbers up to 1,024 a remainder makes the same, two of these are as far apart.
STEPS_APART = (*range(32), *range(32, 1025, 32))
SHORT = 8
"""Batches of a short epoch, and how many of them there are: that one of the samples always comes in the same step
happens once in a hundred thousand checks."""


@dataclass(frozen=True)
class Pass:
    """One pass over a sampler: what it was made for, and what came."""

    lengths: np.ndarray
    micro_batch_size: int
    answer: dict[str, Any]

    @property
    def indices(self) -> np.ndarray:
        return np.asarray(self.answer["indices"])

    @property
    def batches(self) -> list[np.ndarray]:
        return as_batches(self.indices, self.answer["sizes"])

    @property
    def mean_lengths(self) -> list[float]:
        return [float(self.lengths[batch].mean()) for batch in self.batches]

    def is_as(self, other: Pass) -> bool:
        """Whether the same batches came in the same order."""
        return np.array_equal(self.indices, other.indices) and np.array_equal(
            self.answer["sizes"], other.answer["sizes"]
        )


@dataclass(frozen=True)
class Passes:
    """All of them."""

    epochs: tuple[Pass, Pass, Pass]
    """Three epochs of one sampler."""
    other_seed: Pass
    """The second epoch of another sampler, which differs from the first in its seed alone."""
    same: tuple[tuple[Pass, str], ...]
    """The second epoch once more, and when it is the same."""
    unnamed: tuple[Pass, Pass]
    """Of a sampler made without a seed, and of one with the seed 0."""
    of_zero: Pass
    """Of the latter, another epoch."""
    distinct: tuple[Pass, Pass]
    """Two epochs over samples no two of which are as long."""
    few: tuple[Pass, ...]
    """Over few samples: exact fits, one batch, batches of one; and over many, in batches of a prime number."""
    short: tuple[Pass, ...]
    """Many epochs over few samples of different lengths, whose batches fit exactly."""
    more: tuple[Pass, ...]
    """More epochs of the first sampler."""
    of_first: tuple[Pass, Pass]
    """Epoch 0 of that sampler, and of the one with another seed."""
    moved: Pass
    """The second epoch, of a sampler for the same lengths at other places."""
    many: tuple[tuple[Pass, ...], ...]
    """Of many seeds many epochs, over 16 batches that fit exactly."""
    apart: dict[str, tuple[Pass, ...]]
    """Over the same, epochs of one seed and seeds at one epoch, `STEPS_APART`."""
    equal: tuple[Pass, Pass]
    """Two epochs over samples that are all as long."""
    wide: Pass
    """Over lengths that need four bytes."""

    @property
    def large(self) -> tuple[Pass, ...]:
        return (*self.epochs, self.other_seed, *(one for one, _ in self.same))

    @property
    def all(self) -> Iterator[Pass]:
        yield from (*self.large, *self.unnamed, self.of_zero, *self.distinct, *self.few, *self.short)
        yield from (*self.more, *self.of_first, self.moved, *self.equal, self.wide)
        yield from (one for passes in (*self.many, *self.apart.values()) for one in passes)


def _drawn_lengths(rng: np.random.Generator) -> np.ndarray:
    """Log-normal, one of each quantile: what a sampler reaches in padding is no matter of luck with long texts."""
    quantiles = (np.arange(SIZE) + rng.random(SIZE)) / SIZE
    normal = rng.permutation([NormalDist().inv_cdf(quantile) for quantile in quantiles])
    return np.clip(np.exp(3.6 + 1.1 * normal), 2, 1024).astype(np.int64)


def drawn_passes(job: Job) -> Passes:
    """Have the learner's samplers go over drawn lengths, many at a time, each pass at another global state."""
    rng = job.rng
    lengths = _drawn_lengths(rng)
    seed, other = rng.choice(np.arange(1, 1000), 2, replace=False).tolist()
    first, second, third = rng.permutation([0, *rng.choice(np.arange(1, 20), 2, replace=False)]).tolist()
    rows = int(rng.integers(2, 9))
    few = [
        (rng.integers(0, 40, rows * int(rng.integers(2, 6))), rows),  # an exact fit
        (rng.integers(1, 40, rows), rows),
        (rng.integers(1, 40, rows - 1), rows),
        (rng.integers(1, 40, int(rng.integers(2, 9))), 1),
        (np.full(4 * rows + 1, 31), rows),
        (np.append(lengths[:200], 0), int(rng.integers(40, 90))),
        (lengths, int(rng.choice([7, 13]))),  # pools of a round number are no multiple of either
        (np.tile(lengths, 5), int(rng.choice([7, 13]))),  # several pools, however large one may be
    ]
    samplers: list[list[Any]] = [
        [lengths, ROWS, seed],
        [lengths, ROWS, other],
        [lengths, ROWS, seed],
        [lengths[:100].tolist(), ROWS],
        [lengths[:100].tolist(), ROWS, 0],
        *([sizes.tolist(), rows, seed] for sizes, rows in few),
        [rng.choice(np.arange(2, 60), 2 * SHORT, replace=False).tolist(), 2, seed],
    ]
    last, different = len(samplers) - 1, rng.choice(np.arange(100, 200), 64, replace=False)
    samplers += [[rng.permutation(lengths), ROWS, seed]]
    samplers += [[1 + rng.permutation(SIZE), ROWS, seed]]
    samplers += [[np.full(SIZE, 31), ROWS, seed], [lengths * 4096, ROWS, seed]]
    samplers += [[different, 4, seed + apart] for apart in (*MANY_SEEDS, *STEPS_APART)]
    of_many = last + 5
    plan = [
        (0, first),
        (0, second),
        (1, second),
        (0, second),
        (2, second),
        (0, third),
        (3, first),
        (4, first),
        (4, second),
    ]
    plan += [(number, third) for number in range(5, last)]
    plan += [(last, epoch) for epoch in range(SHORT)]
    num_named = len(plan)
    plan += [(0, epoch) for epoch in (1, 2, 3, 4, 5, 8, 10)]
    plan += [(0, second), (0, 0), (1, 0), (last + 1, second), (last + 2, first), (last + 2, second)]
    plan += [(last + 3, first), (last + 3, second), (last + 4, second)]
    num_single = len(plan)
    plan += [(of_many + number, epoch) for number in range(len(MANY_SEEDS)) for epoch in MANY_EPOCHS]
    plan += [(of_many, second + apart) for apart in STEPS_APART]
    plan += [(of_many + len(MANY_SEEDS) + number, second) for number in range(len(STEPS_APART))]
    states = rng.integers(2**31, size=len(plan)).tolist()
    answers = job.learner().call(
        "sampler_passes",
        samplers=samplers,
        passes=[[*one, state] for one, state in zip(plan, states, strict=True)],
    )
    every = [
        Pass(np.array(samplers[number][0]), samplers[number][1], answer)
        for (number, _), answer in zip(plan, answers, strict=True)
    ]
    a, b, of_other, again, elsewhere, c, without, zero, of_zero, *rest = every[:num_named]
    *more, late, of_seed, of_another, moved, distinct, distinct_again, equal, equal_again, wide = every[
        num_named:num_single
    ]
    *many, of_epochs, of_seeds = _split(
        every[num_single:], (*[len(MANY_EPOCHS)] * len(MANY_SEEDS), len(STEPS_APART), len(STEPS_APART))
    )
    return Passes(
        epochs=(a, b, c),
        other_seed=of_other,
        same=(
            (again, "when an epoch is gone through twice"),
            (elsewhere, "from another sampler of this seed"),
            (late, "after other epochs"),
        ),
        unnamed=(without, zero),
        of_zero=of_zero,
        distinct=(distinct, distinct_again),
        few=tuple(rest[:-SHORT]),
        short=tuple(rest[-SHORT:]),
        more=tuple(more),
        of_first=(of_seed, of_another),
        moved=moved,
        many=tuple(many),
        apart={"epoch": of_epochs, "seed": of_seeds},
        equal=(equal, equal_again),
        wide=wide,
    )


def _split(passes: Sequence[Pass], sizes: Sequence[int]) -> Iterator[tuple[Pass, ...]]:
    start = 0
    for size in sizes:
        yield tuple(passes[start : start + size])
        start += size
