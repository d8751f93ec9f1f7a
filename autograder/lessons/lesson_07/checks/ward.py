"""The check of exercise 7.4: four runs, their illnesses named and cured."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.common import Speed
from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import require_equal, watched

ILLNESSES = {"A": "input-bound", "B": "sync-bound", "C": "tiny batch", "D": "recomputing"}
LOOK = {
    "A": "how many samples are on their way at the same moment, and what happens during a step?",
    "B": "what is read at a step whose reading nobody keeps?",
    "C": "how many rows go through the model at once, and how many could?",
    "D": "which of the numbers of the second epoch are other than those of the first?",
}
_TREATED = {
    "A": "the waits still stand one after the other",
    "B": "the weights are still read at every step, also where no entry is made",
    "C": "each row still goes through the model alone",
    "D": "the frozen body still runs in every epoch",
}
_SIZES = {"A": 5, "B": 3, "C": 6, "D": 3}  # of the run that is counted, in steps of a segment


def check_ward(job: Job) -> None:
    """7.4: the right names; equal results with fewer reads, forwards and FLOPs; each run 1.5× as fast."""
    _require_names(job)
    for run in ILLNESSES:
        _require_equal_and_leaner(job, run)
    speeds: dict[str, Speed] = {}
    for run in ILLNESSES:
        measure_speedup(
            job,
            part=run,
            function=f"segment_{run.lower()}",
            # Loader processes may compute too; the waits are what is to be hidden.
            max_cores=4.0 if run == "A" else 1.2,
            compare=lambda a, b, run=run: _require_same(job, run, b, a),  # type: ignore[misc]
            likely=f"run {run}: {_TREATED[run]}, or the cure costs as much as it saves",
            look=LOOK[run],
        )
        if job.speed is not None:
            speeds[run] = job.speed
            job.counts[f"speedup_{run}"] = round(job.speed.estimate, 2)
    # The card shows one measurement: that of the run that gained least.
    job.speed = min(speeds.values(), key=lambda speed: speed.estimate, default=None)


def _require_names(job: Job) -> None:
    runs = sorted(ILLNESSES, key=lambda _: job.rng.random())
    named = dict(zip(runs, job.learner().call("named_illnesses", runs=runs), strict=True))
    known = set(ILLNESSES.values())
    for run, illness in ILLNESSES.items():
        job.require(
            named[run] in known,
            expected=f"one of {', '.join(sorted(known))} for run {run}",
            got=repr(named[run])[:60],
            likely="another word, or another spelling",
            look="the docstring lists the four names",
        )
        job.require(
            named[run] == illness,
            expected=f"the illness of run {run}",
            got=f"{named[run]!r}, which run {run} does not have",
            likely="utilisation taken for efficiency: B, C and D are all busy, with different kinds of useless work"
            if run != "A"
            else "a busy share read the wrong way round",
            look=f"run {run} in the table of signs, column by column. {LOOK[run].capitalize()}",
        )


def _require_equal_and_leaner(job: Job, run: str) -> None:
    arguments: dict[str, Any] = {"run": run, "seed": job.seed(), "size": _SIZES[run]}
    answer = job.learner().call("ward_once", **arguments)
    sick = job.worker("baseline", job.baseline).call("ward_once", **arguments)
    _require_same(job, run, answer, sick)
    if run == "A":
        return
    counted, limit = {
        "B": ("syncs", 0.5 * sick["counts"]["syncs"]),
        "C": ("forwards", 0.5 * sick["counts"]["forwards"]),
        "D": ("flops", 0.5 * sick["counts"]["flops"]),
    }[run]
    words = {
        "syncs": "values read by Python",
        "forwards": "forward passes",
        "flops": "floating-point operations",
    }
    watched(job, answer, "they are not counted", of=f"run {run}")
    job.counts[f"{counted}_{run}"] = answer["counts"][counted]
    job.require(
        answer["counts"][counted] <= limit,
        expected=f"run {run} with less than half of the {sick['counts'][counted]:,} {words[counted]}",
        got=f"{answer['counts'][counted]:,}",
        likely=_TREATED[run],
        look=LOOK[run],
    )


def _require_same(job: Job, run: str, answer: dict[str, Any], sick: dict[str, Any]) -> None:
    """The cure changes the time alone: equal losses, equal weights, equal log."""
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
            likely="read at another step, such as after the epoch: weights change with each update",
            look="read them inside the loop, at the steps that keep them",
        )
    mistakes = {
        "A": "samples lost, doubled or out of order; fetch ahead, but hand out in order",
        "B": "another update than before: only the readings may change",
        "C": "the sum of the rows' losses where their mean is asked for, or fewer updates than before: "
        "one update per `rows_per_update` samples, with the mean over them",
        "D": "features of another batch, of training mode, or kept from an earlier call",
    }
    for what in ("losses", "logits"):
        require_equal(
            job,
            answer[what].astype(np.float32),
            sick[what].astype(np.float32),
            dtype="float32",
            what=f"{what} of run {run}",
            likely=mistakes[run],
            look="run the sick and the cured one side by side on two batches, from equal weights",
        )
