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
    always_there,
    as_batches,
    likeness,
    share_again,
    steadiness,
    trend,
)

SIZE, ROWS = 2003, 16
MOST_PADDING = 0.15
# Of 126 batches: at random each of these correlations is 0 ± 0.09.
MOST_CORRELATION = 0.5
# Where only ties are drawn, long texts, of which few have one length, keep their companions: 0.04 to 0.16 of the
# batches. Else next to none do.
MOST_AGAIN = 0.4
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
    few: tuple[Pass, ...]
    """Over few samples: exact fits, one batch, batches of one; and over many, in batches of a prime number."""
    short: tuple[Pass, ...]
    """Many epochs over few samples of different lengths, whose batches fit exactly."""

    @property
    def large(self) -> tuple[Pass, ...]:
        return (*self.epochs, self.other_seed, *(one for one, _ in self.same))

    @property
    def all(self) -> Iterator[Pass]:
        yield from (*self.large, *self.unnamed, self.of_zero, *self.few, *self.short)


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
        (rng.integers(1, 40, rows * int(rng.integers(2, 6))), rows),  # an exact fit
        (rng.integers(1, 40, rows), rows),
        (rng.integers(1, 40, rows - 1), rows),
        (rng.integers(1, 40, int(rng.integers(2, 9))), 1),
        (np.full(4 * rows + 1, 31), rows),
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
    plan += [(number, third) for number in range(5, len(samplers) - 1)]
    plan += [(len(samplers) - 1, epoch) for epoch in range(SHORT)]
    states = rng.integers(2**31, size=len(plan)).tolist()
    answers = job.learner().call(
        "sampler_passes",
        samplers=samplers,
        passes=[[*one, state] for one, state in zip(plan, states, strict=True)],
    )
    a, b, of_other, again, elsewhere, c, without, zero, of_zero, *rest = (
        Pass(np.asarray(samplers[number][0]), samplers[number][1], answer)
        for (number, _), answer in zip(plan, answers, strict=True)
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
        few=tuple(rest[:-SHORT]),
        short=tuple(rest[-SHORT:]),
    )


def require_whole_pass(job: Job, one: Pass) -> None:
    """Each index once, in batches of the size asked for, at most one shorter, and as many as `len` says."""
    size, rows = len(one.lengths), one.micro_batch_size
    job.require(
        "strange" not in one.answer,
        expected="batches of indices, which are ints",
        got=f"a {one.answer.get('strange')} in a batch",
        likely="a batch holds something else than indices",
        look="what does `next(iter(sampler))` look like, and could it be an index of a list?",
    )
    sizes, num_batches = one.answer["sizes"], -(-size // rows)
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
    said = one.answer["len"]
    job.require(
        said == num_batches,
        expected=f"len(sampler) == {num_batches}, the number of batches",
        got=f"{said}",
        likely={
            size: "`__len__` counts samples, not batches",
            size // rows: "`__len__` rounds down: the last, shorter batch counts too",
            num_batches + 1: "`__len__` counts one batch more where the batches fit exactly",
        }.get(said, "`__len__` is not the number of batches of an epoch"),
        look="divide the number of samples by the size of a batch, and round up",
    )


def require_drawn_anew(job: Job, passes: Passes) -> None:
    """Other batches in another order for each epoch and seed, and the same ones for the same two."""
    a, b, c = passes.epochs
    for one in (b, c):
        job.require(
            not a.is_as(one),
            expected="another order after set_epoch",
            got="the same order again",
            likely="bucketing that never reshuffles: the order does not depend on the epoch",
            look="where does `set_epoch` go, and who reads it?",
        )
    job.require(
        not passes.of_zero.is_as(passes.unnamed[1]),
        expected="another order after set_epoch, with seed=0 too",
        got="the same order again",
        likely="seed 0 takes the epoch out of the sum: every epoch has the same order",
        look="try seed=0 with epochs 0, 1 and 2",
    )
    for again, when in passes.same:
        job.require(
            again.is_as(b),
            expected=f"the same batches for the same seed and epoch, {when}",
            got="others",
            likely="an unseeded generator, or one that carries on from the last epoch",
            look="make the generator from seed and epoch at the start of `__iter__`",
        )
    job.require(
        not passes.other_seed.is_as(b),
        expected="another order with another seed",
        got="the same order again",
        likely="the seed is not used: the epoch alone decides",
        look="make the generator from seed *and* epoch",
    )
    without, zero = passes.unnamed
    job.require(
        without.is_as(zero),
        expected="without a seed the same batches as with seed=0",
        got="others",
        likely="another default for `seed` than the signature's",
        look="read the signature of `__init__` again",
    )
    for first, second in ((a, b), (a, c), (b, c)):
        again_share = share_again(first.batches, second.batches)
        job.require(
            again_share <= MOST_AGAIN,
            expected="other batches in another epoch",
            got=f"{again_share:.0%} of the batches of the one epoch in the other too",
            likely="the same batches in another order: who stands beside whom is decided once and for all",
            look="what is drawn anew in each epoch: the batches, or only their order?",
        )
    again_share = share_again(b.batches, passes.other_seed.batches)
    job.require(
        again_share <= MOST_AGAIN,
        expected="other batches with another seed",
        got=f"{again_share:.0%} of the batches of the one seed with the other too",
        likely="the seed decides only the order of the batches: who stands beside whom is the epoch's alone",
        look="which of your draws know the seed: that of the batches, or only that of their order?",
    )
    for one in passes.large:
        _require_random_order(job, one.mean_lengths)
    for first, second in ((a, b), (a, c), (b, c)):
        job.require(
            likeness(first.mean_lengths, second.mean_lengths) < MOST_CORRELATION,
            expected="another random order of the batches in every epoch",
            got="long and short batches at the same places of two epochs, or at opposite ones",
            likely="the order of the batches is drawn once, or turned around, and not drawn anew",
            look="shuffle the batches by a generator made from seed and epoch",
        )
    fixed = always_there([one.batches for one in passes.short])
    job.require(
        not fixed,
        expected="batches in random order",
        got=f"a sample that is in the same step of each of {len(passes.short)} epochs",
        likely="one batch has its fixed place, such as that of the longest samples: the rest alone is shuffled",
        look="shuffle the batches last, and move none of them after",
    )


def _require_random_order(job: Job, mean_lengths: list[float]) -> None:
    follows, waves = trend(mean_lengths), steadiness(mean_lengths)
    job.require(
        follows < MOST_CORRELATION,
        expected="batches in random order",
        got=f"batch lengths that follow the position (rank correlation {follows:.2f})",
        likely="sorted batches come from short to long: the model sees a curriculum nobody asked for",
        look="shuffle the batches after cutting them",
    )
    job.require(
        waves < MOST_CORRELATION,
        expected="batches in random order",
        got=f"batch lengths that tell the next one's (rank correlation {waves:.2f})",
        likely="batches come in waves from short to long and back, or long and short by turns",
        look="shuffle the batches after cutting them",
    )


def require_little_padding(job: Job, passes: Sequence[Pass]) -> float:
    """At most `MOST_PADDING` over all these passes, for that of one is in part luck; returns the share."""
    slots = sum(len(batch) * int(one.lengths[batch].max()) for one in passes for batch in one.batches)
    pad_fraction = 1 - sum(int(one.lengths.sum()) for one in passes) / slots
    job.require(
        pad_fraction <= MOST_PADDING,
        expected=f"a pad fraction of at most {MOST_PADDING} over {len(passes)} passes",
        got=f"{pad_fraction:.2f}",
        likely="batches still mix short and long samples",
        look="which samples stand side by side just before you cut them into batches?",
    )
    return round(pad_fraction, 4)
