"""Every exercise: the reference passes, and each named wrong solution fails with the message of its mistake."""

from __future__ import annotations

import pytest

from autograder.engine import check_source
from autograder.lessons import Exercise, Mutant, lesson_ids, load_lesson, load_mutants
from tests.autograder.solutions import reference_sources

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]
MUTANTS = [
    pytest.param(
        exercise,
        mutant,
        id=f"{exercise.id} {mutant.name}",
        marks=[pytest.mark.measures] if mutant.is_timed else [],
    )
    for exercise in EXERCISES
    for mutant in load_mutants(exercise.id.partition(".")[0].zfill(2))[exercise.id]
]


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(e, id=e.id, marks=[pytest.mark.measures] if "speed" in e.kinds else []) for e in EXERCISES],
)
def test_the_reference_gets_full_marks(exercise: Exercise) -> None:
    source = reference_sources(exercise.id.partition(".")[0].zfill(2))[exercise.id]
    result = check_source(exercise.id, source)
    assert result["verdict"] == "pass", result["reason"]
    assert result["score"] == exercise.max_score


@pytest.mark.parametrize(("exercise", "mutant"), MUTANTS)
def test_a_wrong_solution_fails_by_name(exercise: Exercise, mutant: Mutant) -> None:
    result = check_source(exercise.id, mutant.source)
    assert (result["verdict"], result["score"]) == ("fail", 0), result["reason"]
    assert mutant.says in result["reason"]
    assert result["reason"].count("\n") == 3, "expected, got, likely, next"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_exercise_has_at_least_three_wrong_solutions(exercise: Exercise) -> None:
    mutants = load_mutants(exercise.id.partition(".")[0].zfill(2))[exercise.id]
    assert len({mutant.name for mutant in mutants}) >= 3
    assert 0 < exercise.clock_free_score <= exercise.max_score
