"""What 1.2 and 1.6 ask of the order in which batches come: that it is drawn, and drawn anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np


def as_batches(indices: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """The indices of each batch."""
    return np.split(indices, np.cumsum(sizes)[:-1])


def trend(mean_lengths: Sequence[float]) -> float:
    """How far the lengths of batches follow their position: 1 from short to long or back, about 0 at random.

    Rank correlation; NaN where all are of one length.
    """
    ranks = _ranks(mean_lengths)
    return abs(_correlation(np.arange(len(ranks)), ranks))


def steadiness(mean_lengths: Sequence[float]) -> float:
    """How far the length of a batch tells the next one's, as in waves from short to long to short: 0 … 1."""
    ranks = _ranks(mean_lengths)
    return abs(_correlation(ranks[:-1], ranks[1:]))


def likeness(first: Sequence[float], second: Sequence[float]) -> float:
    """How far two passes have long and short batches at the same positions, or at opposite ones: 0 … 1."""
    return abs(_correlation(_ranks(first), _ranks(second)))


def share_again(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    """Share of the second pass's batches that the first one had too, in whatever order."""
    known = {frozenset(batch.tolist()) for batch in first}
    return sum(frozenset(batch.tolist()) in known for batch in second) / max(1, len(second))


def always_there(passes: Sequence[Sequence[np.ndarray]]) -> list[int]:
    """The samples that are in the batch of the same number in every pass."""
    places = [{int(index): number for number, batch in enumerate(one) for index in batch} for one in passes]
    return [index for index, place in places[0].items() if all(other[index] == place for other in places)]


def most_followed(passes: Sequence[Sequence[float]]) -> int:
    """How often one rank of length came right after the same other one, in passes of as many batches; the most."""
    followed = Counter(pair for one in passes for pair in pairwise(_ranks(one).tolist()))
    return max(followed.values())


def usual_ranks(passes: Sequence[Sequence[float]]) -> np.ndarray:
    """The mean rank of the batch at each place, over passes of as many batches: 0 the shortest, 1 the longest."""
    return np.mean([_ranks(mean_lengths) / (len(mean_lengths) - 1) for mean_lengths in passes], axis=0)


def _ranks(values: Sequence[float]) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])
