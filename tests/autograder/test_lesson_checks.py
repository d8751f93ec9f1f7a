"""Every exercise: the reference passes, and each named wrong solution fails with the message of its mistake."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.course.lessons import Exercise, lesson_ids, load_lesson
from autograder.engine.check import check_source
from autograder.lessons.checking.mutants import Mutant, load_mutants
from autograder.lessons.lesson_02.fragile import FragileClassifier
from tests.autograder.solutions import ALTERNATIVE_TEXTS, LESSONS, alternative_sources, reference_sources

#: The timed exercise whose reference stands before the clock in every run. Of the others the clock has its say over the
#: reference in `workbook test --all`, as over one slow solution; over the rest with `-m exhaustive`.
ON_THE_CLOCK, SLOW = "1.2", "1.5"
#: A reference takes its time on these clocks, and is there with `-m exhaustive`.
LONG_ON_THE_CLOCK = {"1.5", "1.6", "3.6", "7.4", "10.2"}
#: Trained in earnest to its end, the reference here and the alternative there; the other of the two is there every day.
LONG_REFERENCE, LONG_ALTERNATIVE = "10.2", "1.6"
#: The wrong solution for every day, where the exercise's first one is trained to its end before it fails.
SOON_WRONG = {"7.6": "no evaluation", "10.2": "class numbers instead of names"}
NUM_FURTHER = 5
EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
TIMED = [exercise for exercise in EXERCISES if exercise.clock]
ANSWERED_AGAIN = [
    (exercise, name)
    for exercise in EXERCISES
    for name, sources in alternative_sources(exercise.lesson_id).items()
    if exercise.id in sources
]


def _wrong_solutions() -> Iterator[Any]:
    """Every wrong solution. Of each exercise one that needs no clock is the everyday case, a few more are further ones,
    and the rest wait for `-m exhaustive`."""
    for exercise in EXERCISES:
        mutants = load_mutants(exercise.lesson_id)[exercise.id]
        soon = SOON_WRONG.get(exercise.id, "")
        first = next(mutant for mutant in mutants if not mutant.is_timed and soon in mutant.name)
        for number, mutant in enumerate(mutants):
            mark = pytest.mark.further if number < NUM_FURTHER else pytest.mark.exhaustive
            marks = [] if mutant is first else [mark]
            if mutant.is_timed:
                mark = pytest.mark.further if exercise.id == SLOW else pytest.mark.exhaustive
                marks = [pytest.mark.measures, mark]
            yield pytest.param(exercise, mutant, id=f"{exercise.id} {mutant.name}", marks=marks)


def _before_the_clock(exercise: Exercise, mark: pytest.MarkDecorator) -> list[pytest.MarkDecorator]:
    """What is timed is measured alone, and has the mark unless it is put to the clock in every run."""
    if not exercise.clock:
        return []
    if exercise.id == ON_THE_CLOCK and mark.name == "further":
        return [pytest.mark.measures]
    return [pytest.mark.measures, pytest.mark.exhaustive if exercise.id in LONG_ON_THE_CLOCK else mark]


def _tier(exercise: Exercise, name: str) -> list[pytest.MarkDecorator]:
    """A lesson's first text of alternatives is judged every day, that of odd ways seldom, and all others by hand."""
    if name.count("_") > 1 and not name.endswith("_odd"):
        return [pytest.mark.exhaustive]
    is_further = name.endswith("_odd") or exercise.id == LONG_ALTERNATIVE
    return [pytest.mark.further] if is_further else []


def _reference(exercise: Exercise) -> str:
    return reference_sources(exercise.lesson_id)[exercise.id]


def _alternative(exercise: Exercise, name: str) -> str:
    return alternative_sources(exercise.lesson_id)[name][exercise.id]


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(e, id=e.id, marks=_before_the_clock(e, pytest.mark.further)) for e in EXERCISES],
)
def test_the_reference_gets_full_marks(exercise: Exercise) -> None:
    require_full_marks(exercise, _reference(exercise))


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(e, id=e.id, marks=[pytest.mark.further] if e.id == LONG_REFERENCE else []) for e in TIMED],
)
def test_the_reference_gets_full_marks_without_the_clock(exercise: Exercise, without_the_clock: None) -> None:
    require_full_marks(exercise, _reference(exercise))


#: Of two virtual cores one may be half a core for minutes, whatever this machine does.
NEEDS_TWO_CORES = {"6.6"}


def require_full_marks(exercise: Exercise, source: str) -> None:
    """At the first check; where two whole cores are needed, at one of four, each going on from the blocks before."""
    for _ in range(4 if exercise.id in NEEDS_TWO_CORES else 1):
        result = check_source(exercise.id, source)
        if result.verdict != "inconclusive":
            break
    if result.verdict == "inconclusive" and "two processes that share nothing" in str(result.reason):
        pytest.skip(f"no solution could show {exercise.id} on this machine now: {result.reason}")
    assert result.verdict == "pass", result.reason
    assert result.score == exercise.max_score


@pytest.mark.parametrize("path", ALTERNATIVE_TEXTS, ids=lambda path: path.stem)
def test_an_alternative_answers_every_exercise(path: Path) -> None:
    lesson = load_lesson(path.stem.split("_")[1])
    answered, exercises = set(alternative_sources(lesson.id)[path.stem]), {e.id for e in lesson.exercises}
    assert answered <= exercises if path.stem.count("_") > 1 else answered == exercises


@pytest.mark.parametrize(
    ("exercise", "name"),
    [
        pytest.param(
            e,
            name,
            id=f"{e.id} {name}",
            marks=[*_tier(e, name), *_before_the_clock(e, pytest.mark.exhaustive)],
        )
        for e, name in ANSWERED_AGAIN
    ],
)
def test_an_alternative_gets_full_marks(exercise: Exercise, name: str) -> None:
    require_full_marks(exercise, _alternative(exercise, name))


@pytest.mark.parametrize(
    ("exercise", "name"),
    [
        pytest.param(e, name, id=f"{e.id} {name}", marks=_tier(e, name))
        for e, name in ANSWERED_AGAIN
        if e.clock
    ],
)
def test_an_alternative_gets_full_marks_without_the_clock(
    exercise: Exercise, name: str, without_the_clock: None
) -> None:
    require_full_marks(exercise, _alternative(exercise, name))


@pytest.mark.parametrize(("exercise", "mutant"), list(_wrong_solutions()))
def test_a_wrong_solution_fails_by_name(exercise: Exercise, mutant: Mutant) -> None:
    """Whatever is drawn, it fails. Rarely what is drawn shows another mistake as well, and then that may be named: not
    twice in three times."""
    reasons = [_reason_to_fail(exercise, mutant)]
    if mutant.says not in reasons[0]:
        reasons += [_reason_to_fail(exercise, mutant) for _ in range(2)]
    assert sum(mutant.says in reason for reason in reasons) * 2 > len(reasons), reasons


def _reason_to_fail(exercise: Exercise, mutant: Mutant) -> str:
    result = check_source(exercise.id, mutant.source)
    # Right and too slow has what needs no clock, and says so first.
    has_points = mutant.is_timed and result.score == exercise.clock_free_score
    assert result.verdict == "fail" and (result.score == 0 or has_points), result.reason
    lines = [line for line in str(result.reason).splitlines() if not line.startswith("  | ")]  # that go on
    if mutant.is_timed and not lines[0].startswith("Expected"):
        lines = lines[1:]
    assert len(lines) == 4, "expected, got, likely, next"
    return str(result.reason)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_exercise_has_at_least_three_wrong_solutions(exercise: Exercise) -> None:
    mutants = load_mutants(exercise.lesson_id)[exercise.id]
    assert len({mutant.name for mutant in mutants}) >= 3
    assert 0 < exercise.clock_free_score <= exercise.max_score


def test_the_forward_pass_that_2_5_shows_is_the_classifiers() -> None:
    shown = [
        line.removeprefix("# ").strip() for line in next(LESSONS.glob("02_*.py")).read_text().splitlines()
    ]
    body = inspect.getsource(FragileClassifier.forward).splitlines()[2:]
    assert shown[(start := shown.index(body[0].strip())) : start + len(body)] == [
        line.strip() for line in body
    ]
