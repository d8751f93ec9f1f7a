"""The words of lessons' checks: what passes, what fails and says why; and that every exercise's parts are there."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from autograder.course.lessons import Clock, Exercise, lesson_ids, load_lesson
from autograder.engine.job import CheckFailed, Job
from autograder.lessons.checking import (
    Mutant,
    name_the_mistake,
    require_each_once,
    require_keys,
    require_repeatable,
    require_report,
    require_same_parts,
    twin_of,
    watched,
    wrong,
)

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
TIMED = [exercise for exercise in EXERCISES if exercise.clock]


@pytest.fixture
def job() -> Iterator[Job]:
    harness = 'learner = globals().get("learner")\ndef doubled(number):\n    return learner(number)\n'
    with contextlib.closing(Job("9.9", "double", "", harness, np.random.default_rng(0))) as job:
        yield job


# Wrong solutions as tables.

RIGHT = "def double(number):\n    return 2 * number\n"


def test_a_table_of_wrong_solutions_makes_one_of_each_row() -> None:
    assert wrong(
        RIGHT,
        {
            "thrice": ("too much", "2", "3"),
            "both": ("upside down", ("2 * ", ""), ("number\n", "number / 2\n")),
        },
    ) == (
        Mutant(name="thrice", source=RIGHT.replace("2", "3"), says="too much"),
        Mutant(name="both", source="def double(number):\n    return number / 2\n", says="upside down"),
    )


def test_what_only_the_clock_shows_may_be_the_source_as_it_stands() -> None:
    assert wrong(RIGHT, {"slow": ("too slow",)}, is_timed=True) == (
        Mutant(name="slow", source=RIGHT, says="too slow", is_timed=True),
    )


def test_an_edit_that_is_missing_or_finds_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="'right' edits nothing"):
        wrong(RIGHT, {"right": ("says",)})
    with pytest.raises(ValueError, match="the source has no 'triple'"):
        wrong(RIGHT, {"right": ("says", "triple", "double")})


# A twin names the mistake.

TWIN = (
    'MISTAKE = "none"\n\ndef double(number):\n    return {"thrice": 3, "once": 1}.get(MISTAKE, 2) * number\n'
)
LIKELY: dict[str, Any] = {"thrice": "it is tripled", "once": lambda got: f"it stays as it is, {got}"}


@pytest.mark.parametrize(
    ("got", "text"), [(15, "it is tripled"), (5, "it stays as it is, 5"), (7, ""), (10, "")]
)
def test_a_twin_with_the_same_result_names_the_mistake(job: Job, got: int, text: str) -> None:
    twin = twin_of(job, TWIN, "doubled", {"number": 5})
    assert name_the_mistake(LIKELY, twin=twin, is_same=lambda wrong: bool(wrong == got)) == text


def test_the_first_mistake_counts_and_no_further_twin_is_asked() -> None:
    asked = []
    likely = {"a": "the first", "b": "the second"}
    assert name_the_mistake(likely, twin=asked.append, is_same=lambda _: True) == "the first"
    assert asked == ["a"]


def test_a_twin_that_cannot_be_wrong_is_an_error(job: Job) -> None:
    with pytest.raises(ValueError, match="no 'MISTAKE"):
        twin_of(job, RIGHT, "doubled", {"number": 5})("thrice")


# Reports.


def test_a_report_needs_its_numbers_in_their_order(job: Job) -> None:
    likely = {"loss": "a sum", "steps": "rows are counted"}
    right = {"loss": 0.5, "steps": 4.0, "more": 1.0}
    require_report(job, {"loss": 0.5, "steps": 4.0, "else": 3.0}, right, likely)
    with pytest.raises(CheckFailed, match=r"a report with loss, steps\nGot: no steps"):
        require_report(job, {"loss": 9.0}, right, likely)
    with pytest.raises(
        CheckFailed, match=r"loss on rank 1 = 0\.5\nGot: 9\nLikely: a sum\nNext: loss by hand"
    ):
        require_report(
            job, {"loss": 9.0, "steps": 9.0}, right, likely, where=" on rank 1", look="NAME by hand"
        )
    with pytest.raises(CheckFailed, match="rows are counted"):
        require_report(job, {"loss": 0.504, "steps": 9.0}, right, likely, rel_tol=0.01)


def test_keys_may_be_of_something_else_than_a_report(job: Job) -> None:
    with pytest.raises(CheckFailed, match=r"a plan with a, b\nGot: no b\nLikely: misspelt"):
        require_keys(job, {"a": "text"}, ("a", "b"), what="a plan", likely="misspelt")


# Orders.


def each_once(job: Job, got: Any, wanted: Any = range(4), **more: Any) -> None:
    require_each_once(
        job, got, wanted, expected="each once", likely="a tail is dropped", look="count", **more
    )


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (np.array([3, 1, 0, 2]), range(4)),
        ([(0, 1), (0, 0)], [(0, 0), (0, 1)]),
        (np.array([2.0, 1.0]), np.array([1, 2])),
        ([], []),
    ],
)
def test_each_once_in_any_order_passes(job: Job, got: Any, wanted: Any) -> None:
    each_once(job, got, wanted)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (np.array([0, 1, 2]), "1 that never come\nLikely: a tail is dropped"),
        ([0, 1, 2, 2], "1 that never come\nLikely: a tail is dropped"),
        ([0, 1, 2, 3, 3], "1 that come too often, 5 in all\nLikely: filled up\nNext: leave it shorter"),
        ([0, 1, 2, 3, 7], "1 that come too often, 5 in all\nLikely: filled up"),
    ],
)
def test_what_never_comes_and_what_comes_too_often_have_their_own_reasons(
    job: Job, got: Any, says: str
) -> None:
    with pytest.raises(CheckFailed, match=says):
        each_once(job, got, likely_repeated="filled up", look_repeated="leave it shorter")


def test_repeats_may_be_allowed_and_share_the_reason_where_there_is_one(job: Job) -> None:
    each_once(job, [0, 1, 2, 3, 3], most=2)
    with pytest.raises(CheckFailed, match=r"too often, 6 in all\nLikely: a tail is dropped\nNext: count"):
        each_once(job, [0, 1, 2, 3, 3, 3], most=2)


@pytest.mark.parametrize(
    ("is_same", "is_another", "says"),
    [
        (True, True, ""),
        (
            False,
            True,
            "the same order for the same seed\nGot: another order\nLikely: unseeded\nNext: seed it",
        ),
        (
            True,
            False,
            "another order at another seed\nGot: the same order again\nLikely: fixed\nNext: use it",
        ),
    ],
)
def test_the_same_seed_gives_the_same_and_another_another(
    job: Job, is_same: bool, is_another: bool, says: str
) -> None:
    with pytest.raises(CheckFailed, match=says) if says else contextlib.nullcontext():
        require_repeatable(
            job,
            what="order",
            is_same=is_same,
            when="for the same seed",
            unseeded="unseeded",
            look_unseeded="seed it",
            is_another=is_another,
            another="at another seed",
            fixed="fixed",
            look_fixed="use it",
        )


def test_the_first_part_that_differs_names_the_mistake(job: Job) -> None:
    right = {"order": np.arange(3), "draw": 0.5, "weights": np.ones(2)}
    parts = {"order": ("order of samples", "unseeded"), "draw": ("draw", "drawn after")}
    said = {"expected": "the WHAT again", "said": "another WHAT", "look": "at the first"}
    require_same_parts(job, right | {"weights": np.zeros(2)}, right, parts, **said)
    with pytest.raises(
        CheckFailed, match="the order of samples again\nGot: another order of samples\nLikely: un"
    ):
        require_same_parts(job, {"order": np.arange(4), "draw": 0.1}, right, parts, **said)
    with pytest.raises(CheckFailed, match="drawn after"):
        require_same_parts(job, right | {"draw": 0.1}, right, parts, **said)


def test_what_ran_where_nothing_is_counted_is_flagged(job: Job) -> None:
    watched(job, {"unwatched": 0}, "syncs are not counted")
    assert job.review == []
    watched(job, {"unwatched": 2}, "syncs are not counted")
    watched(job, {"unwatched": 3}, "they are not counted", of="run A")
    assert job.review == [
        "2 forwards or steps ran where syncs are not counted",
        "run A: 3 forwards or steps ran where they are not counted",
    ]


# Parts of exercises.


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_its_check_is_where_it_is_said_to_be(exercise: Exercise) -> None:
    assert callable(exercise.part(exercise.check))


@pytest.mark.parametrize("exercise", TIMED, ids=lambda e: e.id)
def test_the_parts_of_a_clock_are_sources_of_its_entry(exercise: Exercise) -> None:
    assert exercise.clock is not None
    parts = {name: exercise.part(getattr(exercise.clock, name)) for name in ("baseline", "reference", "slow")}
    assert all(exercise.entry in source for source in parts.values())
    assert len(set(parts.values())) == 3
    for source in parts.values():
        compile(source, exercise.id, "exec")
    assert 0 < exercise.clock.points < exercise.max_score and exercise.clock.bar > 0


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Clock)])
def test_a_clock_with_a_part_left_out_is_an_error_when_its_lesson_loads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = importlib.import_module("autograder.course").Clock
    lesson = importlib.import_module("autograder.lessons.lesson_01")

    def without(**parts: Any) -> Clock:
        return clock(**{part: value for part, value in parts.items() if part != name})

    monkeypatch.setattr("autograder.course.Clock", without)
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{name}'"):
        importlib.reload(lesson)
    monkeypatch.undo()
    importlib.reload(lesson)
