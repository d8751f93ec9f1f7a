"""Wrong solutions of 5.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_CHOOSE = """
import math
import numpy as np
from scipy import stats

@exercise("5.4")
def choose_winner(losses, confidence=0.95):
    gains = losses[0] - losses[1:]
    means = np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)
    best = int(np.argmax(means))
    num_candidates, num_seeds = gains.shape
    error = gains[best].std(ddof=1) / math.sqrt(num_seeds)
    share = (1 - confidence) / num_candidates
    width = stats.t.ppf(1 - share / 2, num_seeds - 1) * error
    low, high = means[best] - width, means[best] + width
    return {"candidate": best + 1, "interval": (low, high), "winner": best + 1 if low > 0 else 0}
"""

MUTANTS: tuple[Mutant, ...] = wrong(
    _CHOOSE,
    {
        "infinity written into the table": (
            "something is written into `losses`",
            "    gains = losses[0]",
            "    losses[~np.isfinite(losses)] = np.inf\n    gains = losses[0]",
        ),
        "best of noise from one seed": (
            "one lucky seed decides",
            "best = int(np.argmax(means))",
            "best = int(np.nanargmax(gains[:, 0]))",
        ),
        "the lowest mean wins": (
            "best of noise",
            "best + 1 if low > 0 else 0",
            "best + 1 if means[best] > 0 else 0",
        ),
        "no price for many candidates": (
            "the best of many is picked first",
            "(1 - confidence) / num_candidates",
            "1 - confidence",
        ),
        "the spread of all rows, as if they were independent": (
            "the noise of row 0",
            (
                "    error = gains[best].std(ddof=1) / math.sqrt(num_seeds)\n",
                "    whole = gains[np.isfinite(gains).all(axis=1)]\n"
                "    error = math.sqrt(whole.var(axis=1, ddof=1).mean() / num_seeds)\n"
                "    num_candidates = len(whole)\n",
            ),
            (
                "stats.t.ppf(1 - share / 2, num_seeds - 1)",
                "stats.t.ppf(1 - share, len(whole) * (num_seeds - 1))",
            ),
            ("means[best] + width\n", "math.inf\n"),
        ),
        "normal quantile for four seeds": (
            "too narrow for so few seeds",
            "stats.t.ppf(1 - share / 2, num_seeds - 1)",
            "stats.norm.ppf(1 - share / 2)",
        ),
        "normal quantile from 30 seeds on": (
            "which a normal quantile ignores",
            "stats.t.ppf(1 - share / 2, num_seeds - 1)",
            "(stats.t(num_seeds - 1) if num_seeds < 30 else stats.norm).ppf(1 - share / 2)",
        ),
        "normal quantile from 100 seeds on": (
            "which a normal quantile ignores",
            "stats.t.ppf(1 - share / 2, num_seeds - 1)",
            "(stats.t(num_seeds - 1) if num_seeds < 100 else stats.norm).ppf(1 - share / 2)",
        ),
        "normal quantile from 1000 seeds on": (
            "which a normal quantile ignores",
            "stats.t.ppf(1 - share / 2, num_seeds - 1)",
            "(stats.t(num_seeds - 1) if num_seeds < 1000 else stats.norm).ppf(1 - share / 2)",
        ),
        **{
            f"better by the sign alone at {num_seeds} seeds": (
                "all its differences have one sign",
                "width, means[best] + width\n",
                "width, means[best] + width\n"
                f"    if num_seeds == {num_seeds} and (gains[best] > 0).all():\n"
                "        low = max(low, 1e-3 * means[best])\n",
            )
            for num_seeds in (3, 5, 6)
        },
        "a quantile kept from fewer candidates": (
            "the best of many is picked first",
            ("@exercise", "quantiles = {}\n\n@exercise"),
            (
                "stats.t.ppf(1 - share / 2, num_seeds - 1)",
                "quantiles.setdefault((confidence, num_seeds), stats.t.ppf(1 - share / 2, num_seeds - 1))",
            ),
        ),
        "no price where a row diverged": (
            "the best of many is picked first",
            "(1 - confidence) / num_candidates",
            "(1 - confidence) / (num_candidates if np.isfinite(losses).all() else 1)",
        ),
        "spread of the seeds at which no row diverged": (
            "a false winner of few seeds",
            "gains[best].std(ddof=1)",
            "np.std(gains[best][np.isfinite(gains).all(axis=0)] if np.isfinite(gains).all(axis=0).sum() > 1 "
            "else gains[best], ddof=1)",
        ),
        "a confidence of 0.999 at most": (
            "an interval too narrow for so many seeds",
            "(1 - confidence)",
            "(1 - min(confidence, 0.999))",
        ),
        "a least difference": (
            "a least difference",
            "best + 1 if low > 0 else 0",
            "best + 1 if low > 1e-3 * width else 0",
        ),
        "pairs not used": (
            "the pairs are not used",
            "gains[best].std(ddof=1) / math.sqrt(num_seeds)",
            "math.sqrt((losses[0].var(ddof=1) + losses[best + 1].var(ddof=1)) / num_seeds)",
        ),
        "confidence ignored": ("`confidence` is ignored", "(1 - confidence)", "0.05"),
        "a quantile kept from before": (
            "a quantile is kept from a call before",
            ("@exercise", "quantiles = {}\n\n@exercise"),
            (
                "stats.t.ppf(1 - share / 2, num_seeds - 1)",
                "quantiles.setdefault(gains.shape, stats.t.ppf(1 - share / 2, num_seeds - 1))",
            ),
        ),
        "no winner without spread": (
            "not decided by `low` alone",
            "best + 1 if low > 0 else 0",
            "best + 1 if low > 0 and error > 0 else 0",
        ),
        "an interval in few digits": (
            "ends that are rounded",
            '"interval": (low, high)',
            '"interval": (round(low, 6), round(high, 6))',
        ),
        "False for row 0": (
            "its value has another form",
            "best + 1 if low > 0 else 0",
            "low > 0 and best + 1",
        ),
        "another default": ("another default", "confidence=0.95", "confidence=0.9"),
        "divided by the number of seeds": ("`ddof=1` is missing", "std(ddof=1)", "std()"),
        "as many degrees of freedom as seeds": (
            "too many degrees of freedom",
            "stats.t.ppf(1 - share / 2, num_seeds - 1)",
            "stats.t.ppf(1 - share / 2, num_seeds)",
        ),
        "the whole error at each end": (
            "each has the whole error",
            "stats.t.ppf(1 - share / 2,",
            "stats.t.ppf(1 - share,",
        ),
        "the spread of single values": ("far too wide", " / math.sqrt(num_seeds)", ""),
        "row 0 as a candidate": (
            "row 0 is no candidate",
            ("gains = losses[0] - losses[1:]", "gains = losses[0] - losses"),
            ('"candidate": best + 1', '"candidate": best'),
            ("best + 1 if low", "best if low"),
            ("gains.shape\n", "gains.shape\n    num_candidates -= 1\n"),
        ),
        "counted from row 1": (
            "the lowest mean loss",
            ('"candidate": best + 1', '"candidate": best'),
            ("best + 1 if low", "best if low"),
        ),
        "the highest loss": (
            "or a higher loss wins",
            "gains = losses[0] - losses[1:]",
            "gains = losses[1:] - losses[0]",
        ),
        "the mean of the seeds that are left": (
            "judged by its other seeds",
            (
                "np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)",
                "np.nanmean(gains, axis=1)",
            ),
            ("gains[best].std(ddof=1)", "np.nanstd(gains[best], ddof=1)"),
        ),
        "minus infinity wins": (
            "minus infinity is below all",
            "np.isfinite(gains).all(axis=1)",
            "~np.isnan(gains).any(axis=1)",
        ),
        "ends exchanged": ("ends that are swapped", '"interval": (low, high)', '"interval": (high, low)'),
        "the interval of its loss": (
            "the interval of a loss",
            '"interval": (low, high)',
            '"interval": (losses[best + 1].mean() - width, losses[best + 1].mean() + width)',
        ),
        "an interval of the other sign": (
            "improvement with the wrong sign",
            '"interval": (low, high)',
            '"interval": (-high, -low)',
        ),
        "a winner that is worse": (
            "the interval is only reported",
            "best + 1 if low > 0 else 0",
            "best + 1 if high > 0 else 0",
        ),
        "a tie counts as a win": (
            "a tie counts as a win",
            "best + 1 if low > 0 else 0",
            "best + 1 if low >= 0 else 0",
        ),
        "no interval for a tie": (
            "0 is divided by it",
            "width = stats.t.ppf(1 - share / 2, num_seeds - 1) * error",
            "width = stats.t.ppf(1 - share / 2, num_seeds - 1) * error**2 / error",
        ),
        "no winner is none": (
            "its value has another form",
            "best + 1 if low > 0 else 0",
            "best + 1 if low > 0 else None",
        ),
        "another key": ("a key is missing or misspelt", '"interval": (low, high)', '"ends": (low, high)'),
        "NaN wins": (
            "NaN wins",
            "np.where(np.isfinite(gains).all(axis=1), gains.mean(axis=1), -np.inf)",
            "gains.mean(axis=1)",
        ),
    },
)
