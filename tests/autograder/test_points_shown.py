"""Points as people read them: of the course on what goes back, one point or several, and no pass mark on a hand-in."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from autograder.cli.main import _parser
from autograder.common import Reason, Result, in_points
from autograder.quizzes.card import grade_html, grade_text
from autograder.quizzes.grade import GradedQuestion, QuizGrade
from autograder.show.card import result_html, result_text

RESULT = Result(id="0.1", title="A title", verdict="pass", score=1, max_score=1, reason=Reason(note="Right."))


@pytest.mark.parametrize(
    ("score", "most", "says"),
    [
        (1, None, "1 point"),
        (0.5, None, "0.5 points"),
        (0, 1, "0 of 1 point"),
        (1, 10, "1 of 10 points"),
        (2.5, 5.0, "2.5 of 5 points"),
    ],
)
def test_one_point_is_no_points(score: float, most: float | None, says: str) -> None:
    assert in_points(score, most) == says


def test_a_card_says_one_point() -> None:
    assert "1 of 1 point\n" in result_text(RESULT)
    assert re.search(r"<strong>1</strong> of 1 point</span>", result_html(RESULT))
    assert re.search(
        r"<strong>7.5</strong> of 20 points<", result_html(replace(RESULT, score=7.5, max_score=20.0))
    )


def test_points_have_a_place_of_their_own_beside_a_long_title() -> None:
    """Side by side, and not floating: below a title that fills its line, the points stood over the next words."""
    html = result_html(replace(RESULT, title="A very long title " * 10))
    assert "float" not in html and "justify-content:space-between" in html


def test_a_quiz_that_was_handed_in_passes_nothing() -> None:
    question = GradedQuestion(id="01.1", choice="a", judgement=None)
    grade = QuizGrade(lesson="01", score=1.0, max_score=3.0, passed=False, questions=(question,))
    assert "not passed yet" in grade_text(grade)
    for told in (grade_text(replace(grade, handed_in=True)), grade_html(replace(grade, handed_in=True))):
        assert "1 of 3 right" in told and "passed" not in told and "%" not in told.replace("100%", "")


@pytest.mark.parametrize("lesson", ["1", "01", "01_efficient_training_loops"])
@pytest.mark.parametrize("verb", ["grade", "report", "release", "collect"])
def test_a_lesson_is_named_by_number_or_as_by_nbgrader(verb: str, lesson: str) -> None:
    more = ["some.zip"] if verb == "collect" else []
    assert _parser().parse_args([verb, lesson, *more]).lesson == "01"


def test_no_part_of_a_name_is_taken_for_a_lesson() -> None:
    assert _parser().parse_args(["grade", "01_mixed_precision"]).lesson == "01_mixed_precision"
