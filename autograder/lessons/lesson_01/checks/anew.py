"""What 1.2 asks of the order in which batches come: drawn anew for each epoch and seed, and at random."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_01.checks.orders import (
    always_there,
    likeness,
    most_followed,
    share_again,
    steadiness,
    trend,
    usual_ranks,
)
from autograder.lessons.lesson_01.checks.passes import Pass, Passes

# Of 126 batches: at random each of these correlations is 0 ± 0.09.
MOST_CORRELATION = 0.5
# Of 64 passes: the mean rank at one place, 0 … 1, is 0.5 ± 0.04 at random.
MOST_USUAL = 0.25
# At random one pair of ranks comes 5 times in these 85 passes; the most frequent of all 240 pairs 10 to 15 times, and
# 20 times in one check of eight thousand (8,000 simulated).
MOST_FOLLOWED = 28
# Where only ties are drawn, long texts, of which few have one length, keep their companions: 0.04 to 0.16 of the
# batches; where batches leave a sorted shelf, up to half of the few that a small data set makes come again. Of batches
# that are made once and for all, every one does.
MOST_AGAIN = 0.75
# Of ten epochs. Where as many come again as may, next to none comes in all of them; shelves by length, whose rests
# are put together, keep the few longest, 0.03 to 0.05 of the batches. A sixth of the samples that is never drawn keeps
# 0.12 and more.
MOST_KEPT = 0.08
_ALWAYS_THE_SAME = "epoch or seed only say where one order begins that is always the same"


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
    _require_own_place(job, passes)
    job.require(
        not passes.other_seed.is_as(b),
        expected="another order with another seed",
        got="the same order again",
        likely="the seed is not used, or it is cut to a few values, or a factor of 0 takes it out as in "
        "`seed * epoch`: the epoch alone decides",
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
    for one in passes.large:
        _require_random_order(job, one.mean_lengths)
    for first, second in ((a, b), (a, c), (b, c)):
        job.require(
            likeness(first.mean_lengths, second.mean_lengths) < MOST_CORRELATION,
            expected="another random order of the batches in every epoch",
            got="long and short batches at the same places of two epochs, or at opposite ones",
            likely="the order of the batches is drawn once and for all: epoch or seed turn it around, or only say "
            "where one order begins",
            look="shuffle the batches by a generator made from seed and epoch",
        )
    _require_each_its_own(job, passes)
    pairs = [
        (a, b),
        (a, c),
        (b, c),
        passes.distinct,
        passes.equal,
        *combinations((*passes.more, passes.of_first[0]), 2),
    ]
    for first, second in pairs:
        again_share = share_again(first.batches, second.batches)
        job.require(
            again_share <= MOST_AGAIN,
            expected="other batches in another epoch",
            got=f"{again_share:.0%} of the batches of the one epoch in the other too",
            likely="the same batches in another order: who stands beside whom is decided once and for all",
            look="what is drawn anew in each epoch: the batches, or only their order?",
        )
    of_seed, of_another = passes.of_first
    again_share = max(
        share_again(b.batches, passes.other_seed.batches), share_again(of_seed.batches, of_another.batches)
    )
    job.require(
        again_share <= MOST_AGAIN,
        expected="other batches with another seed",
        got=f"{again_share:.0%} of the batches of the one seed with the other too",
        likely="the seed decides only the order of the batches: who stands beside whom is the epoch's alone",
        look="which of your draws know the seed: that of the batches, or only that of their order?",
    )
    fixed = always_there([one.batches for one in passes.short])
    job.require(
        not fixed,
        expected="batches in random order",
        got=f"a sample that is in the same step of each of {len(passes.short)} epochs",
        likely="one batch has its fixed place, such as that of the longest samples: the rest alone is shuffled",
        look="shuffle the batches last, and move none of them after",
    )
    require_no_usual_place(job, passes.many)
    sets = [{frozenset(batch.tolist()) for batch in one.batches} for one in (*passes.epochs, *passes.more)]
    kept = len(set.intersection(*sets)) / len(sets[0])
    job.require(
        kept <= MOST_KEPT,
        expected="other batches in another epoch",
        got=f"{kept:.0%} of the batches in each of {len(sets)} epochs",
        likely="a part of the samples, such as the longest ones, is put together once and for all",
        look="draw anew in each epoch who stands beside whom, at both ends too",
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


def _require_each_its_own(job: Job, passes: Passes) -> None:
    """Of many epochs and seeds, however far apart."""
    every = [one.mean_lengths for group in passes.many for one in group]
    for name, groups in (("epoch", passes.many), ("seed", tuple(zip(*passes.many, strict=True)))):
        every_group = (*groups, passes.apart[name])
        same = any(len({tuple(one.indices) for one in group}) < len(group) for group in every_group)
        job.require(
            not same,
            expected=f"another order with another {name}, however far apart the two are",
            got="the same order for two of them",
            likely=_ALWAYS_THE_SAME
            if most_followed(every) > 2 * MOST_FOLLOWED
            else f"the {name} is cut to a few values, as by a remainder, or another factor takes it out",
            look="hand seed and epoch to the generator as they are, such as `default_rng([seed, epoch])`",
        )


def _require_own_place(job: Job, passes: Passes) -> None:
    """Each iterator is one for itself, of the same batches."""
    for one in passes.all:
        job.require(
            one.answer["is_first"],
            expected="the same batches when an epoch is gone through twice",
            got="another first batch",
            likely="an unseeded generator, or one that carries on from the last epoch: going through it changes "
            "the sampler",
            look="`__iter__` reads seed and epoch, and writes nothing to `self`",
        )
        job.require(
            one.answer["is_rest"],
            expected="a pass that can be gone on with after another one",
            got="other batches, or none",
            likely="the pass goes on where another one is: the sampler keeps its place, for all who go through it",
            look="`__iter__` gives out a new iterator, such as a generator, and not `self`",
        )


def require_no_usual_place(job: Job, passes: Sequence[Sequence[Pass]]) -> None:
    """No step of an epoch has long batches, or short ones, more often than others."""
    every = [one.mean_lengths for group in passes for one in group]
    followed = most_followed(every)
    job.require(
        followed <= MOST_FOLLOWED,
        expected="another random order of the batches in every epoch",
        got=f"two batches that follow each other in {followed} of {len(every)} epochs",
        likely=_ALWAYS_THE_SAME,
        look="shuffle the batches by a generator made from seed and epoch",
    )
    usual = usual_ranks(every)
    step = int(np.abs(usual - 0.5).argmax())
    job.require(
        abs(usual[step] - 0.5) <= MOST_USUAL,
        expected="batches in random order",
        got=f"mostly {'long' if usual[step] > 0.5 else 'short'} ones in step {step + 1} of {len(usual)}",
        likely="a part of the batches has its fixed place, such as short ones at the start: the rest alone is shuffled",
        look="shuffle the batches last, and move none of them after",
    )
