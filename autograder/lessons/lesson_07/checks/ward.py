"""The check of exercise 7.4: four runs, their illnesses named and cured."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

from autograder.common import Speed
from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import (
    edited,
    name_the_mistake,
    watched,
)
from autograder.lessons.lesson_07.checks.sick_mistakes import MISTAKES
from autograder.lessons.lesson_07.checks.ward_results import are_same, require_same
from autograder.lessons.lesson_07.checks.ward_storage import store_cases, store_segment, ward_runs

ILLNESSES = {"A": "input-bound", "B": "sync-bound", "C": "tiny batch", "D": "recomputing"}
NUM_LEANER = 2
"""Cases of a run in which there is something to save."""
LOOK = {
    "A": "how many samples are on their way at the same moment, and what happens during a step?",
    "B": "what is read at a step whose reading nobody keeps?",
    "C": "how many rows go through the model at once, and how many could?",
    "D": "which of the numbers of the second epoch are other than those of the first?",
}
ONE_EPOCH = 1.6
"""Times the operations of an epoch: the head in all of them, and padding where batches go through the body together."""
_TREATED = {
    "A": "the waits still stand one after the other",
    "B": "the weights are still read at every step, also where no entry is made",
    "C": "each row still goes through the model alone",
    "D": "the frozen body still runs in every epoch",
}


def check_ward(job: Job) -> None:
    """7.4: the right names; equal results with fewer reads, forwards and FLOPs; each run 1.5× as fast."""
    job.serves = True
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
            prepare=partial(store_segment, job, run),
            # Loader processes may compute too; the waits are what is to be hidden.
            max_cores=4.0 if run == "A" else 1.2,
            compare=lambda a, b, run=run: require_same(job, run, b, a),  # type: ignore[misc]
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
        answers, all_sick = threads.map(lambda worker: ward_runs(job, worker, run, cases), workers)
    for worker, its_answers in zip(workers, (answers, all_sick), strict=True):
        for answer, counts in zip(its_answers, worker.counts(len(cases)), strict=True):
            answer["counts"] = {
                "syncs": counts.num_syncs,
                "forwards": counts.num_forwards,
                "flops": counts.total_flops,
            }
            answer["unwatched"] = counts.num_unwatched
    for number, (answer, sick) in enumerate(zip(answers, all_sick, strict=True)):
        require_same(job, run, answer, sick, partial(_why, job, run, cases, answers, all_sick, number))
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
    case = _cases(job, run)[0]
    store_cases(job, job.learner(), run, [case])
    error = job.learner().call("unreadable", run=run, case=case)
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
        return ward_runs(job, job.twin(source), run, cases)

    def is_same_in_all(wrong: list[dict[str, Any]]) -> bool:
        return all(map(are_same, answers, wrong))

    def is_same_in_one(wrong: list[dict[str, Any]]) -> bool:
        return any(
            are_same(answer, one) and not are_same(answer, sick)
            for answer, one, sick in zip(answers, wrong, all_sick, strict=True)
        )

    texts = {name: text for name, (text, _) in edits.items()}
    likely = name_the_mistake(texts, twin=twin, is_same=is_same_in_all) or name_the_mistake(
        texts, twin=twin, is_same=is_same_in_one
    )
    if not likely and number:
        (alone,) = ward_runs(job, job.worker("alone", job.source), run, cases, only=number)
        (sick,) = ward_runs(job, job.worker("baseline", job.baseline), run, cases, only=number)
        if are_same(alone, sick):
            likely = "what belongs to the call before is kept: a model, features, samples or a log"
    return likely


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
