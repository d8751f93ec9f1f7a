"""Exercises that draw: every student has values of their own, the cell says whose, and another's stand out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import autograder
from autograder.course.draws import drawn, values_of
from autograder.course.lessons import Exercise, Lesson, find_exercise, load_lesson
from autograder.engine import check as engine_check
from autograder.engine import rules
from autograder.engine.job import Job
from autograder.engine.source.drawn import student_in
from autograder.grading.submissions import Submission
from autograder.grading.terms.drawn import for_others
from course_lib.base.errors import UserError

EXERCISE = Exercise(
    id="1.8", entry="width", check="no.matter", draws={"multiple": (8, 12, 16, 20), "cap": (64, 96)}
)
CELL = 'STUDENT = "{}"\n\n\n@exercise("1.8")\ndef width(lengths):\n    return max(lengths)\n'


def test_a_draw_is_for_ever() -> None:
    """On every machine, with every version of Python: a grade a year later is of the same values."""
    found = {name: values_of(EXERCISE, name) for name in ("ada", "bo", "żółw")}
    assert found == FOR_EVER
    assert values_of(EXERCISE, " ADA ") == found["ada"] and values_of(EXERCISE, " ") == {}


FOR_EVER = {
    "ada": {"multiple": 16, "cap": 64},
    "bo": {"multiple": 12, "cap": 96},
    "żółw": {"multiple": 12, "cap": 96},
}


def test_every_value_is_drawn_about_as_often() -> None:
    names = [f"student{number}" for number in range(2000)]
    for key, options in EXERCISE.draws.items():
        times = Counter(values_of(EXERCISE, name)[key] for name in names)
        assert sorted(times) == sorted(options)
        assert max(times.values()) < 1.25 * min(times.values())
    other = replace(EXERCISE, id="1.9")
    assert sum(values_of(EXERCISE, name) == values_of(other, name) for name in names) < len(names) / 4


@pytest.mark.parametrize(
    ("cell", "student"),
    [
        (CELL.format("ada"), "ada"),
        (CELL.format(" ada "), "ada"),
        ('STUDENT: str = "ada"\n', "ada"),
        ('STUDENT = "ada"\nSTUDENT = "bo"\n', "bo"),
        ('%time x = 1\nSTUDENT = "ada"\n', "ada"),
        ("STUDENT = 7\n", ""),
        ('# STUDENT = "ada"\n', ""),
        ('def f():\n    STUDENT = "ada"\n', ""),
        ("STUDENT = (\n", ""),
        ("x = 1\n", ""),
    ],
)
def test_a_cell_says_whose_values_it_is_for(cell: str, student: str) -> None:
    assert student_in(cell) == student
    assert Job.of(EXERCISE, cell, "").drawn == values_of(EXERCISE, student)


def test_who_names_nobody_is_told_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = replace(EXERCISE, id="0.1", entry=find_exercise("0.1")[1].entry)
    monkeypatch.setattr(engine_check, "find_exercise", lambda _: (load_lesson("00"), exercise))
    result = engine_check.check_source("0.1", f"@exercise('0.1')\ndef {exercise.entry}(*_):\n    return 1\n")
    assert (result.verdict, result.score) == ("fail", 0)
    assert 'STUDENT = "ada"' in str(result.reason) and 'drawn("0.1", STUDENT)' in str(result.reason)


def test_a_solution_for_another_student_stands_out() -> None:
    lesson = Lesson(id="01", slug="01_x", exercises=(EXERCISE, replace(EXERCISE, id="1.7", draws={})))

    def told(student: str, source: str) -> list[str]:
        sources = {"1.8": source, "1.7": CELL.format("bo")}
        submission = Submission(
            student=student, folder=Path(), cells=(), answers=None, sources=sources, problems=()
        )
        return for_others(submission, lesson)

    assert told("ada", CELL.format("Ada")) == []
    assert told("ada", CELL.replace('STUDENT = "{}"\n', "")) == []
    assert told("cy", CELL.format("ada")) == ["1.8: solved with the values of “ada”, and handed in by “cy”"]


def test_how_it_is_drawn_is_part_of_a_grades_key(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson, exercise = find_exercise("0.1")
    place = rules.ROOT / "autograder" / "course" / "draws.py"
    for draws, is_part in (({}, False), ({"a": (1, 2)}, True)):
        given = replace(exercise, draws=draws)
        monkeypatch.setattr(rules, "find_exercise", lambda _, given=given: (lesson, given))
        rules._deciding.cache_clear()
        assert (place in rules._deciding("0.1", rules.ROOT)) == is_part
    rules._deciding.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("1.1", "ada"), "is the same for everybody"),
        (("1.99", "ada"), "no exercise"),
        (("x", "ada"), "no lesson"),
    ],
)
def test_what_cannot_be_drawn_is_told(arguments: tuple[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        drawn(*arguments)
    assert autograder.drawn is drawn
