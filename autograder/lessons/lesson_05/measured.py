"""What the measured quiz questions of lesson 05 ask for: simulations with a fixed seed, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable


@functools.cache
def best_of_12_equal() -> float:
    """By how many standard deviations the best of 12 equal trials beats their mean, on average."""
    import numpy as np

    return float(np.random.default_rng(0).normal(size=(100_000, 12)).max(axis=1).mean())


@functools.cache
def share_of_a_lead_that_stays() -> float:
    """Share of the lead of the best of 12, seen at one seed, that is no luck; seeds deviate twice as much. 0 … 1."""
    import numpy as np

    rng = np.random.default_rng(0)
    merit = rng.normal(scale=0.01, size=(100_000, 12))
    seen = merit + rng.normal(scale=0.02, size=merit.shape)
    best = seen.argmax(axis=1)[:, None]
    return float(
        np.take_along_axis(merit, best, axis=1).mean() / np.take_along_axis(seen, best, axis=1).mean()
    )


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "best_of_12_equal": best_of_12_equal,
    "share_of_a_lead_that_stays": share_of_a_lead_that_stays,
}
