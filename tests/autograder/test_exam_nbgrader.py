"""The exam through stock nbgrader: an empty submission, one with right answers, one with another's seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.kept.answers import AnswersFile, read_answers
from autograder.quizzes import exams
from autograder.quizzes.grading import load_bank
from autograder.quizzes.kinds import Choice
from tests.autograder.nbgrader_course import Course

pytestmark = pytest.mark.slow
SLUG = "09_skill_exam"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = Course(tmp_path_factory.mktemp("course"), SLUG)
    place = exams.Place(seed=77, attempt=1, handed_in=0)
    right = {
        question.id: option.id
        for question in exams.paper(load_bank("09"), place).questions
        if isinstance(question, Choice)
        for option in question.options
        if question.judge("09", option.id).is_right
    }
    for student, choices, seed in (("empty", {}, 0), ("full", right, 77), ("forger", right, 78)):
        course.submit(student, SLUG, course.notebook("release", SLUG), choices)
        if choices:
            answers = _answers(course, student)
            AnswersFile(answers, "09").save("exam", {"seed": seed, "attempt": 1, "handed_in": 1})
    course.nbgrader("autograde", SLUG)
    course.nbgrader("generate_feedback", SLUG)
    return course


def _answers(course: Course, student: str) -> Path:
    return course.root / "submitted" / student / SLUG / f"{SLUG}_answers.json"


def test_scores_and_feedback(course: Course) -> None:
    assert course.scores("empty", SLUG) == {"quiz-09": 0.0}
    assert course.scores("full", SLUG) == {"quiz-09": 15.0}
    assert (course.scores("forger", SLUG)["quiz-09"] or 0) < 11
    assert "came without its answers file" in course.feedback("empty", SLUG)
    assert "15 of 15 right" in course.feedback("full", SLUG)


def test_grading_leaves_the_answers_as_they_were_handed_in(course: Course) -> None:
    graded = course.root / "autograded" / "full" / SLUG / f"{SLUG}_answers.json"
    assert read_answers(graded) == read_answers(_answers(course, "full"))
