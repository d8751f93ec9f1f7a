"""Where 6.1 takes the samples from that are missing to equal shards."""

from __future__ import annotations

from enum import Enum

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_06.checks.orders import (
    Ranks,
)


class Filling(Enum):
    """Where the samples come from that fill up the order."""

    FROM_THE_START = "the order goes on with its own start"
    FROM_ELSEWHERE = "other samples come last"
    MIXED_IN = "some come again before all came once"


def require_filling(job: Job, ranks: Ranks, number: int, who: str, num_samples: int) -> None:
    orders = [rank["orders"][number] for rank in ranks]
    filling = _filling(orders, num_samples)
    job.require(
        filling is not Filling.MIXED_IN,
        expected=f"{who}all samples once, and then those that are missing to equal lengths",
        got="a sample that comes again before another one came at all",
        likely="the order is filled up first and shuffled afterwards"
        if (np.diff(np.bincount(np.concatenate(orders))) <= 0).all()
        else "the filling is mixed into the order, or a rank takes neither every W-th index of it nor one piece",
        look="shuffle 0 … N-1, fill up that order from its own start, and then divide it",
    )
    job.require(
        filling is not Filling.FROM_ELSEWHERE,
        expected=f"{who}what is missing to equal lengths filled up from the start of the order",
        got="others of its samples",
        likely="the filling is taken from elsewhere: from the end, by chance, or always the same samples",
        look="after its last sample the order begins again at its first",
    )


def _filling(orders: list[np.ndarray], num_samples: int) -> Filling:
    """Whether the order goes on with its own start: dealt out in turn, or in pieces, of which the last ones may be a
    sample shorter before they are filled up."""
    for order in (np.stack(orders, axis=1).ravel(), np.concatenate(orders)):
        once = order[:num_samples]
        if np.array_equal(np.sort(once), np.arange(num_samples)):
            is_own = np.array_equal(order, np.resize(once, len(order)))
            return Filling.FROM_THE_START if is_own else Filling.FROM_ELSEWHERE
    num_missing = len(orders) * len(orders[0]) - num_samples
    if num_missing < len(orders):
        short = orders[len(orders) - num_missing :]
        once = np.concatenate(orders[: len(orders) - num_missing] + [order[:-1] for order in short])
        if np.array_equal(np.sort(once), np.arange(num_samples)):
            is_own = {int(order[-1]) for order in short} == set(once[:num_missing].tolist())
            return Filling.FROM_THE_START if is_own else Filling.FROM_ELSEWHERE
    return Filling.MIXED_IN
