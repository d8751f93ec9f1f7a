"""The check of exercise 7.1: where the time of a step goes, read from traces with known answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake, require_keys
from autograder.lessons.lesson_07.checks.made_traces import (
    STAGES,
    Breakdown,
    Event,
    Kind,
    kinds,
    read,
    trace,
)

WARMUP = "averaging over the warm-up steps, which compile, allocate and fill caches"
GRAPH = "one launch may queue several kernels, such as a graph's: their times are added up"
SEVERAL = "a step may have several ranges of one name: they are added up"
COPIES = "copies in memory counted as kernels: `cat` is `gpu_memcpy` or `gpu_memset` there"
LIKELY = {
    "warm-up": WARMUP,
    "order of the list": "the steps in the order of the list: the earliest ones are the warm-up, by `ts`",
    "sorted as text": "a name sorted as text: `ProfilerStep#10` stands before `ProfilerStep#9` then",
    "sorted by number": "steps in the order of their numbers: a profiler that starts anew counts anew. The earliest by "
    "`ts` are the warm-up",
    "kept by name": "steps kept by their name: where a profiler starts anew, a number comes twice",
    "functions": "ranges whose `cat` is something else than `user_annotation`: a trace repeats names elsewhere",
    "anywhere in a name": "a range counted that has these words somewhere in its name: steps and stages begin so",
    "last steps": "the warm-up steps are the earliest ones; the last ones were dropped",
    "copies": "a range counted twice: a GPU's trace repeats each as `gpu_user_annotation`",
    "first range": SEVERAL,
    "last range": SEVERAL,
    "microseconds": "a time without its unit: traces are in microseconds, the answer is in seconds",
    "milliseconds": "a time without its unit: the answer is in seconds, not in milliseconds",
    "sums": "the sum over the steps, where their mean is asked for",
    "memory copies": COPIES,
    "memory filled": COPIES,
    "memory": COPIES,
    "timing without a sync": "timing CUDA without a sync: the host's range ends when the work is queued, not when it "
    "is done",
    "when it runs": "timing CUDA without a sync: a kernel counts for the stage that the host is in when it runs; "
    "it belongs to the stage that launched it",
    "launches by name": "launches found by their name: several calls queue a kernel, all `cuda_runtime`",
    "the last step that began": "a step that had ended: what is queued between two steps belongs to none",
    "the last stage that began": "a stage that had ended: what is queued after it, before the next begins, belongs to "
    "no stage, and so to `other`",
    "threads": "launches of other threads are left out: autograd queues the backward pass from a thread of its own",
    "last kernel": GRAPH,
    "first kernel": GRAPH,
    "steps that have it": "a mean over the steps that have the stage: it is over all steps that count",
    "at once": "kernels that run at once, on several streams: the device's time is the sum over them",
    "the same twice": "kernels that are of one length and taken for the same one: each counts",
    "launched as it begins": "a launch at the moment at which its stage begins lies inside that stage",
    "begins where another ends": "a stage that begins where the step before ends: it lies inside one step, and counts "
    "once",
    "ends before its step": "a stage may end with its step: it lies inside that step",
    "a longer name": "a range that is no step: its name begins `ProfilerStep`, and no `#` follows",
    "no other": "what is queued in a step but in no stage is left out",
}
AGAIN = 2
"""Warm-up steps more when a trace is read again."""
LOOK_HOST = "`cat`, `name`, `ts` and `dur` of the events"
LOOK_DEVICE = "`args['correlation']` joins a kernel with its launch, which lies inside a stage"


def check_step_breakdown(job: Job) -> None:
    """7.1: times of host and device on secret traces: of a CPU, of a GPU, with accumulation, out of order."""
    *drawn, without_steps = kinds(job.rng)
    traces = [trace(job.rng, kind) for kind in drawn]
    # The same events again, with other numbers: what was kept of the first reading shows.
    read_again = [i for i, kind in enumerate(drawn) if kind.num_steps > AGAIN]
    calls = [(i, drawn[i]) for i in range(len(drawn))] + [(i, _later(drawn[i])) for i in read_again]
    answers = job.learner().call(
        "breakdowns_of", traces=traces, calls=[[i, kind.num_warmup_steps] for i, kind in calls]
    )
    for number, ((i, kind), answer) in enumerate(zip(calls, answers, strict=True)):
        _require_breakdown(job, answer, traces[i], kind, is_first=not number)
    (answer,) = job.learner().call("breakdowns_of", traces=[[]], calls=[[0, 0]])
    _require_breakdown(job, answer, [], Kind(0, 0, has_gpu=False))
    events = trace(job.rng, without_steps)
    for kind in (
        without_steps,
        _later(without_steps),
    ):  # as many warm-up steps as there are; more than there are
        (answer,) = job.learner().call("breakdowns_of", traces=[events], calls=[[0, kind.num_warmup_steps]])
        _require_breakdown(job, answer, events, kind)
    job.counts["traces"] = len(traces)


def _later(kind: Kind) -> Kind:
    return replace(kind, num_warmup_steps=kind.num_warmup_steps + AGAIN, num_steps=kind.num_steps - AGAIN)


def _require_breakdown(
    job: Job, answer: dict[str, Any], events: list[Event], kind: Kind, *, is_first: bool = True
) -> None:
    _require_parts(job, answer)
    job.require(
        answer["is_own"],
        expected="a result of its own from each call",
        got="one that a later call changes",
        likely="what belongs to the call before is kept: the dicts that are returned are the same each time",
        look="make `host` and `device` within the function",
    )
    right = read(events, kind.num_warmup_steps)
    likely = _why(answer, events, kind, right)
    if not (is_first or likely or _is_right(answer, right)) and _is_right(_alone(job, events, kind), right):
        likely = "what belongs to the call before is kept: the list, or `num_warmup_steps`, is another one"
    if kind.num_steps <= 0:
        likely = likely or "no step counts, and what is asked for is a mean: 0.0, no NaN and no error"
    num_steps, wanted = answer["flat"]["num_steps"], right["flat"]["num_steps"]
    job.require(
        num_steps == wanted,
        expected=f"{wanted:g} steps: {kind.num_warmup_steps + kind.num_steps} in the trace, "
        f"{kind.num_warmup_steps} of them warm-up",
        got=f"{num_steps:g}",
        likely=likely
        or (
            WARMUP
            if wanted < num_steps <= kind.num_warmup_steps + kind.num_steps
            else "steps found by something else than the `ProfilerStep#` ranges, or ranges of one name taken for one: "
            "where a profiler starts anew, a number comes twice"
        ),
        look="drop the first `num_warmup_steps` steps in the order of time, then average",
    )
    _require_number(
        job,
        "step_time",
        answer["flat"]["step_time"],
        right["flat"]["step_time"],
        likely or "the mean length of the `ProfilerStep#` ranges that count, and nothing else",
    )
    generic = {
        "host": "ranges missing, or others among them, or divided by something else than the number of steps",
        "device": "kernels missing, such as those queued between two steps, or of other steps or stages, or divided by "
        "something else than the number of steps"
        if kind.has_gpu
        else "a trace without a GPU has no kernels: the device's times are 0",
    }
    for part, look in (("host", LOOK_HOST), ("device", LOOK_DEVICE)):
        for name in (*STAGES, "other"):
            got = answer[part][name]
            text = likely or generic[part]
            _require_number(job, f"{part}[{name!r}]", got, right[part][name], text, look)
    job.require(
        answer["is_unchanged"],
        expected="the events as they were",
        got="changed ones",
        likely="the list is sorted in place, or its events are edited",
        look="`sorted(events, key=...)` makes a new list",
    )


def _alone(job: Job, events: list[Event], kind: Kind) -> dict[str, Any]:
    """The answer in a process that has read no other trace."""
    request: dict[str, Any] = {"traces": [events], "calls": [[0, kind.num_warmup_steps]]}
    (answer,) = job.worker("alone", job.source).call("breakdowns_of", **request)
    found: dict[str, Any] = answer
    return found


def _is_right(answer: dict[str, Any], right: Breakdown) -> bool:
    return all(
        math.isclose(answer[part].get(name, math.nan), value, rel_tol=1e-6, abs_tol=1e-8)
        for part in right
        for name, value in right[part].items()
    )


def _require_parts(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        not answer["is_no_dict"],
        expected="a dict, and a dict each under `host` and `device`",
        got=f"no dict {answer['is_no_dict']}",
        likely="nothing is returned, or another kind of result",
        look="the docstring lists what is in the result",
    )
    require_keys(job, answer["flat"], ("num_steps", "step_time"))
    for part in ("host", "device"):
        require_keys(
            job,
            answer[part],
            (*STAGES, "other"),
            what=f"`{part}`",
            likely="a stage that never occurs is left out, or a key is misspelt: all five are there, and `other`",
        )


def _require_number(
    job: Job, what: str, got: float, right: float, likely: str, look: str = LOOK_HOST
) -> None:
    if math.isclose(got, right, abs_tol=1e-6):
        likely = "times rounded, or cut to whole microseconds: they have fractions"
    job.require(
        math.isclose(got, right, rel_tol=1e-6, abs_tol=1e-8),
        expected=f"{what} = {right:.9g}",
        got=f"{got:.9g}",
        likely=likely,
        look=look,
    )


def _why(answer: dict[str, Any], events: list[Event], kind: Kind, right: Breakdown) -> str:
    """The mistake with which a reader finds what was answered: all of it, or the part in which it is wrong."""
    whole = [(part, name) for part in right for name in right[part]]
    of_stages = [(part, name) for part, name in whole if part != "flat" and name != "other"]
    for places in (
        whole,
        [place for place in whole if place[0] != "device"],
        [place for place in whole if place[0] == "device"],
        of_stages,
        [place for place in of_stages if place[0] == "device"],
    ):

        def is_same(wrong: Breakdown, places: list[tuple[str, str]] = places) -> bool:
            return all(
                np.isclose(answer[part][name], wrong[part][name], rtol=1e-6, atol=1e-6)
                for part, name in places
            )

        if is_same(right):
            continue
        found = name_the_mistake(
            LIKELY, twin=lambda mistake: read(events, kind.num_warmup_steps, mistake), is_same=is_same
        )
        if found:
            return found
    return ""
