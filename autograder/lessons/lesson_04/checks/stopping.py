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
    better,
    draw_cases,
    no_better,
    simulate,
    where_infinity_counts,
    with_nothing_else,
)
from autograder.lessons.lesson_04.checks.stopping_words import ELSE, LIKELY, SHARED

Case = Mapping[str, Any]


def check_early_stopping(job: Job) -> None:
    """4.3: stops when it must on random metrics, whole and resumed from its state."""
    cases = draw_cases(job.rng)
    expected = [simulate(case) for case in cases]
    answers = _followed(
        job, cases, improved=[better(c, r["best"]) for c, r in zip(cases, expected, strict=True)]
    )
    for kind in dict.fromkeys(KINDS):
        _require_right(job, kind, cases, answers, expected)
    for case, answer, right in zip(cases, answers, expected, strict=True):
        job.require(
            not right["stop"] or answer["after_stop"][:2] == [True, True],
            expected="True also at the next validation that does not improve, where the run was not ended",
            got=f"{answer['after_stop'][0]}",
            likely="only the validation at which patience ends says stop, as with `==` for `>=`",
            look=f"two more bad ones after the stop of {_shown(case)}",
        )
        job.require(
            not right["stop"] or answer["after_stop"][2:] in ([], [False]),
            expected="False at a validation that improves, also after a stop at which the run was not ended",
            got="True",
            likely="once it has said stop, it says so for ever: no validation in a row is bad by then",
            look=f"a better one after the stop of {_shown(case)}",
        )
        bads = [right["bad"], right["bad"] + 1, right["bad"] + 2, 0][: 1 + len(answer["bad_after_stop"])]
        job.require(
            [answer["num_bad"], *answer["bad_after_stop"]] == bads,
            expected=f"`num_bad`, the validations in a row that have not improved: {_listed(bads)}",
            got=_listed([answer["num_bad"], *answer["bad_after_stop"]]),
            likely="`num_bad` is not counted, or set back, where another attribute is",
            look=f"read it after the last of {_shown(case)}; then after two bad ones more",
        )
    _check_resumed(job, cases)
    _require_put_back(job, answers)


def _require_put_back(job: Job, answers: Sequence[Mapping[str, Any]]) -> None:
    """Also before the next `update`, and where it has gone on beyond its patience."""
    for answer in answers:
        own, other = answer["attributes"], answer["put_back"]
        job.require(
            own[2] == other[2] and (own[0] is None or own[:2] == other[:2]),
            expected=f"after `load_state_dict` `best`, `best_step` and `num_bad` as they were: {_listed(own)}",
            got=_listed(other),
            likely="what was loaded is not in the attributes at once, or the count is cut off at `patience`",
            look="read the three of an object, and of a new one that has its state, before any `update`",
        )


def _followed(
    job: Job,
    cases: Sequence[Case],
    states: Sequence[str | None] = (),
    firsts: Sequence[int] = (),
    *,
    improved: Sequence[dict[str, float] | None] | None = None,
) -> list[dict[str, Any]]:
    """What objects of the learner's answer. With `improved`: and after a stop, at two validations more and at that one.

    Of the objects that get a state, those that are used have seen validations of their own by then.
    """
    asked = [
        {
            "settings": case["settings"],
            "metrics": case["metrics"][first:],
            "steps": case["steps"][first:],
            "state": state,
            "after_stop": [] if improved is None else [no_better(case)] * 2 + [better_one] * bool(better_one),
            "before": [better(case, None), no_better(case)] if state and _is_used(number) else [],
        }
        for number, (case, state, first, better_one) in enumerate(
            zip(
                cases,
                states or [None] * len(cases),
                firsts or [0] * len(cases),
                improved or [None] * len(cases),
                strict=True,
            )
        )
    ]
    # What goes in, goes into a process that has not handed it out: a state holds all there is.
    worker = job.worker("resumed", job.source) if any(states) else job.learner()
    answers: list[dict[str, Any]] = worker.call("follow_all", cases=asked)
    for answer in answers:
        no_bool = next((said for said in answer["answers"] if not isinstance(said, bool)), None)
        job.require(
            no_bool is None,
            expected="`update` to return True or False",
            got=f"{no_bool}",
            likely="a way through `update` has no `return`, or returns something else",
            look="every validation gets an answer, also one that improves",
        )
        for which, words in SHARED.items():
            job.require(
                which not in answer["changed"],
                expected="a state that stays what it is, whatever `update` is told afterwards",
                got="another one after further validations",
                likely=f"what {words} goes on changing: it is the object's own dict, not one of its own",
                look="make a new dict of the values in `state_dict`, and take them out again in `load_state_dict`",
            )
        job.require(
            "metrics" not in answer["changed"],
            expected="metrics that are after `update` what they were",
            got="others",
            likely="something is taken out of the dict that the caller gave, as by `pop`",
            look="`metrics[…]` only reads",
        )
    return answers


def _is_used(number: int) -> bool:
    return number % 4 < 2


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
        LIKELY[kind],
        twin=lambda mistake: [simulate(c, mistake) for c, _, _ in some],
        is_same=same(lambda a, twin: _stop(a) == twin["stop"]) if late else same(_is_right),
    )
    if not mistake and all(_is_right(_followed(job, [c])[0], r) for c, _, r in wrong):
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
        likely=mistake or ELSE[kind],
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
    for number, case in enumerate(cases):
        decisive = where_infinity_counts(case, lengths[number])
        cuts[number] = int(job.rng.choice(decisive)) if decisive else cuts[number]
    begun = [
        case | {"metrics": case["metrics"][:cut], "steps": case["steps"][:cut]}
        for case, cut in zip(cases, cuts, strict=True)
    ]
    states = [answer["state"] for answer in _followed(job, begun)]
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
    answers = _followed(job, more, states, cuts)
    kept = [simulate(case) for case in begun]

    def resumed(start: Callable[[dict[str, Any]], Start]) -> list[dict[str, Any]]:
        return [
            simulate(case, start=start(had), first=cut)
            for case, had, cut in zip(more, kept, cuts, strict=True)
        ]

    def is_same(twins: list[dict[str, Any]]) -> bool:
        return all(
            _stop_of_all(a, cut) == twin["stop"]
            for number, (a, twin, cut) in enumerate(zip(answers, twins, cuts, strict=True))
            if not _is_used(number)
        )

    expected = resumed(lambda had: (had["best"], had["best_step"], had["bad"]))
    are_wrong = [
        _stop_of_all(a, cut) != r["stop"] or not _has_best(a, r)
        for a, r, cut in zip(answers, expected, cuts, strict=True)
    ]
    wrong_bests = [had["best"] for had, is_wrong in zip(kept, are_wrong, strict=True) if is_wrong]
    is_infinity_lost = all(best is not None and math.isinf(best) for best in wrong_bests)
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
    for number in sorted(range(len(more)), key=_is_used):
        case, answer, right, cut = more[number], answers[number], expected[number], cuts[number]
        stop = _stop_of_all(answer, cut)
        if not are_wrong[number]:
            continue
        likely = "the best value, its step or the counter is not in the state, or not put back"
        if _is_used(number) and answer["best"] is not None:
            likely = "something that the object had before stays, where the state has none of it"
        elif any(_is_nearly(a["best"], r["best"]) for a, r in zip(answers, expected, strict=True)):
            likely = "the best value is rounded in the state: after a resume, another number is to be beaten"
        elif stop == right["stop"] and answer["best"] == right["best"]:
            likely = "`best_step` is not in the state, or not put back"
        if is_infinity_lost:
            likely = (
                "a best that is infinite is not in the state, or not put back: it is a value like any other"
            )
        elif not _is_used(number) and not is_same(expected):
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
    return f"best {of['best']} at step " + (f"{step:g}" if isinstance(step, int | float) else f"{step}")


def _listed(numbers: Sequence[Any]) -> str:
    return ", then ".join(f"{number}" for number in numbers)


def _stops(number: int | None) -> str:
    return "no stop" if number is None else f"stop after validation {number}"


def _shown(case: Case) -> str:
    monitor = (DEFAULTS | case["settings"])["monitor"]
    return " ".join(f"{metrics[monitor]:g}" for metrics in case["metrics"][:12]) + " …"
