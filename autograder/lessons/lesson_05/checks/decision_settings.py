"""The tables over which 5.4 counts errors: their shapes, and why a solution errs too often on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MANY = "best of noise: the best of many is picked first, then judged as if it had been the only one"
_LOOK_MANY = "with k candidates, each gets a k-th of the error that all together may make"
LOOK_QUANTILE = "Student's t, with one degree of freedom less than there are seeds"
_FEW = (
    "an interval too narrow for so few seeds: its quantile, its degrees of freedom or its spread is too small"
)
_SIGN = (
    "a false winner of few seeds: its quantile is too small, or it wins because all its differences have one sign, "
    "as they easily have in one of many rows"
)
SIZES = (
    ((2, 3), (0.02, 0.06)),
    ((3, 30), (0.02, 0.06)),
    ((30, 50), (0.02, 0.06)),
    ((50, 100), (0.02, 0.06)),
    # The more seeds there are, the farther out does a normal quantile differ.
    ((100, 200), (0.005, 0.015)),
    ((1000, 1050), (0.9e-4, 1.1e-4)),
)
"""(seeds, 1 - confidence), each from … to below, with which an interval of one candidate is looked at."""


@dataclass(frozen=True)
class Setting:
    """Tables of one shape, and why a solution errs too often on them."""

    configs: int
    seeds: int
    confidence: float
    number: int
    likely: str
    look: str
    merit: float = 0.0
    """How far configurations truly differ, in units of the noise."""
    size: tuple[float, float] = (-3, 2)
    """The least and the largest power of ten of the noise."""
    num_broken: int = 0
    """Rows of each table, never row 0, that are no finite number at a seed."""


def settings(rng: np.random.Generator) -> list[Setting]:
    low, middle, high = rng.uniform(0.6, 0.7), rng.uniform(0.8, 0.9), rng.uniform(0.998, 0.999)
    return [
        Setting(12, 30, 0.95, 500, MANY, _LOOK_MANY, size=(-11, -9), num_broken=3),
        Setting(12, 4, 0.95, 500, _FEW, LOOK_QUANTILE),
        # Among so many, some row has differences of one sign by chance.
        *(Setting(40, num_seeds, 0.95, 300, _SIGN, LOOK_QUANTILE) for num_seeds in (3, 6)),
        Setting(40, 5, 0.95, 300, _SIGN, LOOK_QUANTILE, num_broken=3),
        # With one candidate an exact interval misses as often as it may.
        Setting(2, 2, low, 1200, _FEW, LOOK_QUANTILE),
        Setting(
            2,
            int(rng.integers(3, 6)),
            high,
            1200,
            "`confidence` is ignored, or the interval is too narrow",
            "where does `confidence` go in, and the number of candidates?",
        ),
        Setting(
            6,
            6,
            middle,
            500,
            MANY,
            "what is the chance that the best of five lies above its own interval?",
            merit=1.0,
            size=(0.5, 2),
        ),
    ]
