"""What the measured quiz question of lesson 08 asks for: a simulation with a fixed seed, no clock."""

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


MEASUREMENTS: dict[str, Callable[[], float]] = {"peeking_error_rate": peeking_error_rate}
