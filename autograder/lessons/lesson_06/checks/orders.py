"""What the check of exercise 6.1 asks of an order: that it is shuffled, and another one for another seed and epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job

Ranks = list[dict[str, Any]]
OFTEN = 0.2  # of the steps from one index to the next; in a shuffled order of 96 the commonest is a twentieth
RISING = 0.8
# Of 96 samples a shuffled order keeps a tenth of its line, give or take; of two halves that stay apart three quarters.
IN_LINE = 0.6
NEAR = (
    1 / 8
)  # of all the samples: a shuffled order steps over two sevenths of them, one in four blocks over a twelfth
SEEDS = [*range(21), 42, 123, 256, 512, 1000, 1001, 1024, 1234, 2024]  # as people choose them
EPOCHS = [*range(33), 50, 64, 100, 101, 128, 256, 500, 512, 1000, 1001, 1024]


def require_others(job: Job) -> None:
    """No two of many seeds and no two of many epochs with the same order, nor a sample that keeps its place."""
    rng = job.rng
    num_samples, world_size = int(rng.integers(60, 100)), int(rng.integers(2, 5))
    of_seeds = job.learner().call(
        "whole_orders", num_samples=num_samples, world_size=world_size, seeds=SEEDS, epochs=[1]
    )
    (of_epochs,) = job.learner().call(
        "whole_orders",
        num_samples=num_samples,
        world_size=world_size,
        seeds=[int(rng.integers(1, 400))],
        epochs=EPOCHS,
    )
    seeds, epochs = _equal_pair([orders[0] for orders in of_seeds]), _equal_pair(list(of_epochs))
    job.require(
        seeds is None,
        expected="another order for each seed",
        got=f"the same for seeds {SEEDS[seeds[0]]} and {SEEDS[seeds[1]]}" if seeds else "-",
        likely="not all of the seed is used: two seeds become one, as by a remainder, or by `seed or …` for 0",
        look="make the generator from the seed as it is",
    )
    job.require(
        epochs is None,
        expected="another order for each epoch",
        got=f"the same for epochs {EPOCHS[epochs[0]]} and {EPOCHS[epochs[1]]}" if epochs else "-",
        likely="the epochs repeat: not all of the number is used, as by a remainder or a limit",
        look="make the generator from the whole number of the epoch",
    )
    fixed = np.flatnonzero((of_epochs == of_epochs[0]).all(axis=0))
    job.require(
        not len(fixed),
        expected="all samples at another place in another epoch",
        got=f"sample {of_epochs[0][fixed[0]] if len(fixed) else 0} at the same place in {len(EPOCHS)} epochs",
        likely="a part of the order is not shuffled",
        look="a permutation of all the indices",
    )


def _equal_pair(orders: list[np.ndarray]) -> tuple[int, int] | None:
    """The places of two that are equal."""
    seen: dict[bytes, int] = {}
    for number, order in enumerate(orders):
        first = seen.setdefault(order.tobytes(), number)
        if first != number:
            return first, number
    return None


def require_spread(job: Job, ranks: Ranks, num_samples: int) -> None:
    """No rank goes through the samples block by block, nor stays near where it is."""
    for number in range(len(ranks[0]["orders"])):
        orders = [rank["orders"][number] for rank in ranks]
        in_line = abs(np.mean([np.corrcoef(order, np.arange(len(order)))[0, 1] for order in orders]))
        wide = float(np.median(np.abs(np.concatenate([np.diff(order) for order in orders]))) / num_samples)
        job.require(
            in_line < IN_LINE and wide > NEAR,
            expected="indices in shuffled order, over all the samples",
            got=f"steps of {wide:.0%} of the samples, where {2 / 7:.0%} are usual"
            if wide <= NEAR
            else "early samples early, and late ones late, or the other way round",
            likely="shuffled inside of blocks alone: samples that stand together in the data stay together",
            look="a permutation of all the indices, not of one piece after the other",
        )


def require_shuffled(job: Job, ranks: Ranks, *, in_turn: bool) -> None:
    """In no epoch do neighbours stay together, nor indices come by size: on each rank, or over all in turn."""
    for number in range(len(ranks[0]["orders"])):
        orders = [rank["orders"][number] for rank in ranks]
        order = np.stack(orders, axis=1).ravel() if in_turn else np.concatenate(orders)
        steps = np.diff(order)
        often = np.unique(steps, return_counts=True)[1].max() / len(steps)
        rising = float((steps > 0).mean())
        job.require(
            often < OFTEN and 1 - RISING < rising < RISING,
            expected="indices in shuffled order",
            got=f"{max(rising, 1 - rising):.0%} of the steps go one way, and {often:.0%} are equally wide",
            likely="the indices are sorted, rotated or kept in blocks: the order of the data stays in the order of the "
            "samples",
            look="take the indices as they stand in the shuffled order",
        )


def require_shuffled_first(job: Job, ranks: Ranks, world_size: int) -> None:
    """No rank has, in another epoch, most of the samples that one rank had before."""
    if world_size == 1:
        return
    for number, rank in enumerate(ranks):
        for other, later in enumerate(ranks):
            first, second = rank["orders"][0], later["orders"][1]
            both = len(np.intersect1d(first, second)) / len(first)
            likely = "whole shards change places, and the same samples stay together: nothing is shuffled over ranks"
            if number == other:
                likely = (
                    "the data are divided first and shuffled inside each shard: a rank sees one part for ever"
                )
            job.require(
                both <= 0.5 + 0.5 / world_size,
                expected=f"in the next epoch other samples together than those of rank {number} now",
                got=f"on rank {other} {both:.0%} of them",
                likely=likely,
                look="shuffle all indices, then take every world_size-th",
            )
