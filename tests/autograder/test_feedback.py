"""The feedback on a wrong solution of every exercise: why, what next, the plot; and no answer, key or secret input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from autograder.course.lessons import lesson_ids, load_lesson
from autograder.lessons.checking.mutants import load_mutants
from autograder.quizzes.grading import has_quiz, load_bank
from autograder.quizzes.kinds import Choice, Measured
from tests.autograder.nbgrader_course import Course, cell
from tests.autograder.solutions import reference_sources
from tests.autograder.test_grading import workbook

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

EXERCISED = [lesson_id for lesson_id in lesson_ids() if load_lesson(lesson_id).exercises]
#: A number that could be a seed, and a list of numbers that could be an input.
SEED, INPUT = re.compile(r"(?<![\d.,])\d{7,}\b"), re.compile(r"(-?\d[\d.e+-]*,\s+){7}")


@pytest.mark.parametrize(
    "lesson_id",
    [pytest.param(each, marks=[] if each == "00" else [pytest.mark.exhaustive]) for each in EXERCISED],
)
def test_a_wrong_solution_is_told_why_and_not_what(tmp_path: Path, lesson_id: str) -> None:
    lesson, mutants = load_lesson(lesson_id), load_mutants(lesson_id)
    course = Course(tmp_path, lesson.slug)
    release = course.notebook("release", lesson.slug)
    wrong = {
        each.id: next(mutant for mutant in mutants[each.id] if not mutant.is_timed)
        for each in lesson.exercises
    }
    for exercise_id, mutant in wrong.items():
        cell(release, f"exercise-{exercise_id.replace('.', '-')}").source = mutant.source
    course.submit("ada", lesson.slug, release, wrong_choices(lesson_id))
    assert workbook(course, "grade", lesson_id)["students"]["ada"]["error"] == ""
    course.nbgrader("generate_feedback", lesson.slug)

    page = BeautifulSoup(course.feedback("ada", lesson.slug), "html.parser")
    for exercise_id, mutant in wrong.items():
        (card,) = page.select(f'.workbook-card[aria-label^="Check of {exercise_id}:"]')
        told = [line.get_text() for line in card.find_all("strong")]
        assert {"Expected", "Got", "Likely", "Next"} <= set(told), (exercise_id, card.get_text())
        assert mutant.says.replace("`", "") in _flat(card.get_text()), exercise_id
    shown = "\n".join(card.get_text() for card in page.select(".workbook-card"))
    assert not SEED.search(shown) and not INPUT.search(shown), shown
    told_the_answer(page.get_text(), release, lesson_id)
    told_a_key(str(page), lesson_id)


@pytest.mark.measures
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "lesson_id",
    [each for each in EXERCISED if any(m.is_timed for ms in load_mutants(each).values() for m in ms)],
)
def test_a_slow_solution_sees_its_measurement(tmp_path: Path, lesson_id: str) -> None:
    lesson = load_lesson(lesson_id)
    slow = {
        exercise_id: next(mutant for mutant in mutants if mutant.is_timed)
        for exercise_id, mutants in load_mutants(lesson_id).items()
        if any(mutant.is_timed for mutant in mutants)
    }
    course = Course(tmp_path, lesson.slug)
    release = course.notebook("release", lesson.slug)
    for exercise_id, mutant in slow.items():
        cell(release, f"exercise-{exercise_id.replace('.', '-')}").source = mutant.source
    course.submit("ada", lesson.slug, release)
    workbook(course, "grade", lesson_id)
    course.nbgrader("generate_feedback", lesson.slug)
    page = BeautifulSoup(course.feedback("ada", lesson.slug), "html.parser")
    for exercise_id in slow:
        (card,) = page.select(f'.workbook-card[aria-label^="Check of {exercise_id}:"]')
        assert card.select("svg circle") and "asked" in card.get_text(), (exercise_id, card.get_text())


def wrong_choices(lesson_id: str) -> dict[str, str]:
    """To each question an answer that is not the right one."""
    if not has_quiz(lesson_id):
        return {}
    return {
        question.id: next(option.id for option in question.options if option.id != question.key)
        for question in load_bank(lesson_id).questions
        if isinstance(question, Choice) and not isinstance(question, Measured)
    }


def told_the_answer(text: str, submitted: NotebookNode, lesson_id: str) -> None:
    """No line of the reference stands there that the learner did not have: neither in the release nor in the cells."""
    had, flat = _flat(" ".join(each.source for each in submitted.cells)), _flat(text)
    for exercise_id, source in reference_sources(lesson_id).items():
        lines = [_flat(line) for line in source.split("\n")]
        secret = [line for line in lines if len(line) > 25 and line not in had]
        assert not [line for line in secret if line in flat], exercise_id


def told_a_key(html: str, lesson_id: str) -> None:
    """Neither the sealed keys nor why the right option is right."""
    if not has_quiz(lesson_id):
        return
    flat = _flat(BeautifulSoup(html, "html.parser").get_text())
    for question in load_bank(lesson_id).all_questions:
        assert question.sealed not in html
        if question.key:
            reason = question.judge(lesson_id, question.key).reason.replace("`", "").replace("*", "")
            assert _flat(reason) not in flat, question.id


def _flat(text: str) -> str:
    return " ".join(text.split())
