"""The check of exercise 4.3: when to stop, on random metrics, whole and resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import name_the_mistake

NUM_CASES = 60
METRICS = ("loss", "accuracy", "macro_f1", "train_loss")
_LIKELY = {
    "mode inverted": "`mode` is inverted: the metric that gets worse counts as the better one",
    "mode ignored": "`mode` is not used: an accuracy is treated like a loss",
    "counter not reset": "the counter is not reset: bad validations add up over the whole run, not in a row",
    "min_delta ignored": "`min_delta` is not used: a change smaller than it counts as an improvement",
    "min_delta reached": "an improvement by exactly `min_delta` counts, where it must be by more",
    "equal": "an equal value counts: the comparison is not strict, and exactly `min_delta` is taken for more",
    "one late": "`patience` is off by one: it stops one validation late",
    "one early": "`patience` is off by one: it stops one validation early",
    "NaN is best": "a NaN becomes the best: nothing compares as better than NaN, so nothing ever improves on it",
    "NaN is skipped": "a NaN is skipped, and does not count as a validation without improvement",
    "train loss": "it watches `train_loss`, and not the metric called `monitor`",
    "loss": "it watches `loss`, and not the metric called `monitor`",
}


def simulate(
    metrics: list[dict[str, float]], settings: Mapping[str, Any], mistake: str = ""
) -> dict[str, Any]:
    """When early stopping must stop, and its best; with `mistake`, when one with that mistake does."""
    mode = settings["mode"] if mistake != "mode ignored" else "min"
    sign = -1.0 if (mode == "min") != (mistake == "mode inverted") else 1.0
    min_delta = 0.0 if mistake == "min_delta ignored" else settings["min_delta"]
    patience = settings["patience"] + {"one late": 1, "one early": -1}.get(mistake, 0)
    name = {"train loss": "train_loss", "loss": "loss"}.get(mistake, settings["monitor"])
    best, best_step, bad = None, None, 0
    for number, values in enumerate(metrics, start=1):
        value = values[name]
        if math.isnan(value) and mistake == "NaN is skipped":
            continue
        gain = math.inf if best is None else sign * (value - best)
        is_usable = not math.isnan(value) or (mistake == "NaN is best" and best is None)
        reached = gain >= min_delta and (
            mistake == "equal" or (mistake == "min_delta reached" and min_delta > 0)
        )
        if is_usable and (gain > min_delta or reached):
            best, best_step = value, 10 * number
            bad = bad if mistake == "counter not reset" else 0
            continue
        bad += 1
        if bad >= patience:
            return {"stop": number, "best": best, "best_step": best_step}
    return {"stop": None, "best": best, "best_step": best_step}


def check_early_stopping(job: Job) -> None:
    """4.3: stops when it must on random metrics, whole and resumed from its state."""
    cases = [_case(job.rng, begins_with_nan=number % 10 == 0) for number in range(NUM_CASES)]
    asked = [{**case, "first_step": 1, "state": None} for case in cases]
    answers = job.learner().call("follow_all", cases=asked)
    expected = [simulate(case["metrics"], case["settings"]) for case in cases]
    outcomes = [_outcome(answer) for answer in answers]
    _require_right(job, cases, outcomes, expected)
    for case, answer, right in zip(cases, answers, expected, strict=True):
        job.require(
            right["best"] is None
            or (answer["best"], answer["best_step"]) == (right["best"], right["best_step"]),
            expected=f"best {right['best']} at step {right['best_step']}",
            got=f"best {answer['best']} at step {answer['best_step']}",
            likely="`best` also moves when the change is too small to count, or `best_step` is not the step given",
            look=f"mode {case['settings']['mode']}, min_delta {case['settings']['min_delta']}: {_shown(case)}",
        )
    _check_resumed(job, cases, expected)


def _check_resumed(job: Job, cases: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The first part by one object, the rest by another that has only the state."""
    length = [right["stop"] or len(case["metrics"]) for case, right in zip(cases, expected, strict=True)]
    cuts = [int(job.rng.integers(1, n)) if n > 1 else 0 for n in length]
    resumable = [(case, right, cut) for case, right, cut in zip(cases, expected, cuts, strict=True) if cut]
    first = [
        {"settings": case["settings"], "metrics": case["metrics"][:cut], "first_step": 1, "state": None}
        for case, _, cut in resumable
    ]
    states = [answer["state"] for answer in job.learner().call("follow_all", cases=first)]
    job.require(
        None not in states,
        expected="a `state_dict()` of plain values: numbers, text, None, and lists or dicts of them",
        got="something that JSON cannot hold",
        likely="a tensor, an array or an object of your own is in it",
        look="`float(…)` and `int(…)` make plain values",
    )
    rest = [
        {
            "settings": case["settings"],
            "metrics": case["metrics"][cut:],
            "first_step": cut + 1,
            "state": state,
        }
        for (case, _, cut), state in zip(resumable, states, strict=True)
    ]
    answers = job.learner().call("follow_all", cases=rest)
    cuts = [cut for *_, cut in resumable]
    stops = [None if at is None else at + cut for at, cut in zip(map(_outcome, answers), cuts, strict=True)]
    likely = "the best value, its step or the counter is not in the state, or not put back"
    if stops == [_stop_with_counter_anew(case, cut) for case, _, cut in resumable]:
        likely = "the counter of bad validations is not in the state: after a resume, patience starts anew"
    for (case, right, cut), answer, stop in zip(resumable, answers, stops, strict=True):
        best = answer["best"], answer["best_step"]
        job.require(
            stop == right["stop"] and (right["best"] is None or best == (right["best"], right["best_step"])),
            expected=f"resumed after {cut} validations, what the uninterrupted one does: {_stops(right['stop'])}",
            got=_stops(stop) if stop != right["stop"] else f"best {best[0]} at step {best[1]}",
            likely=likely,
            look=f"`state_dict` and `load_state_dict`, on {_shown(case)}",
        )


def _stop_with_counter_anew(case: dict[str, Any], cut: int) -> int | None:
    """When one stops that is resumed with its best, but with a counter of 0."""
    best = simulate(case["metrics"][:cut], case["settings"])["best"]
    known = [] if best is None else [{case["settings"]["monitor"]: best}]
    stop = simulate(known + case["metrics"][cut:], case["settings"])["stop"]
    return None if stop is None else stop - len(known) + cut


def _case(rng: np.random.Generator, begins_with_nan: bool) -> dict[str, Any]:
    settings = {
        "monitor": str(rng.choice(METRICS[:3])),
        "mode": str(rng.choice(["min", "max"])),
        "patience": int(rng.integers(1, 5)),
        "min_delta": float(rng.choice([0.0, 0.25, 0.5])),
    }
    # Eighths, so that differences are exact; a drift to the better, so that runs are of several lengths.
    sign = -1.0 if settings["mode"] == "min" else 1.0
    moves = rng.integers(-3, 6, size=24) / 8
    watched = 8.0 + sign * np.cumsum(moves)
    watched[rng.random(24) < 0.08] = math.nan
    if begins_with_nan:
        watched[0] = math.nan
    others = {name: 8.0 + np.cumsum(rng.integers(-4, 5, size=24)) / 8 for name in METRICS}
    others[str(settings["monitor"])] = watched
    metrics = [{name: float(values[i]) for name, values in others.items()} for i in range(24)]
    return {"settings": settings, "metrics": metrics}


def _outcome(answer: dict[str, Any]) -> int | None:
    """After how many validations it stopped."""
    answers = list(answer["answers"])
    return len(answers) if answers and answers[-1] else None


def _require_right(
    job: Job, cases: list[dict[str, Any]], got: list[int | None], expected: list[dict[str, Any]]
) -> None:
    wrong = [i for i, (own, right) in enumerate(zip(got, expected, strict=True)) if own != right["stop"]]
    if not wrong:
        return
    mistake = name_the_mistake(
        _LIKELY,
        twin=lambda mistake: [simulate(case["metrics"], case["settings"], mistake)["stop"] for case in cases],
        is_same=lambda stops: bool(stops == got),
    )
    case = cases[min(wrong, key=lambda i: expected[i]["stop"] or 99)]
    settings = ", ".join(f"{name}={value!r}" for name, value in case["settings"].items())
    at = cases.index(case)
    raise failure(
        expected=f"with {settings}: {_stops(expected[at]['stop'])}",
        got=f"{_stops(got[at])} ({len(wrong)} of {len(cases)} sequences are wrong)",
        likely=mistake or "a comparison or the counting is off",
        look=f"go through this one by hand: {_shown(case)}",
    )


def _stops(number: int | None) -> str:
    return "no stop" if number is None else f"stop after validation {number}"


def _shown(case: dict[str, Any]) -> str:
    values = [metrics[case["settings"]["monitor"]] for metrics in case["metrics"][:12]]
    return " ".join(f"{value:g}" for value in values) + " …"
