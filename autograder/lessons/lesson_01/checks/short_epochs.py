"""The short epochs that 1.6 is judged by, and the order of their batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import may_hash_texts, watched
from autograder.lessons.lesson_01.checks.orders import (
    always_there,
    most_followed,
    steadiness,
    trend,
    usual_ranks,
)
from autograder.lessons.lesson_01.checks.reports import require_infinite, require_told, require_unrounded
from autograder.lessons.lesson_01.checks.steps import (
    PAD_ID,
    Epoch,
    epoch_of,
    require_naive_steps,
    require_whole_epoch,
)

# Of some 25 batches: at random each is 0 ± 0.2, and two epochs decide together.
MOST_CORRELATION = 0.7


def require_right_steps(job: Job) -> Epoch:
    """Fail unless every step is as the text says, in each of some epochs; returns one whose syncs were counted."""
    epochs = []
    *drawn, of_many = _drawn_epochs(job)
    for arguments in drawn:
        epoch = epoch_of(job, arguments)
        require_whole_epoch(job, epoch)
        epochs.append(epoch)
    require_whole_epoch(job, epoch_of(job, of_many))
    *_, large, _ = epochs
    for epoch in epochs:
        require_naive_steps(job, epoch, large)
    require_unrounded(job, [epoch.answer["report"]["loss"] for epoch in epochs])
    first, again, other, *_ = epochs
    _require_drawn_order(job, first, again, other)
    _require_no_fixed_place(job)
    job.counts["syncs_per_epoch"] = first.answer["syncs"]
    watched(job, first.answer, "syncs are not counted, as in another thread")
    return first


def _drawn_epochs(job: Job) -> list[dict[str, Any]]:
    """One epoch, whose last batch has one sample, the same once more, and with another seed for the order; then an
    exact fit, and one sample alone; last an exact fit of many samples: pools that are none have each a short batch.

    In the exact fit texts are long and gradients large, and the optimizer has parameters in groups.
    """
    rng = job.rng

    def samples(number: int, longest: int = 32) -> dict[str, Any]:
        lengths = np.clip(rng.lognormal(2.1, 0.7, number), 3, 32).astype(int)
        lengths = lengths * longest // 32
        lengths[0] = longest
        texts = [rng.integers(1, 60, size=length) for length in lengths]
        for text in texts:
            text[rng.random(len(text)) < 0.1] = PAD_ID
        for index, text in enumerate(texts):
            text[:2] = index // 59 + 1, index % 59 + 1  # so that no two are alike
            text[-1] = PAD_ID if rng.random() < 0.3 else text[-1]
        return {"ids": texts, "labels": rng.integers(5, size=number).tolist(), "seed": job.seed()}

    long, rows = samples(8 * 24 + 1), int(rng.integers(3, 7))
    seed, other = 0, int(rng.integers(1, 1000))  # the same seed twice, and it is 0: a seed like any other
    of_long = {**long, "micro_batch_size": 8, "operators": False, "scales": [1.0, 0.3], "groups": False}
    few = {"order_seed": other, "operators": False, "scales": [20.0, 1.0], "groups": True}
    # An odd number, 103 … 199: a width of 64, or of a multiple of 8, would cut it.
    longest = 2 * int(rng.integers(51, 100)) + 1
    return [
        {**of_long, "order_seed": seed, "operators": True},
        {**of_long, "order_seed": seed},
        {**of_long, "order_seed": other},
        {**samples(rows * int(rng.integers(3, 6)), longest), **few, "micro_batch_size": rows},
        # Longer than any text of the corpus: whatever it is cut at, it shows.
        {**samples(1, 2 * int(rng.integers(515, 600)) + 1), **few, "micro_batch_size": 6},
        {**samples(48 * int(rng.integers(26, 36))), **few, "micro_batch_size": 48},
    ]


def _require_drawn_order(job: Job, first: Epoch, again: Epoch, other: Epoch) -> None:
    job.require(
        first.batches() != other.batches(),
        expected="another order with another seed",
        got="the same order",
        likely="`seed` is not used: every epoch has the same order",
        look="make one generator from `seed`, and draw the order with it",
    )
    job.require(
        [sorted(batch) for batch in first.batches()] == [sorted(batch) for batch in again.batches()],
        expected="the same order with the same seed",
        got="another order",
        likely="a generator without the seed decides, or seed 0 counts as none, so that no run can be repeated",
        look="make one generator from `seed`, and draw the order with it",
    )
    lengths = first.mean_lengths(), other.mean_lengths()
    for measure, likely in (
        (trend, "from short to long, or back: the model sees a curriculum nobody asked for"),
        (steadiness, "in waves, or long and short by turns"),
    ):
        found = min(map(measure, lengths))
        job.require(
            not found >= MOST_CORRELATION,
            expected="batches in random order",
            got=f"an order that their lengths tell (rank correlation {found:.2f})",
            likely=f"sorted batches come {likely}",
            look="shuffle the batches after cutting them",
        )


SHORT = 12
"""Steps of a short epoch."""
# Whatever numbers up to 90 a remainder makes the same, two of these seeds are as far apart; and some larger ones.
APART = (*range(10), *range(10, 91, 10), 365, 1000, 1024, 1280, 2**16)
# The mean rank of a step's lengths over so many epochs, 0 … 1, is 0.5 ± 0.06 at random.
MOST_USUAL = 0.35
# At random one pair of ranks comes twice in so many, and 14 times in one check of a hundred thousand.
MOST_FOLLOWED = 13


def _require_no_fixed_place(job: Job) -> None:
    """Short epochs of as many seeds: no sample has its place in all of them.

    One that cannot be read is told of, and one whose loss is infinite is not left out.
    """
    rng = job.rng
    texts = [rng.integers(1, 60, size=n) for n in rng.choice(np.arange(3, 33), 2 * SHORT, replace=False)]
    labels, seeds = rng.integers(5, size=len(texts)).tolist(), int(rng.integers(1000)) + np.array(APART)
    arguments: dict[str, Any] = {"seed": job.seed(), "ids": texts, "labels": labels}
    of_order: dict[str, Any] = {
        "micro_batch_size": 2,
        "scales": [1.0, 1.0],
        "operators": False,
        "groups": False,
    }
    answers = job.learner().call("epochs_of", order_seeds=seeds.tolist(), **arguments, **of_order)
    saves = len(job.learner().told.call.seen["save"])
    for answer in answers:
        answer["saves"] = max(saves, answer["new_files"])
    epochs = [Epoch({**arguments, **of_order}, answer) for answer in answers]
    for epoch in epochs:
        require_whole_epoch(job, epoch)
    orders = {str([sorted(batch) for batch in epoch.batches()]) for epoch in epochs}
    job.require(
        len(orders) == len(epochs),
        expected=f"another order for each of {len(epochs)} seeds",
        got=f"{len(orders)} orders",
        likely="the seed is cut to a few values, as by a remainder, or only turns one order round",
        look="hand the seed to the generator as it is, and draw the order with it",
    )
    fixed = always_there([[np.array(batch) for batch in epoch.batches()] for epoch in epochs])
    job.require(
        not fixed,
        expected="batches in random order",
        got=f"a sample that is in the same step whatever the seed is, in {len(epochs)} epochs",
        likely="one batch has its fixed place, such as that of the longest samples: the rest alone is shuffled",
        look="shuffle the batches last, and move none of them after",
    )
    usual = usual_ranks([epoch.mean_lengths() for epoch in epochs])
    step = int(np.abs(usual - 0.5).argmax())
    job.require(
        abs(usual[step] - 0.5) <= MOST_USUAL,
        expected="batches in random order",
        got=f"mostly {'long' if usual[step] > 0.5 else 'short'} ones in step {step + 1} of {len(usual)}",
        likely="a part of the batches has its fixed place, such as short ones at the start: the rest alone is shuffled",
        look="shuffle the batches last, and move none of them after",
    )
    followed = most_followed([epoch.mean_lengths() for epoch in epochs])
    job.require(
        followed <= MOST_FOLLOWED,
        expected="another random order for each seed",
        got=f"two batches that follow each other in {followed} of {len(epochs)} epochs",
        likely="the seed only says where one order begins that is always the same",
        look="draw the whole order with a generator made from `seed`",
    )
    if may_hash_texts(job.source):  # else no other interpreter has another order
        found = job.learner().call(
            "orders_elsewhere",
            seconds=60.0,
            source=job.source,
            entry=job.entry,
            ids=[text.tolist() for text in texts],
            rows=2,
            seed=int(seeds[0]),
            hash_seeds=[1, 2],
        )
        job.require(
            found["is_same"],
            expected="the same order with the same seed, when Python is started again",
            got="another order",
            likely="`hash()` of a text, or the order of a `set`, decides: both are new each time Python starts",
            look="make one generator from `seed` itself, and draw the order with it",
        )
    _require_anew(job, arguments | of_order, int(seeds[0]))
    lost = job.learner().call("epoch_broken_off", **arguments, lost=int(rng.integers(len(texts))))
    require_told(job, lost)
    sick = job.learner().call("epoch_infinite", **arguments)
    require_infinite(job, sick.get("loss", math.inf))


def _require_anew(job: Job, arguments: dict[str, Any], order_seed: int) -> None:
    """As many other samples, as long, with a seed that was there before."""
    arguments |= {"ids": [text % 59 + 1 for text in arguments["ids"]], "order_seed": order_seed}
    epoch = epoch_of(job, arguments)
    old = {((text - 2) % 59 + 1).tobytes() for text in epoch.texts}
    job.require(
        old.isdisjoint(epoch.rows()),
        expected="the samples that are handed in",
        got="those of an epoch before, of as many others",
        likely="what was made of samples is kept outside the function, and found by their number or their place",
        look="keep nothing from one call to the next",
    )
    require_whole_epoch(job, epoch)
