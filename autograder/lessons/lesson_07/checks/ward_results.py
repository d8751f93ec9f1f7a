"""What 7.4's cure gives, beside what the sick run gave: losses, weights, log and momenta are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import (
    are_equal,
    relative_difference,
    require_equal,
)

WHAT = {"moved": "changes of the weights", "momenta": "momenta in the optimizer"}
ROUNDING = 1e-2
"""Of small differences of large numbers: another order of rows makes up to a thirtieth of it."""


def _is_coarse(losses: np.ndarray) -> bool:
    """Whether all are numbers of five digits behind the point, or of half precision."""
    is_half = losses == losses.astype(np.float16)
    return bool(losses.size) and bool(np.all(is_half | (losses == np.round(losses, 5))))


def are_same(answer: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return not answer["malformed"] and all(
        are_equal(answer[what].astype(np.float32), wanted[what].astype(np.float32), "float32")
        for what in ("losses", "logits")
    )


def require_same(
    job: Job, run: str, answer: dict[str, Any], sick: dict[str, Any], why: Callable[[], str] = lambda: ""
) -> None:
    """The cure changes the time alone: equal losses, equal weights, equal log."""
    job.require(
        not answer["malformed"],
        expected=f"from run {run} a list of losses"
        if run != "B"
        else "entries with step, loss and histograms",
        got=answer["malformed"],
        likely="the histograms of some parameters are left out: the log has those of all, also of what does not learn"
        if "no histogram of" in answer["malformed"]
        else "nothing is returned, or another kind of result than the sick run's",
        look="arguments, results and errors are those of `SickRuns`",
    )
    job.require(
        not _is_coarse(answer["losses"]) or _is_coarse(sick["losses"]),
        expected=f"the losses of run {run} as they are",
        got=f"{answer['losses'].tolist()[:3]}",
        likely="losses that are rounded, or kept in half precision: the sick run's have all their digits",
        look="the numbers that are returned, beside those of the sick run",
    )
    pairs = {
        what: (answer[what].astype(np.float32), sick[what].astype(np.float32))
        for what in ("losses", "logits")
    }
    is_same = all(are_equal(got, wanted, "float32") for got, wanted in pairs.values())
    likely = "" if is_same else why()
    if "momenta" in answer:
        job.require(
            answer["momenta"].shape == sick["momenta"].shape,
            expected=f"the state of the optimizer that run {run} was given",
            got="another, or none",
            likely="another optimizer updates than the one that was given: its rates and its state are lost",
            look="`optimizer.step()`, and no optimizer of your own",
        )
    if run == "B":
        job.require(
            np.array_equal(answer["steps"], sick["steps"]),
            expected=f"entries for the steps {sick['steps'].tolist()[:6]}",
            got=f"entries for {answer['steps'].tolist()[:6]}",
            likely="entries are missing, doubled or made at other steps",
            look="the first step is number 1; an entry where `log_every_steps` divides the number",
        )
        job.require(
            answer["histograms"].shape == sick["histograms"].shape
            # A weight at the limit of a bin may fall to either side: rounding.
            and int(np.abs(answer["histograms"] - sick["histograms"]).sum())
            <= 1e-5 * sick["histograms"].sum() + 4,
            expected="the histograms of the weights right after the step of their entry",
            got="other histograms",
            likely=likely
            or "read at another step, such as before the update or after the epoch, or counted otherwise: "
            "absolute values, 32 bins from 0 to 1, which belongs to the last",
            look="read them inside the loop, right after the steps that keep them",
        )
    mistakes = {
        "A": "samples lost, doubled or out of order; fetch ahead, but hand out in order",
        "B": "another update than before: only the readings may change",
        "C": "the sum of the rows' losses where their mean is asked for, or fewer updates than before: "
        "one update per `rows_per_update` samples, with the mean over them",
        "D": "features of another batch, of training mode, or kept from an earlier call",
    }
    for what, (got, wanted) in pairs.items():
        require_equal(
            job,
            got,
            wanted,
            dtype="float32",
            what=f"{what} of run {run}",
            likely=likely or mistakes[run],
            look="run the sick and the cured one side by side on two batches, from equal weights",
        )
    for what, words in WHAT.items():
        away = relative_difference(answer[what], sick[what]) if what in answer else 0.0
        job.require(
            away <= ROUNDING,  # False for NaN
            expected=f"the same {words} as in the sick run {run}",
            got=f"others, by up to {away:.3g}",
            likely=likely or mistakes[run],
            look="run the sick and the cured one side by side on two batches, from equal weights",
        )
