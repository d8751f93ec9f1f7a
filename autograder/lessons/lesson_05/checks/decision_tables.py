"""Tables of losses of which the truth is known, their shapes, and the intervals that come of known mistakes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

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
_SHARED = (
    "an interval too narrow for two seeds and many rows: the spread of all differences together is taken for as sure "
    "as if they were independent, and all of them hold the noise of row 0"
)
_LOOK_SHARED = (
    "the spread of one row's differences, with its own degrees of freedom; or that of all values, row 0's too"
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
        Setting(int(rng.integers(55, 70)), 2, 0.95, 600, _SHARED, _LOOK_SHARED),
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


def tables(
    rng: np.random.Generator, means: np.ndarray, num_seeds: int, size: tuple[float, float] = (-3, 2)
) -> tuple[np.ndarray, float]:
    """Losses [tables, configurations, seeds], `means` [tables, configurations] apart in units of their noise; and it.

    A seed that is hard is hard for every configuration: it shifts its column by far more than the noise of a value.
    Losses are so high that single precision rounds away what there is to see.
    `size`: the least and the largest power of ten of the noise.
    """
    num, num_configs = means.shape
    noise, hardness, level = 10 ** rng.uniform((size[0], 0.7, 4), (size[1], 2, 6))
    column = rng.normal(0, hardness, size=(num, 1, num_seeds))
    own = rng.normal(0, 1.0, size=(num, num_configs, num_seeds))
    losses = noise * (level * rng.choice((-1, 1)) + means[:, :, None] + column + own)
    return np.asarray(losses), float(noise)


def broken_tables(
    rng: np.random.Generator, num_configs: int, num_seeds: int, num_broken: int, num: int = 40
) -> np.ndarray:
    """Tables of equals; in every other one some rows, never row 0, are no finite number at a seed."""
    losses, _ = tables(rng, np.zeros((num, num_configs)), num_seeds)
    break_rows(rng, losses[::2], num_broken)
    return losses


def break_rows(rng: np.random.Generator, losses: np.ndarray, num_broken: int) -> None:
    """In each of `losses` [tables, configurations, seeds], in place: some rows are no finite number at a seed."""
    for table in losses:
        for row in 1 + rng.choice(len(table) - 1, size=num_broken, replace=False):
            table[row, rng.integers(table.shape[1])] = rng.choice((np.nan, np.inf, -np.inf))


def even_tables(
    rng: np.random.Generator, num_configs: int, num_seeds: int, lead: int, num: int = 10
) -> np.ndarray:
    """Tables whose best candidate is better than row 0 by the same at every seed, to the bit; all others are far worse.

    `lead`: 1 better, 0 equal, -1 worse; times a power of two.
    """
    losses = rng.integers(-40, 40, size=(num, num_configs, num_seeds)).astype(np.float64)
    losses[:, 1:] += 200
    losses[np.arange(num), rng.integers(1, num_configs, size=num)] = losses[:, 0] - lead
    return np.asarray(losses * 2.0 ** rng.integers(-30, 3))


def best_rows(losses: np.ndarray) -> np.ndarray:
    """The row [tables], other than 0, with the lowest mean among those that are finite at every seed."""
    is_finite = np.isfinite(losses).all(axis=2)
    means = np.where(is_finite, np.where(is_finite[:, :, None], losses, 0.0).mean(axis=2), np.inf)
    return np.asarray(1 + means[:, 1:].argmin(axis=1))


def best_of_the_seeds_left(losses: np.ndarray, is_left: np.ndarray) -> np.ndarray:
    """The row [tables], other than 0, with the lowest mean over its seeds that are left."""
    num_seeds = is_left.sum(axis=2)
    means = np.where(is_left, losses, 0.0).sum(axis=2) / np.maximum(num_seeds, 1)
    return np.asarray(1 + np.where(num_seeds > 0, means, np.inf)[:, 1:].argmin(axis=1))


def half_widths(losses: np.ndarray, confidence: float, mistake: str = "none") -> np.ndarray:
    """Half the width [tables] of the best row's interval: of its improvements by Student's t, after Bonferroni."""
    num, num_configs, num_seeds = losses.shape
    gains = losses[:, 0] - losses[np.arange(num), best_rows(losses)]
    error = 1 - (0.95 if mistake == "confidence ignored" else confidence)
    share = error if mistake == "one of many" else error / (num_configs - 1)
    tail = 1 - (share if mistake == "one side" else share / 2)
    degrees = num_seeds if mistake == "as many degrees as seeds" else num_seeds - 1
    quantile = stats.norm.ppf(tail) if mistake == "normal quantile" else stats.t.ppf(tail, degrees)
    spread = gains.std(axis=1, ddof=0 if mistake == "divided by n" else 1)
    if mistake == "pairs not used":
        rows = losses[np.arange(num), best_rows(losses)]
        spread = np.sqrt(losses[:, 0].var(axis=1, ddof=1) + rows.var(axis=1, ddof=1))
    root = 1.0 if mistake == "single values" else np.sqrt(num_seeds)
    return np.asarray(quantile * spread / root)
