"""A student asks about a grade: in the notebook, listed, checked anew, and on the page; whatever the words are."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from autograder import ask
from autograder.cli.main import main
from autograder.common.result import Reason
from autograder.grading.handed_in.regrading import regrade, regraded_text
from autograder.grading.handed_in.returning import _Pages
from autograder.grading.marking import grade
from autograder.grading.nbgrader.asked import asked_by
from autograder.grading.units import Unit, results_of
from autograder.kept.answers import AnswersFile, read_answers
from autograder.kept.questions import MAX_QUESTION, question_key, questions_in
from course_lib.base.errors import UserError
from tests.autograder.nbgrader_course import LESSON_00, Course, cell, with_solutions

ANSWERS = f"{LESSON_00}_answers.json"
WHY = "Is it the order?\nI think that mine is right."
HOSTILE = "</blockquote><script>alert(1)</script> **Your grade: 100** \x1b[2J\u202e $\\href{x}{y}$ [a](javascript:1)"


def test_a_question_is_kept_in_the_answers_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ask("0.1", "first")
    ask("0.1", f"  {WHY} ")
    assert f"saved in {ANSWERS}" in capsys.readouterr().out
    assert questions_in(read_answers(tmp_path / ANSWERS)) == {"0.1": WHY}
    for wrong in ("", " \n", "x" * (MAX_QUESTION + 1)):
        ask("0.1", wrong)
        assert "a question has 1 to 2,000 characters" in capsys.readouterr().out
    ask("0.77", "what?")
    assert "0.77" in capsys.readouterr().out
    assert questions_in(read_answers(tmp_path / ANSWERS)) == {"0.1": WHY}


@pytest.mark.parametrize(
    "entry", [{"text": 3}, {"text": ["x"]}, {}, {"text": "\x00"[:0]}, {"text": None}, {"words": "x"}]
)
def test_what_is_no_question_is_none(entry: dict[str, object]) -> None:
    assert questions_in({question_key("0.1"): entry, "ask:": entry, "01.3": {"text": "x"}}) == {}


def test_a_strangers_file_is_bounded() -> None:
    assert len(questions_in({"ask:0.1": {"text": "y" * 10**6}})["0.1"]) == MAX_QUESTION
    assert questions_in({"ask:0.1": "no entry", "problem": "x"}) == {}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A class of two, graded: ada's is right, bo's is not written."""
    course = Course(tmp_path_factory.mktemp("regrade"), LESSON_00)
    source = course.notebook("source", LESSON_00)
    right = with_solutions(course.notebook("release", LESSON_00), source, "0.1")
    course.submit("ada", LESSON_00, right)
    wrong = with_solutions(course.notebook("release", LESSON_00), source, "0.1")
    here = cell(wrong, "exercise-0-1")
    here.source = here.source.replace("return ", "return 2 * ")
    course.submit("bo", LESSON_00, wrong)
    grade("00", course.root)
    return course


@pytest.fixture
def course(made: Course, tmp_path: Path) -> Path:
    root = tmp_path / "course"
    shutil.copytree(made.root, root)
    config = root / "nbgrader_config.py"
    config.write_text(config.read_text().replace(str(made.root), str(root)))
    return root


def asks(course: Path, student: str, text: str, exercise: str = "0.1") -> None:
    path = course / "submitted" / student / LESSON_00 / ANSWERS
    AnswersFile(path, "00").save(question_key(exercise), {"text": text})


def page_of(course: Path, student: str) -> BeautifulSoup:
    return BeautifulSoup(_Pages(course, LESSON_00).page(student).decode(), "html.parser")


def test_a_question_is_checked_anew_once_and_answered_on_the_page(course: Path) -> None:
    asks(course, "bo", WHY)
    found = regrade("00", course)
    [question] = found.questions
    assert found.checked == 1 and not found.problems and not question.is_answered
    asked = question.asked
    assert (question.student, asked.text, asked.then, asked.now) == ("bo", WHY, "fail", "fail")
    assert asked.confirmed and "-again" in asked.evidence
    assert "without an answer: 1" in regraded_text(found)
    [card] = page_of(course, "bo").select('[aria-label="Your question about 0.1"]')
    assert card.blockquote and card.blockquote.get_text() == WHY
    assert "That is what the grade rests on" in card.get_text() and "has not answered yet" in card.get_text()

    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.find_comment("exercise-0-1", LESSON_00, LESSON_00, "bo").manual_comment = "Yes, the order."
        gradebook.db.commit()
    again = regrade("00", course)
    assert again.checked == 0 and again.questions[0].is_answered and "(answered)" in regraded_text(again)
    page = page_of(course, "bo")
    assert "The answer of your instructor" in page.get_text() and "Yes, the order." in page.get_text()
    assert not page_of(course, "ada").select('[aria-label^="Your question"]')
    # Nothing of it has changed a grade.
    assert grade("00", course).checked == 0


def test_a_grade_that_the_new_check_does_not_confirm_is_told_and_left(course: Path) -> None:
    asks(course, "ada", "Why none?")
    results = results_of(course)
    source = next(each for each in _sources(course, "ada"))
    then = results.get(source)
    assert then and then.verdict == "pass"
    results.put(source, replace(then, verdict="fail", score=0, reason=Reason(note="no"), evidence=None))
    [question] = regrade("00", course).questions
    assert question.asked.confirmed is False and question.asked.now == "pass"
    assert "NOT confirmed" in regraded_text(regrade("00", course))
    card = page_of(course, "ada").select_one('[aria-label="Your question about 0.1"]')
    assert card and "rests on a check that came to 0 points" in card.get_text()


def _sources(course: Path, student: str) -> list[Unit]:
    from autograder.course.lessons import load_lesson
    from autograder.grading.submissions import read_submission
    from autograder.grading.units import units_of

    return units_of(read_submission(course, student, load_lesson("00")), load_lesson("00"))


def test_questions_that_came_later_change_no_hand_in(course: Path, tmp_path: Path) -> None:
    later = tmp_path / "questions" / "bo"
    later.mkdir(parents=True)
    AnswersFile(later / ANSWERS, "00").save(question_key("0.1"), {"text": "later"})
    (later / f"{LESSON_00}.ipynb").write_text("{}")
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert {each.id for each in gradebook.students} >= {"ada", "bo"}
    stranger = tmp_path / "questions" / "nobody"
    shutil.copytree(later, stranger)
    before = {path: path.read_bytes() for path in (course / "submitted").rglob("*") if path.is_file()}
    found = regrade("00", course, [later.parent])
    assert [each.asked.text for each in found.questions] == ["later"]
    assert [each.name for each in found.unassigned] == ["nobody"]
    after = {path: path.read_bytes() for path in (course / "submitted").rglob("*") if path.is_file()}
    assert before == after
    assert [each.text for each in asked_by(course, LESSON_00, "bo")] == ["later"]
    # It stays, without the folder.
    assert [each.asked.text for each in regrade("00", course).questions] == ["later"]


def test_what_a_student_writes_stays_text(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asks(course, "bo", HOSTILE)
    assert main(["regrade", "00", "--course", str(course)]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\u202e" not in said and "\\x1b" in said
    assert main(["regrade", "00", "--json", "--course", str(course)]) == 0
    assert json.loads(capsys.readouterr().out)["questions"][0]["asked"]["exercise"] == "0.1"
    page = page_of(course, "bo")
    assert not page.find_all("script") and not page.select('a[href*="javascript"]')
    [card] = page.select('[aria-label="Your question about 0.1"]')
    assert card.blockquote and not card.blockquote.find_all(True)
    assert "<script>alert(1)</script> **Your grade: 100** \\x1b[2J\\u202e" in card.blockquote.get_text()
    assert "tex2jax_ignore" in card["class"]


def test_what_cannot_be_checked_is_a_line_and_the_others_are(course: Path) -> None:
    asks(course, "bo", "mine?")
    asks(course, "ada", "mine?")
    shutil.rmtree(course / ".workbook" / "results")
    grade("00", course, students=["bo"])
    found = regrade("00", course)
    assert [each.student for each in found.questions] == ["bo"]
    assert len(found.problems) == 1 and "ada, 0.1: there is no grade of it" in found.problems[0]


def test_a_path_that_is_not_there_is_named(course: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no"):
        regrade("00", course, [tmp_path / "none"])
