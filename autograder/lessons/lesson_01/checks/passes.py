"""The passes over drawn lengths that 1.2 is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_each_once
from autograder.lessons.lesson_01.checks.orders import (
    as_batches,
)

SIZE, ROWS = 2003, 16
MOST_PADDING = 0.15
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
        (lengths, int(rng.choice([7, 11, 13]))),  # of which pools of a round number are no multiple
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
    samplers += [[np.full(64, 31), 4, seed], [lengths * 4096, ROWS, seed]]
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
    plan += [(0, 0), (1, 0), (last + 1, second), (last + 2, first), (last + 2, second)]
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
    *more, of_seed, of_another, moved, distinct, distinct_again, equal, equal_again, wide = every[
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


def require_whole_pass(job: Job, one: Pass) -> None:
    """Each index once, in batches of the size asked for, at most one shorter, and as many as `len` says."""
    size, rows = len(one.lengths), one.micro_batch_size
    job.require(
        "strange" not in one.answer,
        expected="batches that are lists of ints",
        got=f"a {one.answer.get('strange')}",
        likely=_why_strange(str(one.answer.get("strange"))),
        look="what does `next(iter(sampler))` look like, and could it be an index of a list?",
    )
    job.require(
        one.answer["is_kept"],
        expected="the lengths as they were handed in",
        got="others",
        likely="`lengths` is sorted or changed in place: it belongs to whoever made the sampler",
        look="`np.asarray` makes no copy: write into an array of your own",
    )
    sizes, num_batches = one.answer["sizes"], -(-size // rows)
    job.require(
        sizes.any(),
        expected="the same batches after somebody has emptied those that came",
        got="empty ones",
        likely="lists that are kept are handed out: what their taker does to them is in the next pass",
        look="make new lists in each pass, such as by `.tolist()`",
    )
    missing = sorted(set(range(size)) - set(one.indices.tolist()))
    job.require(
        not missing or missing != sorted(one.answer["looked"]),
        expected=f"all {size} indices once, after a look at the first batch",
        got="all but those of that first batch",
        likely="the pass goes on where one before it was broken off: the sampler keeps its place",
        look="keep nothing of a pass in `self`: each `__iter__` begins anew",
    )
    require_each_once(
        job,
        one.indices,
        range(size),
        expected=f"all {size} indices once",
        likely="the tail is dropped: the last, shorter batch is missing",
        look=f"count what comes out of an epoch of {size} samples in batches of {rows}",
        likely_repeated="the tail is filled up with samples that were already used",
        look_repeated="leave the last batch shorter",
    )
    short = int((sizes < rows).sum())
    job.require(
        sizes.max() <= rows,
        expected=f"batches of {rows}",
        got=f"one of {sizes.max()}",
        likely="batches larger than `micro_batch_size`: a short rest was put to another batch",
        look="print `[len(batch) for batch in sampler]`",
    )
    job.require(
        short <= 1 and sizes.min() > 0,
        expected=f"batches of {rows}, at most one shorter",
        got=f"{short} shorter ones, of {sizes.min()} at least",
        likely="each bucket ends in a short batch of its own" if sizes.min() else "a batch without any index",
        look="cut one sorted order into batches, or merge the rests of the buckets",
    )
    before, said = one.answer["len_before"], one.answer["len"]
    job.require(
        before == said == num_batches,
        expected=f"len(sampler) == {num_batches}, the number of batches, before a pass and after",
        got=f"{before}" if before == said else f"{before}, and afterwards {said}",
        likely={
            size: "`__len__` counts samples, not batches",
            size // rows: "`__len__` rounds down: the last, shorter batch counts too",
            num_batches + 1: "`__len__` counts one batch more where the batches fit exactly",
        }.get(said, "`__len__` is not the number of batches of an epoch"),
        look="divide the number of samples by the size of a batch, and round up",
    )


def _why_strange(kind: str) -> str:
    if kind in ("int64", "int32", "ndarray", "tuple", "Tensor"):
        return f"another type than a list of Python's ints, such as {kind}: `.tolist()` of an array makes one"
    return "a batch holds something else than indices"


def _padding(passes: Sequence[Pass]) -> float:
    slots = sum(len(batch) * int(one.lengths[batch].max()) for one in passes for batch in one.batches)
    return 1 - sum(int(one.lengths.sum()) for one in passes) / slots


def require_little_padding(job: Job, passes: Passes) -> float:
    """At most `MOST_PADDING` over the large passes, for that of one is in part luck; returns the share."""
    pad_fraction = _padding(passes.large)
    job.require(
        pad_fraction <= MOST_PADDING,
        expected=f"a pad fraction of at most {MOST_PADDING} over {len(passes.large)} passes",
        got=f"{pad_fraction:.4f}",
        likely="batches still mix short and long samples",
        look="which samples stand side by side just before you cut them into batches?",
    )
    of_size = [one for one in passes.few if len(one.lengths) == SIZE]
    for some, likely, look in (
        (
            [passes.moved],
            "what was made for the lengths of another sampler is used again",
            "keep nothing outside the object, or find it by the lengths themselves",
        ),
        (
            [passes.wide],
            "lengths are cut, or kept in a type that does not hold large ones",
            "take the lengths as they come: `np.asarray` finds a type that holds them",
        ),
        (
            [*passes.more, *passes.of_first],
            "in some epochs batches mix short and long samples",
            "what depends on the number of the epoch, beside the generator?",
        ),
        (
            of_size,
            "batches of another size than 16 mix short and long samples",
            "print the lengths of a batch, for several `micro_batch_size`",
        ),
    ):
        most = max(_padding([one]) for one in some)
        job.require(
            most <= 2 * MOST_PADDING,
            expected="as little padding in each of these passes",
            got=f"a pad fraction of {most:.2f}",
            likely=likely,
            look=look,
        )
    return round(pad_fraction, 4)
