"""An exam with a clock: when it begins and ends, who has more of it, and what the grader makes of the times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autograder
from autograder.course.lessons import load_lesson
from autograder.grading.submissions import Submission
from autograder.grading.terms.keys import bank_of_hand_in, exam_doubts, grading_bank
from autograder.kept.answers import AnswersFile, read_answers
from autograder.quizzes import exam_time, exams
from autograder.quizzes.acting import check_quiz, give_answer
from autograder.quizzes.exam_widget import ExamView
from autograder.quizzes.grading import grade_quiz, load_bank
from autograder.quizzes.kinds import Choice
from course_lib.base.errors import UserError

SLUG = "09_skill_exam"
NAME = f"{SLUG}_answers.json"
BANK = load_bank("09")
NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    Path(f"{SLUG}_time.json").write_text('{"minutes": 45}')
    return tmp_path / "lesson"


def _began(minutes_ago: float, **more: object) -> None:
    """An open attempt that began so long ago."""
    began = (datetime.now(UTC) - timedelta(minutes=minutes_ago)).isoformat()
    entry = {"seed": 7, "attempt": 1, "handed_in": 0, "began": {"1": began}, **more}
    AnswersFile(NAME, "09").save("exam", entry)


def _answers(began: datetime, ats: list[float], **more: object) -> dict[str, Any]:
    """An attempt with right answers, each so many minutes after it began."""
    place = exams.Place(seed=7, attempt=1, handed_in=1)
    questions = [question for question in exams.paper(BANK, place).questions if not question.is_measured]
    entry = {"seed": 7, "attempt": 1, "handed_in": 1, "began": {"1": began.isoformat()}, **more}
    return {"exam": entry} | {
        question.id: {"choice": question.key, "at": (began + timedelta(minutes=at)).isoformat()}
        for question, at in zip(questions, ats, strict=False)
        if isinstance(question, Choice)
    }


def _score(bank_minutes: float, answers: dict[str, Any]) -> float | None:
    from dataclasses import replace

    return grade_quiz("09", answers, bank=replace(BANK, minutes=bank_minutes)).score


# On the learner's machine


def test_opening_the_page_starts_no_clock(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    autograder.exam("09", more_time=1.5)
    out = capfd.readouterr().out
    assert "15 questions in 67.5 minutes" in out and "new_attempt=True, more_time=1.5" in out
    assert not (folder / NAME).exists()
    view = ExamView(BANK, AnswersFile(NAME, "09"), more_time=1.5)
    assert view.button.description == "Begin" and not (folder / NAME).exists()
    view.button.click()
    entry = read_answers(NAME)["exam"]
    assert entry["more_time"] == 1.5 and datetime.now(UTC) - datetime.fromisoformat(
        entry["began"]["1"]
    ) < timedelta(minutes=1)
    assert view.button.description == "Hand in" and "(67.5 minutes)" in view.status.value


def test_answers_are_taken_until_the_time_is_over(capfd: pytest.CaptureFixture[str]) -> None:
    _began(44.5)
    give_answer("09.1.1", "a")
    _began(45.5)
    with pytest.raises(UserError, match=r'45 minutes of attempt 1 are over.*check_quiz\("09"\)'):
        give_answer("09.1.2", "a")
    _began(45.5, more_time=1.5)
    give_answer("09.1.2", "a")
    _began(68, more_time=1.5)
    check_quiz("09")  # hands in, with questions left open
    place = exams.place_in(read_answers(NAME))
    assert place is not None and not place.is_open


def test_the_widget_hands_in_what_is_over() -> None:
    _began(44)
    view = ExamView(BANK, AnswersFile(NAME, "09"))
    assert "takes answers until" in view.status.value
    _began(46)
    view.button.click()
    assert view.button.description == "Begin another attempt"
    assert all(radio.disabled for radio in view.questions.radios.values())


@pytest.mark.parametrize("more_time", [0.5, 11, "1.5", float("nan")])
def test_no_other_number_is_taken(more_time: Any, capfd: pytest.CaptureFixture[str]) -> None:
    autograder.exam("09", more_time=more_time)
    assert "from 1 to 10" in capfd.readouterr().out


def test_without_a_clock_all_is_as_before(folder: Path) -> None:
    (folder / f"{SLUG}_time.json").unlink()
    autograder.exam("09")
    _began(10_000)
    give_answer("09.1.1", "a")


def test_a_damaged_file_of_the_time_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / f"{SLUG}_time.json").write_text("{")
    autograder.exam("09")
    assert f"{SLUG}_time.json cannot be read" in capfd.readouterr().out


# In the grader


def test_what_came_after_the_granted_time_does_not_count() -> None:
    answers = _answers(NOW, [1, 2, 44, 46, 60, 70])
    assert _score(0, answers) == 6
    assert _score(45, answers) == 3
    assert _score(67.5, answers) == 5
    grade = grade_quiz("09", answers, bank=exam_time.timed(BANK, 45, {}))
    assert grade.problem == "attempt 1: 3 answers came after its 45 minutes, and count as not given"


def test_a_claim_gains_nothing_and_is_told() -> None:
    answers = _answers(NOW, [1, 46, 200], more_time=9)
    bank = exam_time.timed(BANK, 45, {})
    assert grade_quiz("09", answers, bank=bank).score == 1
    assert exam_time.doubts(bank, answers) == [
        "the exam ran with 9 × the time, and the course granted 1 ×",
        "attempt 1: 2 answers came after its 45 minutes, and count as not given",
    ]
    assert not exam_time.doubts(exam_time.timed(BANK, 405, {}), answers, granted=9)


def test_times_that_do_not_fit_together_are_told() -> None:
    bank = exam_time.timed(BANK, 45, {})
    earlier = _answers(NOW, [-5, 2])
    unknown = _answers(NOW, [1, 2]) | {"09.1.15": {"choice": "a"}}
    without = _answers(NOW, [1, 2, 50])
    del without["exam"]["began"]
    for answers in (earlier, unknown, without):
        assert "attempt 1: the times in its answers file do not fit together" in exam_time.doubts(
            bank, answers
        )
    assert grade_quiz("09", without, bank=bank).score == 2, "from the first answer on"
    assert not exam_time.doubts(bank, _answers(NOW, [1, 2]))


def test_the_course_knows_what_it_granted(tmp_path: Path) -> None:
    lesson, root = load_lesson("09"), tmp_path / "course"
    (root / "release" / SLUG).mkdir(parents=True)
    (root / "nbgrader_config.py").touch()
    assert grading_bank(root, lesson, "ada").minutes == 0
    (root / "release" / SLUG / f"{SLUG}_time.json").write_text('{"minutes": 40}')
    (root / "accommodations.csv").write_text("student,lesson,exam_time\nada,,1.5\nbo,08,2\n")
    assert [grading_bank(root, lesson, name).minutes for name in ("ada", "bo")] == [60, 40]
    bank_for = bank_of_hand_in(root / "submitted" / "ada" / SLUG / f"{SLUG}.ipynb")
    assert bank_for is not None and bank_for(lesson).minutes == 60
    handed_in = tmp_path / "answers.json"
    handed_in.write_text(json.dumps({"answers": _answers(NOW, [1, 50])}))

    def told(student: str) -> list[str]:
        return exam_doubts(
            root,
            lesson,
            Submission(student=student, folder=root, cells=(), answers=handed_in, sources={}, problems=()),
        )

    assert told("ada") == []
    assert told("bo") == ["attempt 1: 1 answer came after its 40 minutes, and count as not given"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TIMES = st.sampled_from(["9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00", "2027-02-01", "x"]) | JSON


@settings(deadline=None)
@given(began=JSON | st.dictionaries(st.sampled_from(["1", "2"]), TIMES), at=TIMES, more_time=JSON)
def test_no_time_can_stop_the_grader(began: Any, at: Any, more_time: Any) -> None:
    exam = {"seed": 1, "attempt": 2, "handed_in": 1, "began": began, "more_time": more_time}
    answers = {"exam": exam} | {f"09.{n}.1": {"choice": "a", "at": at} for n in (1, 2)}
    bank = exam_time.timed(BANK, 45, answers)
    grade = grade_quiz("09", answers, bank=bank)
    assert grade.score is not None and 0 <= grade.score <= 2
    exam_time.doubts(bank, answers)
