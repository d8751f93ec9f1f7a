"""What 10.2 asks of the trainings under the clock: all texts, as often as without it, and learnt as well."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.engine.timing import ALPHA_PASS, successes_needed
from autograder.engine.told import ToldOfCall
from autograder.lessons.lesson_10.checks.told_training import learnt_in

LEARNT_NOTHING = 0.5
MIN_BLOCKS = next(n for n in itertools.count(1) if successes_needed(n, ALPHA_PASS) <= n)  # two segments each
# Standard errors that are taken for luck: right solutions lie 2 and more above the line, idle ones 5 and more below.
NOISE = 2.0
LESS = "under the clock less is trained than before"
LOOK = "does the work depend on how often the function was called, or on the number of texts?"
# Of the texts that were to be trained; and those that were not.
PARTS: dict[str, Callable[[int], slice]] = {
    "the first half of its texts": lambda n: slice(0, n // 2),
    "the second half of its texts": lambda n: slice(n // 2, n),
    "every other of its texts": lambda n: slice(0, n, 2),
    "every other of its texts, from the second on": lambda n: slice(1, n, 2),
    "all of its texts and others": lambda n: slice(None),
}
Gains = dict[str, tuple[float, float]]


def require_timed_rows(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], *, are_counted: bool
) -> None:
    """Fail where fewer rows were learnt than the passes have, and they could be counted where nobody asked the clock.

    Args:
        baseline: says how many texts and epochs there were.
    """
    if are_counted:
        num_epochs = baseline["num_epochs"]
        told = learner.get("told", ToldOfCall())
        num_learnt = learnt_in(told, baseline["num_labels"], baseline["num_different"]).num_rows
        job.require(
            num_learnt > num_epochs - 1e-6,
            expected=f"under the clock too, {num_epochs} passes over all of the {baseline['num_texts']} texts",
            got=f"{num_learnt:.2f}, as rows of logits are counted that a gradient comes back to",
            likely=LESS,
            look=LOOK,
        )


def gains_of(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> Gains:
    """Shares of right predictions in a segment, the learner's and the baseline's, above those of a guess; by part."""
    segment = {name: baseline[name] for name in ("seed", "num_steps")}
    right = np.array(job.worker("baseline", job.baseline).call("answers", **segment))
    guess = 1 / len(set(right.tolist()))
    job.require(
        len(learner["predictions"]) == len(right),
        expected=f"one label for each of {len(right)} texts, under the clock too",
        got=f"{len(learner['predictions'])}",
        likely="some texts are left out, or answered once where they stand twice",
        look="`predict` gives as many labels as it gets texts",
    )
    own, theirs = (np.array(side["predictions"]) == right for side in (learner, baseline))
    num_texts = baseline["num_texts"]
    return {
        name: (float(np.mean(own[part(num_texts)])) - guess, float(np.mean(theirs[part(num_texts)])) - guess)
        for name, part in PARTS.items()
    }


def require_learnt(job: Job, gains: list[Gains]) -> None:
    """A training of a few texts is luck, which averages out over the segments of a verdict. Where the clock was not
    asked there are too few of them, and nothing was gained by training less."""
    if len(gains) < 2 * MIN_BLOCKS:
        return
    for name in PARTS:
        shares = [of_segment[name] for of_segment in gains]
        own, theirs = np.mean(shares, axis=0)
        gaps = np.array([mine - LEARNT_NOTHING * other for mine, other in shares])
        job.require(
            gaps.mean() + NOISE * gaps.std(ddof=1) / math.sqrt(len(gaps)) >= 0,
            expected=f"under the clock too, predictions like the baseline's of {name} ({theirs:.0%} better than a "
            "guess)",
            got=f"{own:.0%} better than a guess",
            likely=LESS,
            look=LOOK,
        )
