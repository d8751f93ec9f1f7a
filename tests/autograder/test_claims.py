"""No sentence of an exercise without a wrong solution that goes against it."""

from __future__ import annotations

import re

import pytest

from autograder.course import lesson_ids, load_lesson
from autograder.course.lessons import Exercise
from autograder.lessons.checking.mutants import EXPLAINS, load_claims, load_mutants
from tests.autograder.exercise_texts import exercise_text, one_line

EXERCISES = [exercise for lesson_id in lesson_ids() for exercise in load_lesson(lesson_id).exercises]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_sentence_is_claimed(exercise: Exercise) -> None:
    text, claims = exercise_text(exercise.id), load_claims(exercise.lesson_id)[exercise.id]
    quotes = [one_line(quote) for quote in claims]
    assert [quote for quote in quotes if quote not in text.whole] == [], "not in the exercise's text"
    unclaimed = [
        sentence for sentence in text.sentences if not any(q in sentence or sentence in q for q in quotes)
    ]
    assert unclaimed == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_claim_has_its_wrong_solution(exercise: Exercise) -> None:
    text, claims = exercise_text(exercise.id), load_claims(exercise.lesson_id)[exercise.id]
    names = {mutant.name for mutant in load_mutants(exercise.lesson_id)[exercise.id]}
    violated = {quote: wrong for quote, wrong in claims.items() if wrong != EXPLAINS}
    assert [name for wrong in violated.values() for name in wrong if name not in names] == []
    assert [quote for quote, wrong in violated.items() if not wrong] == []
    told = one_line(" ".join(violated))
    words = text.parameters | text.keys | text.errors
    assert {word for word in words if not re.search(rf"\b{word}\b", told)} == set()
