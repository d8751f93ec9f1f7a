"""Answering, grading and the widgets of the quiz."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ipywidgets
import pytest

import autograder
from autograder.kept.answers import answers_file, read_answers
from autograder.quizzes.acting import check_quiz, give_answer
from autograder.quizzes.bank import PASS_MARK
from autograder.quizzes.grading import grade_quiz, load_bank
from autograder.quizzes.kinds import Choice
from autograder.quizzes.widget import QuizView
from autograder.show.rich import inline_html, plain
from course_lib.base.errors import UserError

NAME = "01_efficient_training_loops_answers.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    return tmp_path / "lesson"


def _question(number: int) -> Choice:
    question = load_bank("01").questions[number - 1]
    assert isinstance(question, Choice)
    return question


def _key(number: int) -> str:
    return _question(number).key or ""


def _wrong(number: int) -> str:
    return "a" if _key(number) != "a" else "b"


def _all_right() -> dict[str, str]:
    return {
        question.id: option.id
        for question in load_bank("01").questions
        if isinstance(question, Choice)
        for option in question.options
        if question.judge("01", option.id).is_right
    }


def test_answer_saves_at_once_and_says_why(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = _wrong(3)
    autograder.answer("01.3", wrong.upper() + " ")
    out, err = capfd.readouterr()
    assert _question(3).secret.options[wrong].mistake in out
    assert f"saved in {NAME}" in out
    assert err == ""
    saved = read_answers(folder / NAME)["01.3"]
    assert (saved["choice"], saved["first"], saved["tries"]) == (wrong, wrong, 1)


def test_the_last_choice_counts_and_the_first_is_kept(folder: Path) -> None:
    for choice in (_wrong(1), _key(1), _key(1)):
        give_answer("01.1", choice)
    saved = read_answers(folder / NAME)["01.1"]
    assert (saved["choice"], saved["first"], saved["tries"]) == (_key(1), _wrong(1), 2)
    graded = grade_quiz("01", read_answers(folder / NAME)).questions[0]
    assert graded.is_right and not graded.right_first


@pytest.mark.parametrize(
    ("question", "choice", "says"),
    [
        ("01.99", "a", "01.1 to"),
        ("99.1", "a", 'no quiz "99"'),
        ("a/b.1", "a", "no quiz"),
        ("quiz", "a", "lesson.number"),
        ("01.1", "z", "options a, b, c, d"),
        ("01.1", "", "options a, b, c, d"),
    ],
)
def test_an_answer_to_nothing_is_one_line(
    folder: Path, capfd: pytest.CaptureFixture[str], question: str, choice: str, says: str
) -> None:
    autograder.answer(question, choice)
    out, err = capfd.readouterr()
    assert says in out and len(out.strip().splitlines()) == 1 and err == ""
    assert not list(folder.iterdir())


def test_grading_needs_the_answers_alone() -> None:
    right = _all_right()
    full = grade_quiz("01", {key: {"choice": choice} for key, choice in right.items()})
    assert full.score == full.max_score == len(right)
    assert full.passed
    assert grade_quiz("01", {}).to_dict() | {"questions": []} == {
        "lesson": "01",
        "score": 0.0,
        "max_score": float(len(right)),
        "passed": False,
        "questions": [],
        "problem": "",
        "forms": [0.0],
    }


def test_the_pass_mark_is_met_by_seven_of_ten_and_missed_by_six() -> None:
    right = _all_right()
    assert len(right) == 10 and PASS_MARK == 0.7
    assert grade_quiz("01", dict(list(right.items())[:7])).passed
    assert not grade_quiz("01", dict(list(right.items())[:6])).passed


@pytest.mark.parametrize(
    "junk", [None, 7, [], {}, {"choice": ["b"]}, {"choice": None}, "bb", "B ", {"choice": {}}]
)
def test_junk_in_the_answers_counts_as_not_answered(junk: object) -> None:
    graded = grade_quiz("01", {"01.1": junk})
    assert graded.score == 0
    assert graded.questions[0].choice is None


def test_a_damaged_submission_scores_nothing_and_says_so(folder: Path) -> None:
    (folder / NAME).write_text("{")
    graded = grade_quiz("01", read_answers(folder / NAME))
    assert graded.score == 0 and "could not be read" in graded.problem


def test_check_quiz_is_a_number_with_a_card(capfd: pytest.CaptureFixture[str]) -> None:
    give_answer("01.1", _key(1))
    give_answer("01.2", _wrong(2))
    score = check_quiz("01")
    out, err = capfd.readouterr()
    assert (float(score), repr(score), err) == (1.0, "1", "")
    mistake = _question(2).secret.options[_wrong(2)].mistake
    assert mistake in out and "not passed yet (70" in out
    card = score._repr_html_()
    assert "1 of 10 right" in card and "not answered" in card


def test_a_click_saves_judges_and_is_restored(folder: Path) -> None:
    bank = load_bank("01")
    view = QuizView(bank, answers_file("01"))
    assert view.radios["01.4"].value is None
    assert not (folder / NAME).exists()

    view.radios["01.4"].value = _wrong(4)
    assert read_answers(folder / NAME)["01.4"]["choice"] == _wrong(4)
    assert "Not this one" in view.feedback["01.4"].value
    assert "saved" in view.feedback["01.4"].value
    assert "1 of 10 answered" in view.status.value and "saved" in view.status.value

    view.radios["01.4"].value = _key(4)
    assert "Right" in view.feedback["01.4"].value

    again = QuizView(bank, answers_file("01"))
    assert again.radios["01.4"].value == _key(4)
    assert "Right" in again.feedback["01.4"].value
    assert "restored" in again.status.value
    assert again.radios["01.1"].value is None and again.feedback["01.1"].value == ""


def test_widgets_are_labelled_and_hold_no_key() -> None:
    view = QuizView(load_bank("01"), answers_file("01"))
    for question in load_bank("01").questions:
        radio = view.radios[question.id]
        assert isinstance(question, Choice)
        assert isinstance(radio, ipywidgets.RadioButtons)
        assert radio.description and not radio.disabled
        for (label, letter), option in zip(radio.options, question.options, strict=True):
            assert label.startswith(f"{letter}. ") and letter == option.id
    assert "Practice release" in "".join(
        w.value for w in view.widget.children if hasattr(w, "value") and w.value
    )


def test_a_choice_that_cannot_be_saved_is_said_and_still_judged(folder: Path) -> None:
    view = QuizView(load_bank("01"), answers_file("01"))
    folder.rmdir()
    view.radios["01.4"].value = _key(4)
    assert "not saved" in view.status.value and "not saved" in view.feedback["01.4"].value
    assert "Right" in view.feedback["01.4"].value


def test_a_damaged_file_shows_in_the_quiz(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / NAME).write_text("{")
    autograder.quiz("01")
    assert "is kept as" in capfd.readouterr().out
    assert len(list(folder.glob("*.damaged-*.json"))) == 1


def test_a_saved_choice_of_another_release_is_left_alone(folder: Path) -> None:
    answers_file("01").save("01.4", {"choice": "q"})
    view = QuizView(load_bank("01"), answers_file("01"))
    assert view.radios["01.4"].value is None
    assert read_answers(folder / NAME)["01.4"]["choice"] == "q"


def test_without_a_kernel_the_quiz_is_text(capfd: pytest.CaptureFixture[str]) -> None:
    give_answer("01.3", "c")
    autograder.quiz("01")
    out = capfd.readouterr().out
    assert 'answer("01.1", "b")' in out
    assert "(•) c  about 90 %" in out and "( ) a  about 30 %" in out
    autograder.quiz("99")
    assert 'no quiz "99"' in capfd.readouterr().out


def test_unknown_questions_raise_for_programmers() -> None:
    with pytest.raises(UserError):
        give_answer("01.77", "a")


@pytest.mark.parametrize(
    "imports",
    [
        "from autograder import quiz, predict",
        "from autograder import check_quiz, compare, quiz, predict",
        "import autograder.quizzes.acting, autograder.kernel.predictions; from autograder import quiz, predict",
        "from autograder.quizzes.acting import grade_quiz; from autograder import quiz, predict",
    ],
)
def test_quiz_and_predict_are_functions_whatever_was_imported_before(imports: str) -> None:
    code = f"{imports}\nquiz('01'); predict('1a', 'How much?')\n"
    code += "import sys; assert 'torch' not in sys.modules"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Quiz 01") and "How much?" in ran.stdout


def test_marks_of_a_text_are_shown_or_taken_off_and_code_stays() -> None:
    text = "**Bold**, *two words*, 2 * 3 * 4, f(*args) and `g(*a, **k) * b`"
    assert plain(text) == "Bold, two words, 2 * 3 * 4, f(*args) and g(*a, **k) * b"
    marked = "<strong>Bold</strong>, <em>two words</em>, 2 * 3 * 4, f(*args) and <code>g(*a, **k) * b</code>"
    assert inline_html(text) == marked
