"""The check of exercise 4.3: when to stop, on random metrics, whole and resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.engine import Job, failure
from autograder.lessons.checking import name_the_mistake
from autograder.lessons.lesson_04.checks.stopping_cases import (
    DEFAULTS,
    FRESH,
    KINDS,
    Start,
    draw_cases,
    no_better,
    simulate,
    with_nothing_else,
)

Case = Mapping[str, Any]
_PLAIN = {
    "mode inverted": "`mode` is inverted: the metric that gets worse counts as the better one",
    "mode ignored": "`mode` is not used: an accuracy is treated like a loss",
    "counter not reset": "the counter is not reset: bad validations add up over the whole run, not in a row",
    "min_delta ignored": "`min_delta` is not used: a change smaller than it counts as an improvement",
    "min_delta reached": "an improvement by exactly `min_delta` counts, where it must be by more",
    "equal": "an equal value counts: the comparison is not strict, and exactly `min_delta` is taken for more",
    "one late": "`patience` is off by one: it stops one validation late",
    "one early": "`patience` is off by one: it stops one validation early",
    "train loss": "it watches `train_loss`, and not the metric called `monitor`",
    "loss": "it watches `loss`, and not the metric called `monitor`",
}
# A best may be 0.0 in any sequence; those called "zero" make sure of it.
_ZERO = {"zero is none": "a best of 0.0 is taken for none: `if not self.best` is true for None and for 0.0"}
_LIKELY: dict[str, dict[str, str]] = {
    "plain": _PLAIN | _ZERO,
    "default": _ZERO,
    "zero": _ZERO,
    "NaN": {
        "NaN is best": "a NaN becomes the best: nothing compares as better than NaN, so nothing ever improves on it",
        "NaN is skipped at first": "a NaN before the first best is skipped, and does not count as a validation without "
        "improvement",
        "NaN is skipped": "a NaN is skipped, and does not count as a validation without improvement",
    },
    "infinite": {
        "begins at infinity": "the best begins at an infinity, and not at None: a first value that is infinite does "
        "not improve on it"
    },
}
_SHARED = {"taken": "`state_dict` gave", "given": "was loaded"}
_ELSE = {
    "plain": "a comparison or the counting is off",
    "default": "a default of `__init__` is another: they are "
    + ", ".join(f"{k}={v!r}" for k, v in DEFAULTS.items()),
    "zero": "0 is a value like any other: something takes it for False, or for the end of a range",
    "NaN": "something that is only so with NaN: no comparison with it is True",
    "infinite": "something that is only so with infinity: an infinite value is one, and inf - inf is NaN",
}


def check_early_stopping(job: Job) -> None:
    """4.3: stops when it must on random metrics, whole and resumed from its state."""
    cases = draw_cases(job.rng)
    answers = _followed(job, cases)
    expected = [simulate(case) for case in cases]
    for kind in dict.fromkeys(KINDS):
        _require_right(job, kind, cases, answers, expected)
    for case, answer, right in zip(cases, answers, expected, strict=True):
        job.require(
            not right["stop"] or answer["after_stop"] == [True, True],
            expected="True also at the next validation that does not improve, where the run was not ended",
            got=f"{answer['after_stop'][0]}",
            likely="only the validation at which patience ends says stop, as with `==` for `>=`",
            look=f"two more bad ones after the stop of {_shown(case)}",
        )
    _check_resumed(job, cases)


def _followed(
    job: Job,
    cases: Sequence[Case],
    states: Sequence[str | None] = (),
    firsts: Sequence[int] = (),
    *,
    whole: bool = True,
) -> list[dict[str, Any]]:
    """What objects of the learner's answer. `whole`: and two validations more after a stop."""
    asked = [
        {
            "settings": case["settings"],
            "metrics": case["metrics"][first:],
            "steps": case["steps"][first:],
            "state": state,
            "after_stop": [no_better(case)] * 2 if whole else [],
        }
        for case, state, first in zip(
            cases, states or [None] * len(cases), firsts or [0] * len(cases), strict=True
        )
    ]
    answers: list[dict[str, Any]] = job.learner().call("follow_all", cases=asked)
    for answer in answers:
        no_bool = next((said for said in answer["answers"] if not isinstance(said, bool)), None)
        job.require(
            no_bool is None,
            expected="`update` to return True or False",
            got=f"{no_bool}",
            likely="a way through `update` has no `return`, or returns something else",
            look="every validation gets an answer, also one that improves",
        )
        for which, words in _SHARED.items():
            job.require(
                which not in answer["changed"],
                expected="a state that stays what it is, whatever `update` is told afterwards",
                got="another one after further validations",
                likely=f"what {words} goes on changing: it is the object's own dict, not one of its own",
                look="make a new dict of the values in `state_dict`, and take them out again in `load_state_dict`",
            )
    return answers


def _stop(answer: Mapping[str, Any]) -> int | None:
    """After how many validations it stopped."""
    said = list(answer["answers"])
    return len(said) if said and said[-1] else None


def _is_right(answer: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return _stop(answer) == right["stop"] and _has_best(answer, right)


def _has_best(answer: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Before anything has improved, nothing is asked of the best."""
    best = answer["best"], answer["best_step"]
    return right["best"] is None or best == (right["best"], right["best_step"])


def _require_right(
    job: Job,
    kind: str,
    cases: list[dict[str, Any]],
    got: list[dict[str, Any]],
    expected: list[dict[str, Any]],
) -> None:
    some = [(c, a, r) for c, a, r in zip(cases, got, expected, strict=True) if c["kind"] == kind]
    wrong = [(c, a, r) for c, a, r in some if not _is_right(a, r)]
    if not wrong:
        return
    late = [found for found in wrong if _stop(found[1]) != found[2]["stop"]]
    case, answer, right = min(late or wrong, key=lambda found: found[2]["stop"] or 99)

    def same(one: Callable[[Any, Any], bool]) -> Callable[[list[Any]], bool]:
        return lambda twins: all(one(a, twin) for (_, a, _), twin in zip(some, twins, strict=True))

    mistake = name_the_mistake(
        _LIKELY[kind],
        twin=lambda mistake: [simulate(c, mistake) for c, _, _ in some],
        is_same=same(lambda a, twin: _stop(a) == twin["stop"]) if late else same(_is_right),
    )
    if not mistake and all(_is_right(_followed(job, [c], whole=False)[0], r) for c, _, r in wrong):
        mistake = "something is kept in the class or in a global variable, where all objects share it"
    settings = ", ".join(f"{name}={value!r}" for name, value in case["settings"].items()) or "the defaults"
    if not late:
        mistake = mistake or (
            "`best` also moves when the change is too small to count, or `best_step` is not the step given"
        )
    raise failure(
        expected=f"with {settings}: {_stops(right['stop']) if late else _bests(right)}",
        got=f"{_stops(_stop(answer)) if late else _bests(answer)} ({len(wrong)} of {len(some)} such "
        "sequences are wrong)",
        likely=mistake or _ELSE[kind],
        look=f"go through this one by hand: {_shown(case)}",
    )


def _check_resumed(job: Job, cases: list[dict[str, Any]]) -> None:
    """The first part by one object, the rest by another that has only the state."""
    cases = [case if number % 3 else with_nothing_else(case) for number, case in enumerate(cases)]
    lengths = [simulate(case)["stop"] or len(case["metrics"]) for case in cases]
    # Some before the first validation, some after the last.
    cuts = [
        (0, n)[number % 2] if number % 6 < 2 else int(job.rng.integers(0, n + 1))
        for number, n in enumerate(lengths)
    ]
    begun = [
        case | {"metrics": case["metrics"][:cut], "steps": case["steps"][:cut]}
        for case, cut in zip(cases, cuts, strict=True)
    ]
    states = [answer["state"] for answer in _followed(job, begun, whole=False)]
    job.require(
        None not in states,
        expected="a `state_dict()` of plain values: numbers, text, None, and lists or dicts of them",
        got="something that JSON cannot hold",
        likely="a tensor, an array or an object of your own is in it",
        look="`float(…)` and `int(…)` make plain values",
    )
    more = [
        case | {"metrics": [*case["metrics"][:n], no_better(case)], "steps": [*case["steps"][:n], 10**6]}
        for case, n in zip(cases, lengths, strict=True)
    ]
    answers = _followed(job, more, states, cuts, whole=False)
    kept = [simulate(case) for case in begun]

    def resumed(start: Callable[[dict[str, Any]], Start]) -> list[dict[str, Any]]:
        return [
            simulate(case, start=start(had), first=cut)
            for case, had, cut in zip(more, kept, cuts, strict=True)
        ]

    def is_same(twins: list[dict[str, Any]]) -> bool:
        return all(
            _stop_of_all(a, cut) == twin["stop"] for a, twin, cut in zip(answers, twins, cuts, strict=True)
        )

    expected = resumed(lambda had: (had["best"], had["best_step"], had["bad"]))
    forgetful: dict[str, Callable[[dict[str, Any]], Start]] = {
        "the counter of bad validations is not in the state: after a resume, patience starts anew": lambda had: (
            had["best"],
            had["best_step"],
            0,
        ),
        "the best value is not in the state: after a resume, any first value improves": lambda had: (
            None,
            had["best_step"],
            had["bad"],
        ),
        "nothing of the state is put back: a new object begins as if there had been no validation": lambda had: (
            FRESH
        ),
    }
    for case, answer, right, cut in zip(more, answers, expected, cuts, strict=True):
        stop = _stop_of_all(answer, cut)
        if stop == right["stop"] and _has_best(answer, right):
            continue
        likely = "the best value, its step or the counter is not in the state, or not put back"
        if any(_is_nearly(a["best"], r["best"]) for a, r in zip(answers, expected, strict=True)):
            likely = "the best value is rounded in the state: after a resume, another number is to be beaten"
        elif stop == right["stop"] and answer["best"] == right["best"]:
            likely = "`best_step` is not in the state, or not put back"
        if not is_same(expected):
            likely = next((text for text, start in forgetful.items() if is_same(resumed(start))), likely)
        raise failure(
            expected=f"resumed after {cut} validations, what the uninterrupted one does: "
            + (_stops(right["stop"]) if stop != right["stop"] else _bests(right)),
            got=_stops(stop) if stop != right["stop"] else _bests(answer),
            likely=likely,
            look=f"`state_dict` and `load_state_dict`, on {_shown(case)}",
        )


def _is_nearly(value: Any, right: float | None) -> bool:
    """Whether it is another number, and not by much."""
    are_finite = isinstance(value, float) and right is not None and math.isfinite(value - right)
    return are_finite and 0.0 < abs(value - right) < 0.01


def _stop_of_all(answer: Mapping[str, Any], cut: int) -> int | None:
    stop = _stop(answer)
    return None if stop is None else stop + cut


def _bests(of: Mapping[str, Any]) -> str:
    step = of["best_step"]
    return (
        f"best {of['best']} at step {step:g}"
        if isinstance(step, int | float)
        else f"best {of['best']} at step {step}"
    )


def _stops(number: int | None) -> str:
    return "no stop" if number is None else f"stop after validation {number}"


def _shown(case: Case) -> str:
    monitor = (DEFAULTS | case["settings"])["monitor"]
    return " ".join(f"{metrics[monitor]:g}" for metrics in case["metrics"][:12]) + " …"
