"""The check of exercise 7.4: four runs, their illnesses named and cured."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np

from autograder.common import Speed
from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import (
    are_equal,
    edited,
    name_the_mistake,
    relative_difference,
    require_equal,
    watched,
)
from autograder.lessons.lesson_07.checks.sick_mistakes import MISTAKES

ILLNESSES = {"A": "input-bound", "B": "sync-bound", "C": "tiny batch", "D": "recomputing"}
NUM_LEANER = 2
"""Cases of a run in which there is something to save."""
LOOK = {
    "A": "how many samples are on their way at the same moment, and what happens during a step?",
    "B": "what is read at a step whose reading nobody keeps?",
    "C": "how many rows go through the model at once, and how many could?",
    "D": "which of the numbers of the second epoch are other than those of the first?",
}
WHAT = {"moved": "changes of the weights", "momenta": "momenta in the optimizer"}
ONE_EPOCH = 1.6
"""Times the operations of an epoch: the head in all of them, and padding where batches go through the body together."""
ROUNDING = 1e-2
"""Of small differences of large numbers: another order of rows makes up to a thirtieth of it."""
_TREATED = {
    "A": "the waits still stand one after the other",
    "B": "the weights are still read at every step, also where no entry is made",
    "C": "each row still goes through the model alone",
    "D": "the frozen body still runs in every epoch",
}


def check_ward(job: Job) -> None:
    """7.4: the right names; equal results with fewer reads, forwards and FLOPs; each run 1.5× as fast."""
    _require_names(job)
    for run in ILLNESSES:
        _require_equal_and_leaner(job, run)
    for run in "AC":
        _require_errors(job, run)
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


def _cases(job: Job, run: str) -> list[dict[str, Any]]:
    """Calls of one ward: other sizes, and a short last batch, or an exact fit; many rows at once; then one at a time,
    one epoch, an entry at every step or none, and fewer samples than there are rows in a step."""
    rng, cases = job.rng, []
    for number in range(NUM_LEANER):
        argument = int(rng.integers(3, 9)) if run != "D" else int(rng.integers(3, 6))
        num_steps = int(rng.integers(2, 4)) if run == "D" else int(rng.integers(3, 6))
        if (
            run == "B"
        ):  # few entries, which may read some values for each parameter; and steps after the last one
            argument = int(rng.integers(7, 10))
            num_steps = argument + (argument, int(rng.integers(1, argument)))[number]
        if run in "AC" and number == 1:  # no multiple of a chunk
            num_steps, argument = 2, int(rng.choice([19, 27, 37]))
        tail = int(rng.integers(1, argument)) if run in "AC" and (number == 0 or run == "C") else 0
        cases.append({"seed": job.seed(), "num_steps": num_steps, "argument": argument, "tail": tail})
    cases.append({"seed": job.seed(), "num_steps": 3, "argument": 1, "tail": 0})
    if run == "B":
        cases.append({"seed": job.seed(), "num_steps": 6, "argument": 7, "tail": 0})
    elif run in "AC":
        cases.append({"seed": job.seed(), "num_steps": 0, "argument": 9, "tail": int(rng.integers(2, 8))})
    else:  # as in the case before, batches that are made when they are asked for; here several times
        cases.append({"seed": job.seed(), "num_steps": 4, "argument": 3, "tail": 0})
    return cases


def _require_equal_and_leaner(job: Job, run: str) -> None:
    cases = _cases(job, run)
    workers = (job.learner(), job.worker("baseline", job.baseline))
    with ThreadPoolExecutor(len(workers)) as threads:  # nothing is timed
        answers, all_sick = threads.map(lambda w: w.call("ward_runs", run=run, cases=cases), workers)
    for number, (answer, sick) in enumerate(zip(answers, all_sick, strict=True)):
        _require_same(job, run, answer, sick, partial(_why, job, run, cases, answers, all_sick, number))
        _require_no_trace(job, run, answer)
        if number < NUM_LEANER:
            _require_leaner(job, run, answer, sick, cases[number]["argument"])
    if run == "B":
        _require_quiet(job, answers[-1], cases[-1]["num_steps"])


def _require_quiet(job: Job, answer: dict[str, Any], num_steps: int) -> None:
    """Of a run without an entry. What is kept on the device for later may be read at the end, once."""
    job.require(
        answer["counts"]["syncs"] < num_steps / 2,
        expected=f"next to no values read by Python in {num_steps} steps of run B without an entry",
        got=f"{answer['counts']['syncs']}",
        likely="a value is still read at every step, such as the loss by `.item()`, also where no entry is made",
        look=LOOK["B"],
    )


def _require_no_trace(job: Job, run: str, answer: dict[str, Any]) -> None:
    job.require(
        answer["is_unchanged"],
        expected=f"the samples or batches of run {run} as they were",
        got="changed ones",
        likely="what the run is given is changed: sorted, emptied, or kept features written into it",
        look="a list or dict of your own for what you keep",
    )
    job.require(
        not answer["switched"],
        expected=f"what is set for the whole process as it was before run {run}",
        got=f"another: {', '.join(answer['switched'])}",
        likely="a switch of the whole process is not put back",
        look="use a `with` block",
    )

    job.require(
        not answer["is_seeded"],
        expected=f"random generators as run {run} found them: the sick run draws nothing",
        got="others",
        likely="a seed is set for the whole process: whatever is drawn later, such as dropout, is another than before",
        look="no `manual_seed` and no `np.random.seed` inside a run",
    )
    job.require(
        answer["is_as_frozen"],
        expected=f"what asks for a gradient as it was before run {run}",
        got="other parameters that do",
        likely="`requires_grad` is switched and not put back: the caller's model is frozen otherwise than it was",
        look="the caller has frozen what is not to learn",
    )
    job.require(
        not answer["fetched_again"],
        expected=f"each sample of run {run} fetched once",
        got=f"{answer['fetched_again']} fetched again",
        likely="samples are fetched more than once: each fetch takes its time, and somewhere it is paid for",
        look="keep what has arrived until its batch is made",
    )


def _require_errors(job: Job, run: str) -> None:
    error = job.learner().call("unreadable", run=run, case=_cases(job, run)[0])
    job.require(
        error == "_Unreadable",
        expected=f"the error of a sample that cannot be read from run {run}, as from the sick run",
        got=error or "a result, as if nothing had happened",
        likely="the error of a fetch is swallowed: the run trains on without the sample, and nobody knows",
        look="what does `samples[index]` raise, and who hears of it?",
    )


def _why(
    job: Job,
    run: str,
    cases: list[dict[str, Any]],
    answers: list[dict[str, Any]],
    all_sick: list[dict[str, Any]],
    number: int,
) -> str:
    """The mistake with which the sick run comes to the same numbers in all cases; or in one where they are not its own,
    for in some of them rounding hides a mistake, as where large gradients are not clipped.
    """
    edits = MISTAKES[run]

    @cache
    def twin(mistake: str) -> list[dict[str, Any]]:
        source = edited(job.baseline, *edits[mistake][1])
        found: list[dict[str, Any]] = job.twin(source).call("ward_runs", run=run, cases=cases)
        return found

    def is_same_in_all(wrong: list[dict[str, Any]]) -> bool:
        return all(map(_are_same, answers, wrong))

    def is_same_in_one(wrong: list[dict[str, Any]]) -> bool:
        return any(
            _are_same(answer, one) and not _are_same(answer, sick)
            for answer, one, sick in zip(answers, wrong, all_sick, strict=True)
        )

    texts = {name: text for name, (text, _) in edits.items()}
    likely = name_the_mistake(texts, twin=twin, is_same=is_same_in_all) or name_the_mistake(
        texts, twin=twin, is_same=is_same_in_one
    )
    if not likely and number:
        one: dict[str, Any] = {"run": run, "cases": cases, "only": number}
        (alone,) = job.worker("alone", job.source).call("ward_runs", **one)
        (sick,) = job.worker("baseline", job.baseline).call("ward_runs", **one)
        if _are_same(alone, sick):
            likely = "what belongs to the call before is kept: a model, features, samples or a log"
    return likely


def _is_coarse(losses: np.ndarray) -> bool:
    """Whether all are numbers of five digits behind the point, or of half precision."""
    is_half = losses == losses.astype(np.float16)
    return bool(losses.size) and bool(np.all(is_half | (losses == np.round(losses, 5))))


def _are_same(answer: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return not answer["malformed"] and all(
        are_equal(answer[what].astype(np.float32), wanted[what].astype(np.float32), "float32")
        for what in ("losses", "logits")
    )


def _require_leaner(job: Job, run: str, answer: dict[str, Any], sick: dict[str, Any], argument: int) -> None:
    if run == "A":
        return
    counted, limit = {
        "B": ("syncs", 0.5 * sick["counts"]["syncs"]),
        "C": ("forwards", 0.5 * sick["counts"]["forwards"]),
        "D": ("flops", ONE_EPOCH / argument * sick["counts"]["flops"]),
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
        expected=f"run {run} with at most {limit:,.0f} of the {sick['counts'][counted]:,} {words[counted]}",
        got=f"{answer['counts'][counted]:,}",
        likely=_TREATED[run],
        look=LOOK[run],
    )


def _require_same(
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
