"""The check of exercise 2.1: which precision, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job

NAMES = ("32-true", "bf16-mixed", "16-mixed")
MIN_GAIN = 1.15


def check_resolve_precision(job: Job) -> None:
    """2.1: the decision on secret machines, its reason, and no measurement that decides nothing."""
    reasons: dict[str, str] = {}
    for what, requested, facts, gain, expected in _cases(job.rng):
        answer = job.learner().call("resolve_once", requested=requested, facts=facts, gain=gain)
        _require_answer(job, answer, requested, facts)
        _require_decision(job, answer["answer"], what, expected)
        _require_measurement(job, answer["calls"], what, needed=what.startswith("bf16 units"))
        _require_reason(job, answer["answer"]["reason"], requested, facts, gain if answer["calls"] else None)
        reasons.setdefault(what, answer["answer"]["reason"].replace(facts["device_name"], "…"))
    job.require(
        reasons["a GPU with bf16 units"] != reasons["a GPU without bf16 units"],
        expected="a reason that says what decided",
        got=f"for GPUs with and without bf16 units alike: {reasons['a GPU with bf16 units']!r}",
        likely="the reason is the same sentence whatever decided",
        look="choose the sentence where you choose the precision, in the same branch",
    )
    _require_refusal(job)


def _cases(rng: np.random.Generator) -> list[tuple[str, str, dict[str, Any], float, str]]:
    """What it is, requested, facts, what a measurement gives, the precision that is right."""

    def machine(device_type: str, has_units: bool) -> dict[str, Any]:
        name = f"{device_type.upper()}-{rng.integers(1000, 9999)}"
        return {"device_type": device_type, "device_name": name, "bf16_units": has_units}

    low, high = (round(float(rng.uniform(*limits)), 2) for limits in ((0.3, 1.1), (1.3, 4.0)))
    cases = [
        ("a GPU with bf16 units", "auto", machine("cuda", True), 2.0, "bf16-mixed"),
        ("a GPU without bf16 units", "auto", machine("cuda", False), 2.0, "16-mixed"),
        # What it would measure is a lure: the processor of a CPU without units emulates them.
        ("a CPU without bf16 units", "auto", machine("cpu", False), high, "32-true"),
        ("bf16 units that gain", "auto", machine("cpu", True), high, "bf16-mixed"),
        ("bf16 units that lose or hardly gain", "auto", machine("cpu", True), low, "32-true"),
        ("bf16 units at the limit", "auto", machine("cpu", True), MIN_GAIN, "bf16-mixed"),
        ("another kind of device", "auto", machine("mps", bool(rng.integers(2))), 2.0, "32-true"),
    ]
    for name in NAMES:
        device_type, has_units = str(rng.choice(["cpu", "cuda"])), bool(rng.integers(2))
        cases.append(("a request by name", name, machine(device_type, has_units), low, name))
    return cases


def _require_answer(job: Job, answer: dict[str, Any], requested: str, facts: dict[str, Any]) -> None:
    where = f"{requested!r} on a device of type {facts['device_type']!r}"
    job.require(
        answer["refused"] is None,
        expected=f"an answer for {where}",
        got=f"ValueError: {answer['refused']}",
        likely="a request is refused that should be followed",
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


def _require_decision(job: Job, found: dict[str, Any], what: str, expected: str) -> None:
    likely = {
        "a GPU with bf16 units": "the two GPU branches are swapped, or GPUs are not asked for their units",
        "a GPU without bf16 units": "bf16 is taken on a GPU that has no units for it, where it is emulated or refused",
        "a CPU without bf16 units": "a CPU without bf16 units is believed to gain: it emulates bf16, and gets slower",
        "bf16 units that gain": "a gain that was measured is thrown away",
        "bf16 units that lose or hardly gain": "the units are believed and not the measurement",
        "bf16 units at the limit": f"a gain of exactly {MIN_GAIN} is enough",
        "another kind of device": "a device type that nobody has tried gets 16 bits",
        "a request by name": "what was asked for by name is replaced",
    }[what]
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
        likely="the gain is guessed from the units, or measured again for the reason"
        if needed
        else "the gain is measured where it decides nothing: a second at every start",
        look="call it in the one branch where its answer decides, and keep the number",
    )


def _require_reason(job: Job, reason: str, requested: str, facts: dict[str, Any], gain: float | None) -> None:
    wanted = {"the name of the device": facts["device_name"]}
    if requested != "auto":
        wanted["the precision that was asked for"] = requested
    if gain is not None:
        wanted["the gain that was measured, with two decimals"] = f"{gain:.2f}"
    for what, text in wanted.items():
        job.require(
            text in reason,
            expected=f"a reason with {what}: {text}",
            got=repr(reason),
            likely="the reason does not say what decided: nobody can check it later",
            look="the docstring says what a reason names",
        )


def _require_refusal(job: Job) -> None:
    unknown = f"fp{job.rng.integers(17, 31)}"
    facts = {"device_type": "cpu", "device_name": "CPU-1", "bf16_units": True}
    answer = job.learner().call("resolve_once", requested=unknown, facts=facts, gain=2.0)
    said = answer["refused"]
    got = f"ValueError: {said}" if said is not None else f"precision {answer['answer'].get('precision')!r}"
    job.require(
        said is not None and unknown in said and all(name in said for name in NAMES),
        expected=f"a ValueError for {unknown!r} that names it and the three that there are",
        got=got,
        likely="an unknown name falls through to a default: a typing error trains in another precision"
        if said is None
        else "the error does not say what was wrong, or what would be right",
        look="check the name before anything else"
        if said is None
        else "put the request and the three names into the text of the error",
    )
