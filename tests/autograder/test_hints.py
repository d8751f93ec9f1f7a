"""Hints come one at a time, and every exercise that promises some has them."""

from __future__ import annotations

import pytest

import autograder
from autograder.course.hints import hints
from autograder.course.lessons import lesson_ids, load_lesson

EXERCISES = [exercise.id for lesson in lesson_ids() for exercise in load_lesson(lesson).exercises]


def test_every_exercise_has_hints() -> None:
    for exercise_id in EXERCISES:
        for title, text in hints(exercise_id):
            assert title.startswith("Hint") and text and "<" not in title, exercise_id


def test_each_call_shows_the_next(capfd: pytest.CaptureFixture[str]) -> None:
    titles = [title for title, _ in hints("0.1")]
    for step, title in enumerate([*titles, titles[0]]):
        autograder.hint("0.1")
        said = capfd.readouterr().out
        assert said.startswith(title.replace("`", "")), said
        assert f"Hint {step % len(titles) + 1} of {len(titles)}" in said


def test_what_is_no_exercise_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    autograder.hint("1.99")
    assert "no exercise '1.99'" in capfd.readouterr().out
