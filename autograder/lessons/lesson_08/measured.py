"""What the measured quiz questions of lesson 08 ask for: simulations with a fixed seed, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable


@functools.cache
def peeking_error_rate() -> float:
    """How often a 95 % interval excludes 0 at a look after pair 3, 4, … or 20, when nothing changed. 0 … 1."""
    import numpy as np
    from scipy import stats

    differences = np.random.default_rng(8).standard_normal((4000, 20))
    is_claimed = np.zeros(len(differences), dtype=np.bool_)
    for num_pairs in range(3, 21):
        so_far = differences[:, :num_pairs]
        half = stats.t.ppf(0.975, num_pairs - 1) * so_far.std(axis=1, ddof=1) / np.sqrt(num_pairs)
        is_claimed |= np.abs(so_far.mean(axis=1)) > half
    return float(is_claimed.mean())


@functools.cache
def any_of_five_claimed_rate() -> float:
    """How often a 95 % interval from 8 pairs excludes 0 for any of 5 changes that do nothing, one baseline. 0 … 1."""
    import numpy as np
    from scipy import stats

    rng = np.random.default_rng(8)
    old, new = rng.standard_normal((20_000, 1, 8)), rng.standard_normal((20_000, 5, 8))
    differences = new - old
    half = stats.t.ppf(0.975, 7) * differences.std(axis=2, ddof=1) / np.sqrt(8)
    return float((np.abs(differences.mean(axis=2)) > half).any(axis=1).mean())


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "peeking_error_rate": peeking_error_rate,
    "any_of_five_claimed_rate": any_of_five_claimed_rate,
}
