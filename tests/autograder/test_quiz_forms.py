"""Second attempts at a lesson's quiz: other questions, both kept, the better form counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import autograder
from autograder.course.lessons import load_lesson
from autograder.kept import progress
from autograder.kept.answers import answers_file, read_answers
from autograder.notebooks import check as notebook_check
from autograder.quizzes import grading as quiz_grading
from autograder.quizzes.acting import check_quiz, give_answer
from autograder.quizzes.compiler import compile_bank
from autograder.quizzes.grading import grade_quiz, load_bank
from autograder.quizzes.widget import FormsView

NAME = "01_efficient_training_loops_answers.json"
#: The right options; 01.3 has no second form, so it stands in both.
KEYS = {"01.1": "a", "01.1b": "b", "01.2": "b", "01.2b": "c", "01.3": "c"}


def _question(question_id: str, key: str) -> str:
    options = [
        f'[[question.option]]\ntext = "{letter}{letter}"\nreason = "since"\n'
        + ("right = true\n" if letter == key else 'mistake = "m"\n')
        for letter in "abc"
    ]
    head = f'[[question]]\nid = "{question_id}"\nkind = "bug"\ntext = "What of {question_id}?"\n'
    return head + "".join(options)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A learner's folder, and lesson 01 with a quiz of these questions."""
    text, bank = tmp_path / "01_quiz.toml", tmp_path / "quiz.json"
    text.write_text(
        'lesson = "01"\ntitle = "T"\n' + "".join(_question(name, key) for name, key in KEYS.items())
    )
    bank.write_text(json.dumps(compile_bank(text).to_dict()))
    monkeypatch.setattr(quiz_grading, "_bank_path", lambda lesson_id: bank)
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    load_bank.cache_clear()
    yield tmp_path / "lesson"
    load_bank.cache_clear()


def _view() -> FormsView:
    return FormsView(load_bank("01"), answers_file("01"))


def _shown(capfd: pytest.CaptureFixture[str], *, new_attempt: bool = False) -> str:
    autograder.quiz("01", new_attempt=new_attempt)
    return capfd.readouterr().out


def test_a_second_attempt_has_other_questions_and_both_sets_of_answers_stay(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    give_answer("01.1", "a")
    out = _shown(capfd, new_attempt=True)
    assert "no answer yet to 2 of 3: 01.2, 01.3" in out and "01.2  What of 01.2?" in out

    for name in ("01.2", "01.3"):
        give_answer(name, "c")
    out = _shown(capfd, new_attempt=True)
    assert "T, other questions" in out and "What of 01.1b?" in out and "What of 01.1?" not in out
    assert "(•) c  cc" in out.partition("01.3  ")[2]  # without a second form the question stands in, answered
    out = _shown(capfd, new_attempt=True)  # the cell is run again
    assert "these questions go on" in out and "What of 01.1b?" in out

    shutil.copytree(folder, tmp_path / "other machine")
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "other data"))
    monkeypatch.chdir(tmp_path / "other machine")
    assert "What of 01.1b?" in _shown(capfd)
    for name in ("01.1b", "01.2b"):
        give_answer(name, "b")
    out = _shown(capfd, new_attempt=True)
    assert "What of 01.1?" in out and "(•) a  aa" in out
    kept = read_answers(NAME)
    assert {name: kept[name]["choice"] for name in KEYS} == dict(zip(KEYS, "abcbc", strict=True))


@pytest.mark.parametrize(
    ("first", "second", "forms", "score"),
    [("aac", "", [2], 2), ("abc", "aa", [3, 1], 3), ("cac", "bc", [1, 3], 3), ("", "bc", [0, 2], 2)],
)
def test_the_better_form_counts(first: str, second: str, forms: list[int], score: int) -> None:
    given = dict(zip(("01.1", "01.2", "01.3"), first, strict=False))
    given |= dict(zip(("01.1b", "01.2b"), second, strict=False))
    graded = grade_quiz("01", given)
    assert (graded.forms, graded.score, graded.max_score) == (tuple(forms), score, 3)
    assert graded.passed == (score == 3)
    assert sum(question.is_right for question in graded.questions) == score


def test_every_way_of_grading_takes_the_better_form(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, choice in {"01.1": "c", "01.2": "c", "01.3": "c", "01.1b": "b", "01.2b": "c"}.items():
        give_answer(name, choice)
    score = check_quiz("01")
    card, text = score._repr_html_(), capfd.readouterr().out
    for shown in (card, text):
        assert "3 of 3 right" in shown and "1 of the first questions, 3 of the other ones" in shown
        assert "01.2b" in shown
    assert float(score) == 3
    # What `workbook check`, pytest and nbgrader ask.
    graded = notebook_check._grade_quiz(load_lesson("01"), folder)
    assert graded and graded.score == 3 and graded.passed
    done = progress.summary().lessons["01"]
    assert done.answered == 3 and done.quiz and done.quiz.score == 3


def test_the_button_turns_once_all_are_answered_and_back_at_any_time(folder: Path) -> None:
    view = _view()
    assert view.button.disabled and view.button.description == "Other questions"
    assert "come once all are answered" in view.status.value
    for name in ("01.1", "01.2", "01.3"):
        view.questions.radios[name].value = "a"
    assert not view.button.disabled and "come once" not in view.status.value

    view.button.click()
    assert list(view.questions.radios) == ["01.1b", "01.2b", "01.3"]
    assert [radio.value for radio in view.questions.radios.values()] == [None, None, "a"]
    view.questions.radios["01.2b"].value = "c"
    again = _view()  # after a restart
    assert again.button.description == "First questions" and not again.button.disabled
    assert [radio.value for radio in again.questions.radios.values()] == [None, "c", "a"]
    assert "Right" in again.questions.feedback["01.2b"].value

    again.button.click()
    assert [radio.value for radio in again.questions.radios.values()] == ["a", "a", "a"]
    assert read_answers(NAME)["01.2b"]["choice"] == "c"
    # The other view still shows the second form: its button does what it says.
    view.button.click()
    assert list(view.questions.radios) == ["01.1", "01.2", "01.3"]


def test_a_turn_that_cannot_be_saved_is_said_and_nothing_turns(folder: Path) -> None:
    view = _view()
    for radio in view.questions.radios.values():
        radio.value = "a"
    shutil.rmtree(folder)
    view.button.click()
    assert "not saved" in view.status.value and "01.1" in view.questions.radios


@pytest.mark.parametrize("junk", [{"form": "third"}, {"form": ["second"]}, {}])
def test_a_place_that_no_quiz_wrote_shows_the_first_form(
    junk: dict, capfd: pytest.CaptureFixture[str]
) -> None:
    answers_file("01").save("quiz", junk)
    assert "What of 01.1?" in _shown(capfd)


def test_a_quiz_without_other_questions_says_so(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bank = replace(load_bank("01"), second_forms=())
    (tmp_path / "quiz.json").write_text(json.dumps(bank.to_dict()))
    load_bank.cache_clear()
    out = _shown(capfd, new_attempt=True)
    assert "quiz 01 has no other questions" in out and "What of 01.1?" in out
    assert "new_attempt" not in out
    assert "forms" not in grade_quiz("01", {}).to_dict()
