"""The check of exercise 2.1: which precision, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_02.checks.policy_cases import (
    GAINS,
    MIN_GAIN,
    NAMES,
    drawn_cases,
    unknown_requests,
)


def check_resolve_precision(job: Job) -> None:
    """2.1: the decision on secret machines, its reason, and no measurement that decides nothing."""
    cases = drawn_cases(job.rng)
    unknown = unknown_requests(job.rng)
    # Asked in any order, and judged in one: what can be told by itself comes first, so that it has its name.
    order = job.rng.permutation(len(cases))
    asked = [{"requested": cases[i][1], "facts": cases[i][2], "gain": cases[i][3]} for i in order]
    found = job.learner().call("resolve_all", cases=asked + unknown)
    answers = [found[place] for place in np.argsort(order)] + found[len(cases) :]
    measured = [
        (case[3], answer["answer"].get("precision"))
        for case, answer in zip(cases, answers, strict=False)
        if case[0] in GAINS
    ]
    reasons: dict[str, str] = {}
    for (what, requested, facts, gain, expected), answer in zip(cases, answers, strict=False):
        _require_answer(job, answer, requested, facts)
        if what in GAINS:  # what was not measured cannot decide
            _require_measurement(job, answer["calls"], what, needed=True)
        _require_decision(job, answer["answer"], what, expected, measured)
        _require_measurement(job, answer["calls"], what, needed=what in GAINS)
        _require_reason(job, answer["answer"]["reason"], requested, facts, gain if what in GAINS else None)
        reasons.setdefault(what, answer["answer"]["reason"].replace(facts["device_name"], "…"))
    job.require(
        reasons["a GPU with bf16 units"] != reasons["a GPU without bf16 units"],
        expected="a reason that says what decided",
        got=f"for GPUs with and without bf16 units alike: {reasons['a GPU with bf16 units']!r}",
        likely="the reason is the same sentence whatever decided",
        look="choose the sentence where you choose the precision, in the same branch",
    )
    _require_left(job, answers)
    for case, answer in zip(unknown, answers[len(cases) :], strict=True):
        _require_refusal(job, case["requested"], answer)


def _require_left(job: Job, answers: list[dict[str, Any]]) -> None:
    job.require(
        not any(answer["is_changed"] for answer in answers),
        expected="facts as they were before",
        got="facts with a key more or fewer, or another value",
        likely="the caller's `facts` are changed on the way: the next call finds others",
        look="read from `facts`, and write nothing into it",
    )
    job.require(
        all(answer["is_kept"] for answer in answers),
        expected="an answer that stays as it is when the function is called again",
        got="another one",
        likely="all calls return the same dict: the next answer is written over the last",
        look="make the dict in the function",
    )


def _require_answer(job: Job, answer: dict[str, Any], requested: str, facts: dict[str, Any]) -> None:
    where = f"{requested!r} on a device of type {facts['device_type']!r}"
    job.require(
        not answer["error"],
        expected=f"an answer for {where}",
        got=f"{answer['error']}: {answer['said']}",
        likely="a request is refused that should be followed"
        if answer["is_value_error"]
        else "a row of the table has no branch, or a fact is read under another key",
        look="a person who names a precision gets it; `auto` is for those who do not",
    )
    found = answer["answer"]
    needed = {"precision": str, "needs_scaler": bool, "reason": str}
    missing = [key for key, kind in needed.items() if not isinstance(found.get(key), kind)]
    job.require(
        not missing,
        expected="a dict with a text `precision`, a bool `needs_scaler` and a text `reason`",
        got=f"for {where}: {', '.join(missing)} missing, or of another type",
        likely="a key is missing or misspelt, or a tensor or None stands where a text or bool should",
        look="the docstring lists the keys",
    )


def _mistake_with_gains(measured: list[tuple[float, Any]]) -> str:
    """What was done with the gain, from all decisions that it had to make: one of them looks like several."""
    rules: dict[str, Callable[[float], bool]] = {
        "the units are believed and not the measurement": lambda gain: True,
        "a gain that was measured is thrown away": lambda gain: False,
        f"the gain is rounded before it is compared with {MIN_GAIN}": lambda gain: round(gain, 2) >= MIN_GAIN,
        f"a gain of exactly {MIN_GAIN} is enough": lambda gain: gain > MIN_GAIN,
        "the gain is read the wrong way round: it is fp32 time / bf16 time": lambda gain: gain < MIN_GAIN,
    }
    for likely, gains_enough in rules.items():
        if all((precision == "bf16-mixed") == gains_enough(gain) for gain, precision in measured):
            return likely
    return f"another limit than {MIN_GAIN}"


def _require_decision(
    job: Job, found: dict[str, Any], what: str, expected: str, measured: list[tuple[float, Any]]
) -> None:
    likely = {
        "a GPU with bf16 units": "the two GPU branches are swapped, or GPUs are not asked for their units",
        "a GPU without bf16 units": "bf16 is taken on a GPU that has no units for it, where it is emulated or refused",
        "a CPU without bf16 units": "a CPU without bf16 units is believed to gain: it emulates bf16, and gets slower",
        "another kind of device": "a device type that nobody has tried gets 16 bits",
        "a request by name": "what was asked for by name is replaced",
    }.get(what) or _mistake_with_gains(measured)
    job.require(
        found["precision"] == expected,
        expected=f"{expected!r} for {what}",
        got=f"{found['precision']!r}",
        likely=likely,
        look="the table above the cell has one row for each case",
    )
    is_fp16 = expected == "16-mixed"
    job.require(
        found["needs_scaler"] == is_fp16,
        expected=f"needs_scaler = {is_fp16} with {expected!r}",
        got=f"{found['needs_scaler']}",
        likely="no loss scaling with fp16: its small gradients become zero"
        if is_fp16
        else "a scaler where nothing can underflow: bf16 has the range of fp32",
        look="which of the formats has too little range for gradients?",
    )


def _require_measurement(job: Job, calls: int, what: str, *, needed: bool) -> None:
    job.require(
        calls == int(needed),
        expected=f"measure_gain called {'once' if needed else 'not at all'} for {what}",
        got="once" if calls == 1 else f"{calls} times",
        likely="the gain is guessed from the units, or kept from another machine or call"
        if needed and not calls
        else "the gain is measured again, such as for the reason"
        if needed
        else "the gain is measured where it decides nothing: a second at every start; and a device type that "
        "nobody has tried gets no 16 bits, whatever they gain"
        if what == "another kind of device"
        else "the gain is measured where it decides nothing: a second at every start",
        look="call it in the one branch where its answer decides, and keep the number",
    )


def _says(text: str, name: str) -> bool:
    """Whether a text has this name or number, and not only as a part of another."""
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))


def _require_reason(job: Job, reason: str, requested: str, facts: dict[str, Any], gain: float | None) -> None:
    name = facts["device_name"]
    wanted = {"the name of the device": (name, name in reason)}
    if requested != "auto":
        wanted["the precision that was asked for"] = requested, _says(reason, requested)
    if gain is not None:
        number = f"{gain:.2f}"
        is_there = re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", reason.replace(name, ""))
        wanted["the gain that was measured, with two decimals"] = number, bool(is_there)
    for what, (text, is_there_too) in wanted.items():
        likely = "the reason does not say what decided: nobody can check it later"
        if gain is not None and re.search(r"\d\.\d", reason.replace(name, "").replace(str(MIN_GAIN), "")):
            likely = "the reason has the gain with more or fewer decimals than two, or another number"
        job.require(
            is_there_too,
            expected=f"a reason with {what}: {text}",
            got=repr(reason),
            likely=likely,
            look="the docstring says what a reason names",
        )
    job.require(
        bool(re.search(r"[^\W\d_]{2}", reason.replace(name, ""))),
        expected="a reason that is a sentence",
        got=repr(reason),
        likely="in one of the branches the reason is the name of the device, and says nothing",
        look="choose the sentence where you choose the precision, in the same branch",
    )


def _require_refusal(job: Job, unknown: str, answer: dict[str, Any]) -> None:
    said = answer["said"]
    expected = f"a ValueError for {unknown!r} that names it and the three that there are"
    job.require(
        bool(answer["error"]),
        expected=expected,
        got=f"precision {answer['answer'].get('precision')!r}",
        likely="an unknown name falls through to a default, or what is like a name is taken for it: a typing error "
        "trains in another precision",
        look="check the name before anything else, as a whole: `in` finds parts of a text",
    )
    job.require(
        answer["is_value_error"],
        expected=expected,
        got=f"{answer['error']}: {said}",
        likely="the name is looked up before it is checked, or another exception is raised",
        look="check the name before anything else",
    )
    job.require(
        any(text in said for text in (unknown, repr(unknown)[1:-1]))
        and all(_says(said, name) for name in NAMES),
        expected=expected,
        got=f"ValueError: {said}",
        likely="the error does not say what was wrong, or what would be right",
        look="put the request and the three names into the text of the error",
    )
    job.require(
        not answer["calls"],
        expected=f"measure_gain not called for {unknown!r}",
        got=f"{answer['calls']} calls",
        likely="the gain is measured where it decides nothing: a second before the error",
        look="check the name before anything else",
    )
