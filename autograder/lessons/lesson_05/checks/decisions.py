"""The check of 5.4: how often a decision between configurations is wrong, over tables of which the truth is known.

A right solution errs in at most 1 - confidence of the tables. The bounds are those that a solution exactly at that
limit passes in all but one of a million checks; the power asked for is far below what Student's t reaches.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from autograder.engine import Job

NUM_TABLES = 1000
CONFIDENCE = 0.95
FALSE_ALARM = 1e-6
ALLOWED = int(stats.binom.isf(FALSE_ALARM, NUM_TABLES, 1 - CONFIDENCE))
"""Wrong tables of `NUM_TABLES`: 5 % and what chance adds."""


def check_choose_winner(job: Job) -> None:
    """5.4: few false winners among equals, true winners found, intervals that hold the truth."""
    _require_plain_cases(job)
    _require_few_false_winners(job)
    _require_true_winners(job)
    _require_coverage(job)


def _tables(rng: np.random.Generator, means: np.ndarray, num_seeds: int, noise: float = 0.01) -> np.ndarray:
    """Losses [tables, configurations, seeds] about 2 + noise × `means` [tables, configurations].

    A seed that is hard is hard for every configuration: it shifts its column by more than the noise of a value.
    """
    num, num_configs = means.shape
    column = rng.normal(0, 5.0, size=(num, 1, num_seeds))
    own = rng.normal(0, 1.0, size=(num, num_configs, num_seeds))
    return np.asarray(2.0 + noise * (means[:, :, None] + column + own))


def _decide(job: Job, losses: np.ndarray) -> dict[str, np.ndarray]:
    answers: dict[str, np.ndarray] = job.learner().call(
        "decide", losses=losses, confidence=CONFIDENCE, seconds=60.0
    )
    return answers


def _require_plain_cases(job: Job) -> None:
    """What every decision has to say, whatever its statistics. In the first tables a row diverged at one seed."""
    num, num_broken = 60, 20
    losses = _tables(job.rng, np.zeros((num, 5)), 5)
    losses[:num_broken, 1 + int(job.rng.integers(4)), 2] = np.nan
    means = losses[:, 1:].mean(axis=2)
    best = np.nanargmin(means, axis=1) + 1
    answers = _decide(job, losses)
    num_other = int((answers["candidate"][num_broken:] != best[num_broken:]).sum())
    job.require(
        num_other == 0,
        expected="as candidate the row, but for row 0, with the lowest mean loss",
        got=f"another row in {num_other} of {num - num_broken} tables",
        likely="the best of noise: one lucky seed decides instead of the mean over seeds (or a higher loss wins)",
        look="the mean along the axis of the seeds; lower is better; row 0 is no candidate",
    )
    job.require(
        bool((answers["candidate"] == best).all()),
        expected="a candidate among the rows that are finite at every seed",
        got="a row with a NaN as candidate, or another than the best of the rest",
        likely="NaN wins: `argmin` and `argmax` return the place of the first NaN",
        look="a configuration that diverges at one seed is out",
    )
    low, high = answers["low"], answers["high"]
    job.require(
        bool((low <= high).all() and np.isfinite(low).all()),
        expected="an interval (low, high) with a finite low",
        got="ends that are swapped or not finite",
        likely="a sign lost on the way, or the interval of a row that diverged",
        look="the mean minus and plus the same positive number",
    )
    gain = losses[:, 0].mean(axis=1) - means[np.arange(num), best - 1]
    job.require(
        bool(((low <= gain) & (gain <= high)).all()),
        expected="the mean improvement over row 0 inside its interval",
        got="an interval without it",
        likely="the interval of a loss, or of the improvement with the wrong sign",
        look="positive: the candidate's loss is lower than row 0's",
    )
    job.require(
        bool((answers["winner"] == np.where(low > 0, best, 0)).all()),
        expected="the candidate as winner where the whole interval is above 0, else row 0",
        got="winners that contradict their interval",
        likely="best of noise: the lowest mean wins, and the interval is only reported",
        look="what does an interval say that begins below 0?",
    )


def _require_few_false_winners(job: Job) -> None:
    """Among configurations that are all the same, one is declared better in at most 5 of 100 tables."""
    why = {
        # With 30 seeds a normal quantile does no harm: what is left is the number of candidates.
        30: "best of noise: the best of many is picked first, then judged as if it had been the only one",
        4: "an interval too narrow for so few seeds: the spread is a guess itself, which a normal quantile ignores",
    }
    look = {
        30: "with k candidates, each gets a k-th of the error that all together may make",
        4: "Student's t, with one degree of freedom less than there are seeds",
    }
    for num_seeds, likely in why.items():
        answers = _decide(job, _tables(job.rng, np.zeros((NUM_TABLES, 12)), num_seeds))
        wrong = int((answers["winner"] != 0).sum())
        job.counts[f"false_winners_at_{num_seeds}_seeds"] = round(wrong / NUM_TABLES, 3)
        job.require(
            wrong <= ALLOWED,
            expected=f"among 12 equal configurations and {num_seeds} seeds a false winner in at most 5 % of the tables "
            f"({ALLOWED} of {NUM_TABLES}, with what chance adds)",
            got=f"{wrong} of {NUM_TABLES}",
            likely=likely,
            look=look[num_seeds],
        )


def _require_true_winners(job: Job) -> None:
    """A lead of 4 times the noise shows at 8 seeds, though the seeds differ more among themselves."""
    num_tables = 300
    means = np.zeros((num_tables, 6))
    best = job.rng.integers(1, 6, size=num_tables)
    means[np.arange(num_tables), best] = -4.0
    found = float(np.mean(_decide(job, _tables(job.rng, means, 8))["winner"] == best))
    job.counts["true_winners_found"] = round(found, 3)
    job.require(
        found >= 0.8,
        expected="with 8 seeds, a lead of 4 times the noise found in at least 80 % of the tables",
        got=f"{found:.0%}",
        likely="the pairs are not used: a seed that is hard is hard for all rows and cancels in differences only; "
        "or the interval is that of single values, not of their mean",
        look="subtract column by column first; the error of a mean falls with the square root of the number of seeds",
    )


def _require_coverage(job: Job) -> None:
    """The interval holds the candidate's true improvement in at least 95 of 100 tables."""
    noise = float(10 ** job.rng.uniform(-3, -1))
    means = job.rng.normal(0, 1.0, size=(NUM_TABLES, 6))
    answers = _decide(job, _tables(job.rng, means, 6, noise))
    truth = noise * (means[:, 0] - means[np.arange(NUM_TABLES), answers["candidate"]])
    missed = int(((truth < answers["low"]) | (truth > answers["high"])).sum())
    job.counts["intervals_that_miss"] = round(missed / NUM_TABLES, 3)
    job.require(
        missed <= ALLOWED,
        expected=f"the true improvement outside its interval in at most 5 % of the tables "
        f"({ALLOWED} of {NUM_TABLES}, with what chance adds)",
        got=f"{missed} of {NUM_TABLES}",
        likely="the candidate was chosen because it looked good, and its interval does not know that",
        look="what is the chance that the best of five lies above its own interval?",
    )
