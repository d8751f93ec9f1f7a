"""The check of 8.5: the error rates of a decision, and its verdicts near the edges."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_08.checks.edges import require_verdicts

# These stages name big mistakes; the last one, in `edges`, asks for the exact verdict.
# A right decision claims a difference that is not there in 2.5 % of the comparisons; without any interval half are.
NUM_NULL, MAX_FALSE = 300, 0.15
# It finds a difference of 1.4 standard deviations over 10 seeds in 96 % of the comparisons; of 150, fewer than 65 % in
# fewer than one check in 100,000.
NUM_REAL, MIN_FOUND = 150, 0.65
NARROW = 0.3  # of the claims: one standard error instead of two makes 17 % false, no interval half of them
_WRONG_SIGN = "the difference has the wrong sign: higher scores are better"
_TOO_OFTEN = {
    "better": "comparing single seeds, or means, without asking what luck alone does",
    "worse": "what is not better is called worse: 'undecided' says that nobody knows",
}
ANSWERS = ("better", "no worse", "worse", "undecided")


def check_did_it_help(job: Job) -> None:
    """8.5: seldom wrong where nothing changed, mostly right where something did; exact at the edges."""
    _require_caution(job)
    table = real_seeds()
    for where, null, helped in (
        ("simulated", _simulated(job, NUM_NULL, 0.0), _simulated(job, NUM_REAL, 1.5)),
        (
            "real",
            _real(job, table["base"], table["same"], NUM_NULL, is_null=True),
            _real(job, table["base"], table["better"], NUM_REAL),
        ),
    ):
        scale = float(np.std(null[:, 1] - null[:, 0]))
        answers = _decisions(job, null, margin=0.1 * scale)
        for claim, likely in _TOO_OFTEN.items():
            place = f"{where} seeds, where the change does nothing"
            _require_few(job, answers, claim, place, likely=likely)
        found = _decisions(job, helped, margin=0.1 * scale)
        _require_many(
            job,
            found,
            ("better",),
            f"{where} seeds, where the change does help",
            likely=_WRONG_SIGN
            if found.count("worse") > len(found) / 2
            else "the pairs are not used: luck that both sides share hides the difference. Or the spread of single "
            "seeds is taken where that of their mean belongs",
        )
    _require_margin(job)
    require_verdicts(job)


def _decisions(job: Job, pairs: np.ndarray, margin: float, points: float = 0.0) -> list[str]:
    """What it says of them in points of another size: no decision hangs on that."""
    points = points or float(job.rng.choice([0.02, 1.0, 30.0]))
    found: list[str] = job.learner().call(
        "decide_all", pairs=points * pairs, margin=points * margin, seconds=120.0
    )
    unknown = sorted({*found} - {*ANSWERS})
    job.require(
        not unknown,
        expected="one of " + ", ".join(map(repr, ANSWERS)),
        got=repr(unknown[0])[:60] if unknown else "",
        likely="another word, or another type",
        look="the docstring has the four",
    )
    return found


def _require_caution(job: Job) -> None:
    for num_seeds in (0, 1, 2, 3, 4):
        some = _simulated(job, 20, 9.0, num_seeds)
        some[::2, 1] = some[::2, 0] + 8.0  # differences that are all equal are no more than so few
        some[::2] = np.round(some[::2])  # in whole numbers, which no difference rounds
        found = _decisions(job, some, margin=0.5)
        decided = [answer for answer in found if answer != "undecided"]
        job.require(
            not decided,
            expected=f"'undecided' with {num_seeds} of five pairs, however large the difference",
            got=repr(decided[0]) if decided else "",
            likely="comparing single seeds: so few say nothing about the next one",
            look="the docstring asks for five pairs at least",
        )
    for num_seeds in (5, 6, int(job.rng.integers(7, 9)), 30):
        found = _decisions(job, _simulated(job, 20, 9.0, num_seeds), margin=0.5)
        _require_many(
            job,
            found,
            ("better",),
            f"{num_seeds} simulated seeds each, where the change helps a lot",
            likely=_WRONG_SIGN
            if found.count("worse") > len(found) / 2
            else "more pairs are asked for than five"
            if num_seeds < 30
            else "the pairs are not used, or the spread of single seeds is taken where that of their mean belongs",
        )


def _require_margin(job: Job) -> None:
    """Non-inferiority. At a narrow margin harm is seldom proven, and yet must not be denied."""
    narrow, margin = 0.4, 1.5  # standard deviations of a difference
    at_margin = _decisions(job, _simulated(job, NUM_NULL, -narrow), narrow)
    claimed = ["no worse" if answer in ("no worse", "better") else answer for answer in at_margin]
    _require_few(
        job,
        claimed,
        "no worse",
        "simulated seeds, where the candidate is worse by just the margin",
        likely="no proof that it is worse is taken for proof that it is not, or only the mean is held "
        "against the margin",
    )
    _require_many(
        job,
        _decisions(job, _simulated(job, NUM_REAL, 0.0), margin),
        ("no worse", "better"),
        "simulated seeds, where nothing changed and the margin is wide",
        likely="the margin is not used: 'no worse' asks whether the interval ends above minus the margin",
    )
    _require_many(
        job,
        _decisions(job, _simulated(job, NUM_REAL, -2 * margin), 4 * margin),
        ("no worse",),
        "simulated seeds, where the candidate is worse by half the margin",
        likely="'worse' is asked before 'no worse'. Where both hold, the first of the docstring counts: what was to be "
        "given was not used up",
        look="'better', then 'no worse', then 'worse'",
    )
    _require_many(
        job,
        _decisions(job, _simulated(job, NUM_REAL, -2 * margin), margin / 3, points=0.02),
        ("worse",),
        "simulated seeds, where the candidate is clearly worse",
        likely="only one direction is looked at, or the difference has the wrong sign: higher scores are better",
    )


def _simulated(job: Job, number: int, effect: float, num_seeds: int | None = None) -> np.ndarray:
    """Float64 [number, 2, n]: a seed moves both scores of its pair by far more than a run moves one."""
    rng = job.rng
    shape = (number, num_seeds if num_seeds is not None else int(rng.integers(9, 12) if effect <= 0 else 10))
    luck = 70 + 4.0 * rng.standard_normal(shape)  # of the seed: split, order, first weights
    own = rng.standard_normal((2, *shape)) / math.sqrt(2)  # so that the difference has a deviation of 1
    return np.stack([luck + own[0], luck + own[1] + effect], axis=1)


def _real(
    job: Job, baseline: np.ndarray, candidate: np.ndarray, number: int, *, is_null: bool = False
) -> np.ndarray:
    """Ten seeds at a time out of the table; a null has its sides changed at random, so that no difference is left."""
    chosen = np.argsort(job.rng.random((number, len(baseline))), axis=1)[:, :10]
    pairs = np.stack([baseline[chosen], candidate[chosen]], axis=1)
    if is_null:
        swapped = job.rng.random((number, 1, 10)) < 0.5
        pairs = np.where(swapped, pairs[:, ::-1], pairs)
    return pairs


@cache
def real_seeds() -> dict[str, np.ndarray]:
    """Validation accuracy in points of real runs, one per seed; `measure_seeds.py` made the file and says how."""
    path = Path(__file__).parents[1] / "real_seeds.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    return {name: np.array(values) for name, values in table.items()}


def _require_few(job: Job, answers: list[str], claim: str, where: str, *, likely: str) -> None:
    share = answers.count(claim) / len(answers)
    job.counts[f"false '{claim}'"] = max(round(share, 3), job.counts.get(f"false '{claim}'", 0.0))
    job.require(
        share <= MAX_FALSE,
        expected=f"{claim!r} in at most about 2.5 % of {len(answers)} comparisons on {where} "
        f"(up to {MAX_FALSE:.0%} is taken)",
        got=f"{share:.0%}",
        likely=likely
        if share > NARROW or claim == "no worse"
        else "too narrow an interval: one standard error instead of two, or a lower confidence than 95 %",
        look="how far do two runs differ when nothing changed? A 95 % interval of the mean difference knows",
    )


def _require_many(
    job: Job, answers: list[str], claims: tuple[str, ...], where: str, *, likely: str, look: str = ""
) -> None:
    share = sum(answer in claims for answer in answers) / len(answers)
    job.require(
        share >= MIN_FOUND,
        expected=f"{' or '.join(map(repr, claims))} in nearly all of {len(answers)} comparisons on {where}",
        got=f"{share:.0%}",
        likely=likely,
        look=look
        or "take the difference seed by seed first; the standard error is that of the mean of these differences",
    )
