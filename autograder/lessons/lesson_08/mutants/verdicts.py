"""Wrong solutions of 8.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_HELPED = """
import numpy as np
from scipy import stats

@exercise("8.5")
def did_it_help(baseline, candidate, margin):
    if len(baseline) < 5:
        return "undecided"
    difference = candidate - baseline
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    half = stats.t.ppf(0.975, len(difference) - 1) * error
    low, high = difference.mean() - half, difference.mean() + half
    if low > 0:
        return "better"
    if low > -margin:
        return "no worse"
    if high < 0:
        return "worse"
    return "undecided"
"""
_HALF = "half = stats.t.ppf(0.975, len(difference) - 1) * error"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.5": wrong(
        _HELPED,
        {
            "comparing single seeds": (
                "comparing single seeds",
                "    difference = candidate",
                '    return "better" if candidate[0] > baseline[0] else "worse"\n    difference = candidate',
            ),
            "one seed is enough": (
                "so few say nothing",
                '        return "undecided"\n    difference',
                '        return "better" if candidate.mean() > baseline.mean() else "worse"\n    difference',
            ),
            "means without an interval": ("without asking what luck alone does", _HALF, "half = 0.0"),
            "the pairs are not used": (
                "the pairs are not used",
                "error = difference.std(ddof=1) / np.sqrt(len(difference))",
                "error = np.sqrt((candidate.var(ddof=1) + baseline.var(ddof=1)) / len(difference))",
            ),
            "no proof of harm taken for proof of none": (
                "no proof that it is worse",
                "if low > -margin",
                "if not high < 0",
            ),
            "only the mean is held against the margin": (
                "only the mean is held against the margin",
                "if low > -margin",
                "if difference.mean() > -margin",
            ),
            "the margin is not used": (
                "the margin is not used",
                '    if low > -margin:\n        return "no worse"\n',
                "",
            ),
            "worse is asked before no worse": (
                "'worse' is asked before 'no worse'",
                '    if low > -margin:\n        return "no worse"\n    if high < 0:\n        return "worse"\n',
                '    if high < 0:\n        return "worse"\n    if low > -margin:\n        return "no worse"\n',
            ),
            "what is not better is worse": (
                "what is not better is called worse",
                '        return "worse"\n    return "undecided"\n',
                '        return "worse"\n    return "worse"\n',
            ),
            "one standard error": (
                "too narrow an interval",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "1.0",
            ),
            "the spread of single pairs": (
                "the spread of single seeds",
                " / np.sqrt(len(difference))",
                "",
            ),
            "twelve pairs are too few": (
                "more pairs are asked for",
                "len(baseline) < 5",
                "len(baseline) < 12",
            ),
            "five pairs are too few": (
                "more pairs are asked for than five",
                "len(baseline) < 5",
                "len(baseline) <= 5",
            ),
            "a deviation over n": ("the deviation divides by n", "std(ddof=1)", "std()"),
            "a 90 % interval": ("another confidence than 95 %", "0.975", "0.95"),
            "a 99 % interval": ("another confidence than 95 %", "0.975", "0.995"),
            "normal quantiles": (
                "normal quantiles",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "stats.norm.ppf(0.975)",
            ),
            "the arrays are changed": (
                "changed in place",
                "    difference = candidate - baseline\n",
                "    candidate -= baseline\n    difference = candidate\n",
            ),
            "normal quantiles from 31 pairs on": (
                "from some number of pairs on",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "(stats.t.ppf(0.975, len(difference) - 1) if len(difference) < 31 else 1.96)",
            ),
            "normal quantiles from 101 pairs on": (
                "with hundreds of pairs too",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "(stats.t.ppf(0.975, len(difference) - 1) if len(difference) < 101 else stats.norm.ppf(0.975))",
            ),
            "two standard errors": (
                "1.96 or 2 standard errors",
                "stats.t.ppf(0.975, len(difference) - 1)",
                "2.0",
            ),
            "n degrees of freedom": (
                "another number of degrees of freedom",
                "len(difference) - 1)",
                "len(difference))",
            ),
            "ties are left out": (
                "pairs whose scores are equal are left out",
                "    difference = candidate - baseline\n",
                "    difference = candidate - baseline\n    difference = difference[difference != 0]\n"
                '    if len(difference) < 5:\n        return "undecided"\n',
            ),
            "few differences that are all equal": (
                "so few say nothing",
                "    if len(baseline) < 5:",
                "    if len(baseline) < 2 or len(baseline) < 5 and np.ptp(candidate - baseline) > 0:",
            ),
            "what is nearly equal taken for equal": (
                "nearly equal are taken for equal",
                "    low, high = difference.mean() - half, difference.mean() + half",
                "    if np.allclose(difference, difference[0]):\n        half = 0.0\n"
                "    low, high = difference.mean() - half, difference.mean() + half",
            ),
            "no spread says nothing": (
                "have no spread",
                "error = difference.std(ddof=1) / np.sqrt(len(difference))",
                "error = difference.std(ddof=1) / np.sqrt(len(difference)) or np.nan",
            ),
            "an interval that touches 0": ("only touches 0", "if low > 0", "if low >= 0"),
            "an interval that touches the margin": (
                "ends exactly at -margin",
                "if low > -margin",
                "if low >= -margin",
            ),
            "the sign of equal differences": (
                "held against 0 and the margin like any other",
                "    error = difference.std",
                '    if np.ptp(difference) == 0:\n        return ["undecided", "better", "worse"]'
                "[int(np.sign(difference[0]))]\n    error = difference.std",
            ),
            "a one-sided bound": (
                "judged by a one-sided bound",
                "if low > -margin",
                "if difference.mean() - stats.t.ppf(0.95, len(difference) - 1) * error > -margin",
            ),
            "degrees of two samples": (
                "2n - 2 are those of two samples",
                "len(difference) - 1)",
                "2 * len(difference) - 2)",
            ),
            "better by more than the margin": ("and not above the margin", "if low > 0", "if low > margin"),
            "worse by more than the margin": (
                "and not below minus the margin",
                "if high < 0",
                "if high < -margin",
            ),
            "another method": (
                "another interval than Student's",
                "low, high = difference.mean() - half, difference.mean() + half",
                "draws = np.random.default_rng(0).choice(difference, (2000, len(difference)))\n"
                "    low, high = np.quantile(draws.mean(axis=1), [0.025, 0.975])",
            ),
            "four pairs are enough": ("so few say nothing", "len(baseline) < 5", "len(baseline) < 4"),
            "a margin of its own": ("the margin is not used", "if low > -margin", "if low > -margin / 10"),
            "other words": ("another word", 'return "no worse"', 'return "not worse"'),
            "lower scores taken for better ones": (
                "the wrong sign: higher scores",
                "candidate - baseline",
                "baseline - candidate",
            ),
        },
    ),
}
