"""Every exercise: the reference passes, and each named wrong solution fails with the message of its mistake."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest

from autograder.course.lessons import Exercise, lesson_ids, load_lesson
from autograder.engine.check import check_source
from autograder.engine.notebook_source import exercise_sources
from autograder.lessons.checking.mutants import Mutant, load_mutants
from tests.autograder.solutions import reference_sources

# Right solutions by people who had not seen the reference; a lesson's are written as its notebook's cells are.
ALTERNATIVES = sorted(Path(__file__).with_name("alternatives").glob("lesson_*.py"))


def _further(exercise: Exercise) -> list[pytest.MarkDecorator]:
    """CI puts one slow solution to the clock; that of every other timed exercise is a further case."""
    return [] if exercise.id == "1.2" else [pytest.mark.exhaustive]


EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
MUTANTS = [
    pytest.param(
        exercise,
        mutant,
        id=f"{exercise.id} {mutant.name}",
        marks=[pytest.mark.measures, *_further(exercise)] if mutant.is_timed else [],
    )
    for exercise in EXERCISES
    for mutant in load_mutants(exercise.id.partition(".")[0].zfill(2))[exercise.id]
]


def _alternative(exercise_id: str) -> Path:
    lesson_id = exercise_id.partition(".")[0].zfill(2)
    return Path(__file__).with_name("alternatives") / f"lesson_{lesson_id}.py"


EACH = [pytest.param(e, id=e.id, marks=[pytest.mark.measures] if e.clock else []) for e in EXERCISES]


@pytest.mark.parametrize("exercise", EACH)
def test_the_reference_gets_full_marks(exercise: Exercise) -> None:
    require_full_marks(exercise, reference_sources(exercise.id.partition(".")[0].zfill(2))[exercise.id])


def require_full_marks(exercise: Exercise, source: str) -> None:
    result = check_source(exercise.id, source)
    assert result.verdict == "pass", result.reason
    assert result.score == exercise.max_score


@pytest.mark.parametrize("path", ALTERNATIVES, ids=lambda path: path.stem)
def test_an_alternative_answers_every_exercise(path: Path) -> None:
    lesson = load_lesson(path.stem.removeprefix("lesson_"))
    assert set(exercise_sources(jupytext.read(path))) == {exercise.id for exercise in lesson.exercises}


@pytest.mark.parametrize(
    "exercise",
    [
        pytest.param(e, id=e.id, marks=[pytest.mark.measures, *_further(e)] if e.clock else [])
        for e in EXERCISES
        if _alternative(e.id).exists()
    ],
)
def test_an_alternative_gets_full_marks(exercise: Exercise) -> None:
    require_full_marks(exercise, exercise_sources(jupytext.read(_alternative(exercise.id)))[exercise.id])


@pytest.mark.parametrize(("exercise", "mutant"), MUTANTS)
def test_a_wrong_solution_fails_by_name(exercise: Exercise, mutant: Mutant) -> None:
    result = check_source(exercise.id, mutant.source)
    assert (result.verdict, result.score) == ("fail", 0), result.reason
    assert mutant.says in str(result.reason)
    assert str(result.reason).count("\n") == 3, "expected, got, likely, next"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_exercise_has_at_least_three_wrong_solutions(exercise: Exercise) -> None:
    mutants = load_mutants(exercise.id.partition(".")[0].zfill(2))[exercise.id]
    assert len({mutant.name for mutant in mutants}) >= 3
    assert 0 < exercise.clock_free_score <= exercise.max_score
