"""Whether what 5.1 draws is independent: the parts of one sample, and one sample and the next.

A right sampler fails one of these tests by chance in fewer than one check in 10,000.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import stats

from autograder.engine import Job
from autograder.lessons.lesson_05.checks.sample_laws import P_VALUE, Drawn
from autograder.lessons.lesson_05.checks.sample_spaces import Space, role_of

P_VALUE_OF_TABLES = 1e-10
"""Of the thirds of two columns: a rule by which one follows from the other is far beyond it."""


def require_independent(job: Job, spaces: list[Space], drawn: list[Drawn]) -> None:
    """Of parts of a sample, which have no reason to follow each other; of one sample and the next."""
    ranks = [
        {role_of(name): _ranks(found["columns"][name], found["present"][name]) for name in space}
        for space, found in zip(spaces, drawn, strict=True)
    ]
    for one, two in itertools.combinations(sorted(ranks[0]), 2):
        _require_unrelated(
            job,
            [_together(each[one], each[two]) for each in ranks],
            expected=f"{one} drawn without regard to {two}",
            likely="one random number serves several keys, so that the search walks along a diagonal; or a part that "
            "two names share is drawn once",
            bent="one random number serves several keys: one follows from the other, though not in a line",
        )
    for one, two in itertools.product(ranks[0], repeat=2):
        likely = "samples follow each other: numbers are used again, or a sequence is walked through"
        _require_unrelated(
            job,
            [_together(each[one][:-1], each[two][1:]) for each in ranks],
            expected=f"{two} drawn without regard to the {one} of the sample before",
            likely=likely,
            bent=likely,
            p_value=P_VALUE / 10,
        )


def _ranks(values: np.ndarray, present: np.ndarray) -> np.ndarray:
    return np.where(present, stats.rankdata(values), np.nan)


def _together(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Both [2, n] where both are present; empty where one is always the same."""
    both = np.stack([one, two])[:, np.isfinite(one) & np.isfinite(two)]
    return both if both.shape[1] >= 30 and both.std(axis=1).all() else np.empty((2, 0))


def _standard(both: np.ndarray) -> np.ndarray:
    """[2, n] with mean 0 and deviation 1."""
    if not both.size:
        return both
    return np.asarray((both - both.mean(axis=1, keepdims=True)) / both.std(axis=1, keepdims=True))


def _require_unrelated(
    job: Job, pairs: list[np.ndarray], *, expected: str, likely: str, bent: str, p_value: float = P_VALUE
) -> None:
    """`pairs`: of each space the ranks [2, n] of two columns. `bent`: why they go together, but not in a line."""
    both = np.concatenate([_standard(pair) for pair in pairs], axis=1)
    num, look = both.shape[1], "ask the generator anew for each key"
    if num < 100:
        return
    correlation = float(np.mean(both[0] * both[1]))
    job.require(
        2 * stats.norm.sf(abs(correlation) * np.sqrt(num)) >= p_value,
        expected=expected,
        got=f"a rank correlation of {correlation:.2f}",
        likely=likely,
        look=look,
    )
    tables = [_table(pair) for pair in pairs if pair.shape[1] >= 100]
    # Space by space, as the shares of a choice differ from one to the other.
    far = sum(map(_chi_square, tables))
    free = sum((table.shape[0] - 1) * (table.shape[1] - 1) for table in tables)
    job.require(
        not free or bool(stats.chi2.sf(far, free) >= P_VALUE_OF_TABLES),
        expected=expected,
        got=f"values that go together: a chi-square of {far:.0f}, where {free} is usual",
        likely=bent,
        look=look,
    )


def _chi_square(table: np.ndarray) -> float:
    """How far a table is from what it would be if rows and columns had nothing to do with each other."""
    usual = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - usual) ** 2 / usual).sum())


def _table(pair: np.ndarray) -> np.ndarray:
    """How often two columns [2, n] are in which of their thirds: [3, 3] or less, without what never comes."""
    thirds = [np.minimum(3 * (stats.rankdata(row) - 0.5) / len(row), 2.0).astype(int) for row in pair]
    table = np.zeros((3, 3))
    np.add.at(table, tuple(thirds), 1)
    return np.asarray(table[table.any(axis=1)][:, table.any(axis=0)])
