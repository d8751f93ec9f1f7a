"""The check of 5.4: how often a decision between configurations is wrong, over tables of which the truth is known.

A right solution errs in at most 1 - confidence of the tables. What errs a little more often is looked at again, over
many more tables: a solution exactly at that limit passes in all but one of a million checks.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from autograder.engine import Job, failure
from autograder.lessons.checking import name_the_mistake
from autograder.lessons.lesson_05.checks.decision_tables import (
    LOOK_QUANTILE,
    MANY,
    SIZES,
    Setting,
    best_of_the_seeds_left,
    best_rows,
    break_rows,
    broken_tables,
    even_tables,
    half_widths,
    settings,
    tables,
)

MORE_TABLES = 5000
FALSE_ALARM = 1e-6
ROUGH = 0.04
"""By how much more an interval may miss, as a share of what it may: a quantile may be simulated, or from a table."""

# Why intervals are too narrow, by the twin that has the same; the first that fits is named.
_NARROW = {
    "confidence ignored": "`confidence` is ignored: the interval is that of 0.95, whatever is asked for",
    "one of many": MANY,
    "normal quantile": "an interval too narrow for so few seeds: the spread is a guess itself, which a normal quantile "
    "ignores",
    "as many degrees as seeds": "too many degrees of freedom: one is spent on the mean",
    "divided by n": "the spread is divided by the number of seeds, not by one less: `ddof=1` is missing",
    "one side": "both ends may be missed, and each has the whole error: half of it belongs to each end",
}


def check_choose_winner(job: Job) -> None:
    """5.4: the right candidate, few false winners among equals, true winners found, intervals that hold the truth."""
    _require_plain_cases(job)
    _require_quantile(job)
    wrong = [_require_few_errors(job, setting) for setting in settings(job.rng)]
    job.counts["false_winners_at_30_seeds"], job.counts["false_winners_at_4_seeds"] = wrong[:2]
    _require_true_winners(job)


def _decide(
    job: Job, losses: np.ndarray, confidence: float | None = 0.95, *, by_name: bool = False
) -> dict[str, np.ndarray]:
    """The learner's answers on each table [tables, configurations, seeds], of the form that was asked for."""
    answers = job.learner().call(
        "decide", losses=losses, confidence=confidence, by_name=by_name, seconds=60.0
    )
    job.require(
        not answers["odd"],
        expected="a dict with candidate, winner and interval: two rows, and a pair of numbers",
        got=str(answers["odd"]),
        likely="a key is missing or misspelt, or its value has another form",
        look="the docstring lists them",
    )
    job.require(
        not answers["is_changed"],
        expected="`losses` as it was",
        got="another table",
        likely="something is written into `losses`, such as infinity for NaN: the caller's own table changes with it",
        look="`np.where`, or a copy",
    )
    _require_consistent(job, losses, answers)
    return {name: answers[name] for name in ("candidate", "winner", "low", "high")}


def _require_consistent(job: Job, losses: np.ndarray, answers: dict[str, np.ndarray]) -> None:
    """What every decision has to say, whatever its statistics."""
    best = best_rows(losses)
    is_whole = np.isfinite(losses).all(axis=(1, 2))
    is_other = answers["candidate"] != best
    job.require(
        not (is_other & is_whole).any(),
        expected="as candidate the row, but for row 0, with the lowest mean loss",
        got=f"another row in {int((is_other & is_whole).sum())} of {int(is_whole.sum())} tables",
        likely="the best of noise: one lucky seed decides, or the best end of an interval, instead of the mean over "
        "seeds (or a higher loss wins)",
        look="the mean along the axis of the seeds; lower is better; row 0 is no candidate",
    )
    job.require(
        not is_other.any(),
        expected="a candidate among the rows that are finite at every seed",
        got="a row with a NaN or an infinity as candidate, or another than the best of the rest",
        likely="a row that diverged at one seed is judged by its other seeds, as `nanmean` does"
        if any(
            (answers["candidate"] == best_of_the_seeds_left(values, is_left)).all()
            for values in (losses, losses - losses[:, :1])
            for is_left in (np.isfinite(losses), ~np.isnan(losses))
        )
        else "NaN wins: `argmin` and `argmax` return the place of the first NaN, and minus infinity is below all",
        look="a configuration that diverges at one seed is out",
    )
    low, high = answers["low"], answers["high"]
    gains = losses[:, 0] - losses[np.arange(len(losses)), best]
    is_even = (gains == gains[:, :1]).all(axis=1)
    job.require(
        not np.isnan(low[is_even]).any(),
        expected="an interval (low, high) with a finite low, though the candidate differs from row 0 by the same at "
        "every seed",
        got=f"NaN in {int(np.isnan(low[is_even]).sum())} of {int(is_even.sum())} tables",
        likely="where candidate and row 0 differ by the same at every seed, or not at all, the spread of their "
        "difference is 0, and 0 is divided by it",
        look="what is the improvement there, and how far can it be from 0?",
    )
    job.require(
        bool((low <= high).all() and np.isfinite(low).all()),
        expected="an interval (low, high) with a finite low",
        got="ends that are swapped or not finite",
        likely="a sign lost on the way, or the interval of a row that diverged",
        look="the mean minus and plus the same positive number",
    )
    gain = gains.mean(axis=1)
    job.require(
        bool(((low <= gain) & (gain <= high)).all()),
        expected="the mean improvement over row 0 inside its interval",
        got="an interval without it",
        likely="the interval of a loss, or of the improvement with the wrong sign, or ends that are rounded",
        look="positive: the candidate's loss is lower than row 0's",
    )
    is_other_winner = answers["winner"] != np.where(low > 0, best, 0)
    job.require(
        not is_other_winner.any() or bool((low[is_other_winner] != 0).any()),
        expected="row 0 as winner where the interval begins at 0",
        got=f"the candidate in {int(is_other_winner.sum())} tables",
        likely="a tie counts as a win: where the candidate has the losses of row 0, `low` is 0, not above it",
        look="is it `>` or `>=` that compares with 0?",
    )
    job.require(
        not is_other_winner.any(),
        expected="the candidate as winner where the whole interval is above 0, else row 0",
        got="winners that contradict their interval",
        likely="best of noise: the lowest mean wins, and the interval is only reported"
        if bool((low[is_other_winner] <= 0).all())
        else "the winner is not decided by `low` alone, but by another test, a least difference, or a spread above 0",
        look="what does an interval say that begins below 0, and what one that begins above?",
    )


def _require_plain_cases(job: Job) -> None:
    """The smallest tables, rows that diverged, and what is taken where no confidence is given."""
    for num_configs, num_seeds, num_broken in ((6, 5, 2), (2, 2, 0), (7, 3, 5)):
        _decide(job, broken_tables(job.rng, num_configs, num_seeds, num_broken), 0.9, by_name=True)
    for num_configs, num_seeds in ((2, 3), (4, 5)):
        for lead in (0, 1, -1):
            _decide(job, even_tables(job.rng, num_configs, num_seeds, lead))
    losses, _ = tables(job.rng, np.zeros((40, 4)), 5)
    _require_decision_at_the_end(job, losses)
    lower, asked, default = (_decide(job, losses, confidence) for confidence in (0.5, 0.95, None))
    job.require(
        bool((lower["low"] > asked["low"]).all()),
        expected="intervals of confidence=0.5 that begin above those of 0.95, over the same losses",
        got=f"none such in {int((lower['low'] <= asked['low']).sum())} of {len(losses)} tables",
        likely="`confidence` is ignored, or a quantile is kept from a call before",
        look="where does `confidence` go in?",
    )
    with np.errstate(invalid="ignore"):  # intervals without an upper end
        ratio = float(np.median((default["high"] - default["low"]) / (asked["high"] - asked["low"])))
    job.require(
        abs(ratio - 1) < 0.05 or bool(np.isinf(asked["high"]).any()),
        expected="without a second argument the intervals of confidence=0.95",
        got=f"intervals {ratio:.2f} times as wide",
        likely="`confidence` has another default than the exercise says",
        look="the first line of the cell's function",
    )


def _require_decision_at_the_end(job: Job, losses: np.ndarray) -> None:
    """Row 0 is moved so that intervals begin hardly above 0, then hardly below: `low` alone decides, however near."""
    answers = _decide(job, losses)
    gain = (losses[:, 0] - losses[np.arange(len(losses)), best_rows(losses)]).mean(axis=1)
    for sign in (1, -1):
        moved = losses.copy()
        moved[:, 0] += (sign * 1e-6 * (gain - answers["low"]) - answers["low"])[:, None]
        _decide(job, moved)


def _require_quantile(job: Job) -> None:
    """One candidate, few seeds and many: where an interval is so many standard errors wide, how often does it miss?"""
    rng = job.rng
    for sizes, errors in SIZES:
        num_seeds, confidence = int(rng.integers(*sizes)), 1 - float(rng.uniform(*errors))
        losses, _ = tables(rng, np.zeros((12, 2)), num_seeds)
        answers = _decide(job, losses, confidence)
        gains = losses[:, 0] - losses[:, 1]
        mean, error = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(num_seeds)
        below, above = (mean - answers["low"]) / error, (answers["high"] - mean) / error
        if not all(np.allclose(one, one[0], rtol=1e-6, atol=0) for one in (below, above)):
            continue  # of another form: how often it misses is counted over many tables
        missed = float(stats.t.sf([below[0], above[0]], num_seeds - 1).sum())
        if missed > (1 + ROUGH) * (1 - confidence):
            raise failure(
                expected=f"with one candidate, {num_seeds} seeds and confidence={confidence:.4g} the true improvement "
                f"outside its interval in at most {100 * (1 - confidence):.3g} % of the tables",
                got=f"{100 * missed:.3g} %, by Student's t",
                likely=_why_narrow(losses, answers, confidence)
                or "an interval too narrow for so many seeds: its quantile, its degrees of freedom or its spread",
                look=LOOK_QUANTILE,
            )


def _require_few_errors(job: Job, setting: Setting) -> float:
    """Few false winners among equals, and intervals that hold the truth; returns the share of false winners."""
    error, num, wrong, missed = 1 - setting.confidence, 0, 0, 0
    for size, z in ((setting.number, 1.0), (MORE_TABLES, float(stats.norm.isf(FALSE_ALARM)))):
        means = setting.merit * job.rng.normal(size=(size - num, setting.configs))
        losses, noise = tables(job.rng, means, setting.seeds, setting.size)
        break_rows(job.rng, losses, setting.num_broken)
        # First what has one candidate: nothing of it may be kept for what has more.
        _decide(job, tables(job.rng, np.zeros((2, 2)), setting.seeds)[0], setting.confidence)
        answers = _decide(job, losses, setting.confidence)
        truth = noise * (means[:, 0] - means[np.arange(len(means)), answers["candidate"].astype(int)])
        wrong += int(((answers["winner"] != 0) & (truth <= 0)).sum())
        missed += int(((truth < answers["low"]) | (truth > answers["high"])).sum())
        num, allowed = size, int(size * error + z * np.sqrt(size * error * (1 - error)))
        if missed <= allowed:
            return round(wrong / num, 3)
    share = f"{100 * error:.3g} % of the tables ({allowed} of {num}, with what chance adds)"
    rows = f"{setting.configs} {'' if setting.merit else 'equal '}configurations, {setting.seeds} seeds"
    if setting.num_broken:
        rows += f", {setting.num_broken} rows with NaN"
    what = "a false winner" if wrong > allowed else "the true improvement outside its interval"
    raise failure(
        expected=f"with {rows} and confidence={setting.confidence:.3g} {what} in at most {share}",
        got=f"{wrong if wrong > allowed else missed} of {num}",
        likely=_why_narrow(losses, answers, setting.confidence) or setting.likely,
        look=setting.look,
    )


def _why_narrow(losses: np.ndarray, answers: dict[str, np.ndarray], confidence: float) -> str:
    own = (answers["high"] - answers["low"]) / 2
    return name_the_mistake(
        _NARROW,
        twin=lambda mistake: half_widths(losses, confidence, mistake),
        is_same=lambda half: bool(np.allclose(own, half, rtol=1e-4, atol=0)),
    )


def _require_true_winners(job: Job) -> None:
    """A lead of 4 times the noise shows at 8 seeds, though the seeds differ more among themselves."""
    num_tables, num_configs = 200, int(job.rng.integers(4, 9))
    means = np.zeros((num_tables, num_configs))
    best = job.rng.integers(1, num_configs, size=num_tables)
    means[np.arange(num_tables), best] = -4.0
    losses, _ = tables(job.rng, means, 8, (-11, -9))
    answers = _decide(job, losses)
    found = float(np.mean(answers["winner"] == best))
    job.counts["true_winners_found"] = round(found, 3)
    wide = float(
        np.median((answers["high"] - answers["low"]) / half_widths(losses, 0.95, "pairs not used") / 2)
    )
    job.require(
        found >= 0.8,
        expected="with 8 seeds, a lead of 4 times the noise found in at least 80 % of the tables",
        got=f"{found:.0%}",
        likely="the pairs are not used: a seed that is hard is hard for all rows and cancels in differences only"
        if 0.5 < wide < 2
        else "intervals that are far too wide, such as that of single values, not of their mean",
        look="subtract column by column first; the error of a mean falls with the square root of the number of seeds",
    )
