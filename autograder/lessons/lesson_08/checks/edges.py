"""The last stage of 8.5: verdicts one by one, on comparisons where a slightly wrong interval says something else."""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake

POOL = 900  # of which a mistake parts from the right in one of 2 to 30
EACH, OTHERS = 10, 200  # comparisons of each mistake that are taken, and others
NEARLY = 20  # comparisons of differences that are nearly equal
SAFE = 1e-9  # of a score: whatever order a sum is taken in, no end of an interval comes so near to an edge
# Differences that are all equal, with a margin: on both sides of 0 and of the margin, and exactly there.
EQUAL = ((0.0, 0.5), (0.0, 8.0), (0.25, 0.5), (4.0, 1.0), (-0.25, 0.5), (-0.5, 0.5), (-8.0, 8.0), (-2.0, 0.5))
_CONFIDENCE = "another confidence than 95 %: 2.5 % of Student's t lie beyond each end, and not 5 % or 0.5 %"
_NORMAL = "normal quantiles, 1.96 or 2 standard errors, where few pairs need Student's t: it reaches further"
_NO_WIDTH = (
    "differences that are all equal have no spread: their interval is that number itself, held against 0 and the "
    "margin like any other, and not NaN"
)
_NEARLY = (
    "differences that are nearly equal are taken for equal, as by `np.allclose`: small ones have a spread too"
)
_DEGREES = "another number of degrees of freedom than n - 1"
_MANY = "normal quantiles from some number of pairs on: Student's t of n - 1 degrees reaches further"
LIKELY = {
    "too few": "more pairs are asked for than five: five are enough",
    "no width": _NO_WIDTH,
    "touches": "an interval that only touches 0 does not lie above it",
    "touches the margin": "an interval that ends exactly at -margin does not lie above it",
    "ties": "pairs whose scores are equal are left out: they are differences of 0, and count like all others",
    "population": "the deviation divides by n (`ddof=0`, NumPy's default) and not by n - 1: too narrow an interval",
    "90 %": _CONFIDENCE,
    "99 %": _CONFIDENCE,
    "normal": _NORMAL,
    "normal for many": _MANY + " with 40 pairs too",
    "normal for hundreds": _MANY + " with hundreds of pairs too",
    "two": _NORMAL,
    "n degrees": _DEGREES,
    "n - 2 degrees": _DEGREES,
    "2n - 2 degrees": _DEGREES + ": 2n - 2 are those of two samples that are not paired",
    "one-sided": "'no worse' is judged by a one-sided bound of 95 %, and not by the interval that is asked for",
    "unpaired": "the pairs are not used: the spread is that of both sides, and not that of the differences",
    "unpaired, 2n - 2": "the pairs are not used: the spread is that of both sides, and not that of the differences",
    "single": "the spread of single seeds is taken where that of their mean belongs: divide by √n",
    "better by a margin": "'better' asks whether the interval lies above 0, and not above the margin",
    "worse by a margin": "'worse' asks whether the interval lies below 0, and not below minus the margin",
}


class _Comparison(NamedTuple):
    baseline: np.ndarray
    candidate: np.ndarray
    margin: float


def require_verdicts(job: Job) -> None:
    """Fail unless each verdict is that of Student's interval; a wrong one is named by the mistake that gives it too."""
    drawn = _comparisons(job.rng)
    answer = job.learner().call(
        "decide_each",
        scores=[np.stack([one.baseline, one.candidate]) for one in drawn],
        margins=[one.margin for one in drawn],
    )
    got = answer["verdicts"]
    job.counts["verdicts compared"] = len(drawn)
    job.require(
        not answer["changed"],
        expected="scores that are as they were afterwards",
        got=f"others in {answer['changed']} of {len(drawn)} comparisons",
        likely="the arrays of the caller are changed in place: who compares them once more compares something else",
        look="`candidate - baseline` makes a new array; `-=` and `.sort()` do not",
    )
    wrong = [i for i, one in enumerate(drawn) if got[i] != verdict(one)]
    if not wrong:
        return
    shown = min(wrong, key=lambda i: len(drawn[i].baseline))
    one = drawn[shown]
    low, high = _interval(one)
    job.require(
        False,
        expected=f"{verdict(one)!r} of {len(one.baseline)} pairs with a 95 % interval from {low:.4g} to {high:.4g} and "
        f"a margin of {one.margin:.4g}",
        got=f"{got[shown]!r}, and {len(wrong)} of {len(drawn)} verdicts near the edges are wrong",
        likely=name_the_mistake(
            LIKELY,
            twin=lambda mistake: [verdict(each, mistake) for each in drawn],
            is_same=lambda found: found == got,
        )
        or (_NO_WIDTH if wrong[-1] < len(EQUAL) else _NEARLY if wrong[-1] < len(EQUAL) + NEARLY else "")
        or "another interval than Student's of the mean difference, as a bootstrap, a sign-flip or a rank test has it",
        look="mean ± t · deviation / √n of the n differences: `stats.t.ppf(0.975, n - 1)`, `std(ddof=1)`",
    )


def verdict(one: _Comparison, mistake: str = "") -> str:
    """What is right to say of it, or what a twin with one mistake says."""
    if len(one.baseline) < (6 if mistake == "too few" else 5):
        return "undecided"
    low, high = _interval(one, mistake)
    if low > (one.margin if mistake == "better by a margin" else 0) or (mistake == "touches" and low == 0):
        return "better"
    if mistake == "one-sided":
        low = _interval(one, "90 %")[0]
    if low > -one.margin or (mistake == "touches the margin" and low == -one.margin):
        return "no worse"
    return "worse" if high < (-one.margin if mistake == "worse by a margin" else 0) else "undecided"


def _interval(one: _Comparison, mistake: str = "") -> tuple[float, float]:
    difference = one.candidate - one.baseline
    if mistake == "ties":
        difference = difference[difference != 0]
    n = len(difference)
    if n < 5 or (mistake == "no width" and np.ptp(difference) == 0):
        return -math.inf, math.inf
    deviation = float(difference.std(ddof=0 if mistake == "population" else 1))
    if mistake.startswith("unpaired"):
        deviation = math.hypot(one.baseline.std(ddof=1), one.candidate.std(ddof=1))
    half = _quantile(n, mistake) * deviation / (1.0 if mistake == "single" else math.sqrt(n))
    middle = float(difference.mean())
    return middle - half, middle + half


@functools.cache
def _quantile(n: int, mistake: str) -> float:
    known = {"normal": 1.959964, "two": 2.0, "normal for many": 1.959964 if n > 30 else 0.0}
    known["normal for hundreds"] = 1.959964 if n > 100 else 0.0
    degrees = {"n degrees": n, "n - 2 degrees": n - 2}.get(mistake, n - 1)
    if mistake.endswith(("2n - 2", "2n - 2 degrees")):
        degrees = 2 * n - 2
    share = {"90 %": 0.95, "99 %": 0.995}.get(mistake, 0.975)
    return known.get(mistake) or float(stats.t.ppf(share, degrees))


def _comparisons(rng: np.random.Generator) -> list[_Comparison]:
    """A few hundred, among them some on which the twin with a mistake says something else than is right."""
    pool = [_drawn(rng) for _ in range(POOL)]
    right = [verdict(one) for one in pool]
    taken = {*range(OTHERS)}
    for mistake in LIKELY:
        parted = (i for i, one in enumerate(pool) if verdict(one, mistake) != right[i])
        taken |= {*itertools.islice(parted, EACH)}
    return [
        *_without_spread(rng),
        *(_nearly_equal(rng) for _ in range(NEARLY)),
        *(pool[i] for i in sorted(taken)),
    ]


def _drawn(rng: np.random.Generator) -> _Comparison:
    """5 to 400 pairs, some of them ties; an end of the interval is near to 0, or to a margin, wide or narrow."""
    while True:
        n = int(rng.integers(*((5, 6), (6, 11), (11, 31), (31, 100), (101, 400))[rng.integers(5)]))
        num_ties = int(rng.integers(1, n - 2)) if rng.random() < 0.3 else 0
        difference = rng.standard_normal(n - num_ties)
        half = _quantile(n, "") / math.sqrt(n)
        # Differences without ties have a deviation of 1 and, as their mean, what brings an end of the interval to 0.
        difference = (difference - difference.mean()) / difference.std(ddof=1)
        near = half * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-3, -0.4))
        difference += rng.choice([near, -near, rng.uniform(-2, 2)])
        difference = rng.permutation(np.concatenate([difference, np.zeros(num_ties)]))
        points = float(rng.choice([1e-4, 0.02, 1.0, 30.0]))
        baseline = points * (rng.choice([70, 1e6]) + 4 * rng.standard_normal(n))
        one = _Comparison(baseline, baseline + points * difference, points * 10 ** rng.uniform(-1.5, 1.0))
        low, high = _interval(one)
        if low < 0 and rng.random() < 0.4:  # the margin is near to an end
            one = one._replace(margin=-low * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-3, -0.4)))
        if min(abs(low), abs(high), abs(low + one.margin)) > SAFE * np.abs(baseline).max():
            return one


def _nearly_equal(rng: np.random.Generator) -> _Comparison:
    """5 to 8 differences near to 0 or to minus the margin, whose spread is hardly more than nothing."""
    while True:
        n, margin = int(rng.integers(5, 9)), float(rng.uniform(0.2, 2.0))
        middle, spread = ((0.0, 3e-9), (-margin, 2e-6 * margin))[int(rng.integers(2))]
        difference = middle + spread * (rng.standard_normal(n) + rng.normal())
        baseline = 0.25 * rng.integers(1, 8, n)
        one = _Comparison(baseline, baseline + difference, margin)
        low, high = _interval(one)
        if min(abs(low), abs(high), abs(low + margin)) > 1e-13:
            return one


def _without_spread(rng: np.random.Generator) -> list[_Comparison]:
    """Differences that are all equal, in quarters, so that no sum of them rounds."""
    found = []
    for difference, margin in EQUAL:
        baseline = 0.25 * rng.integers(240, 320, int(rng.integers(5, 31 if rng.random() < 0.5 else 6)))
        found.append(_Comparison(baseline, baseline + difference, margin))
    return found
