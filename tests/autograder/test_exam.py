"""The exam: what an attempt draws, that it is the same wherever it is opened, and what counts."""

from __future__ import annotations

import html
import itertools
import json
import math
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autograder
from autograder.cli.main import main
from autograder.kept import progress
from autograder.kept.answers import AnswersFile, answers_file, read_answers
from autograder.learner.progress_view import progress_html
from autograder.quizzes import exams
from autograder.quizzes.acting import check_quiz, give_answer, hand_in
from autograder.quizzes.bank import Bank
from autograder.quizzes.exam_widget import ExamView
from autograder.quizzes.exams import MAX_ATTEMPTS, NUM_SEEDS, Place
from autograder.quizzes.grading import grade_quiz, load_bank
from autograder.quizzes.kinds import Choice, Measured, measure
from autograder.quizzes.question import Question
from autograder.show.rich import plain
from course_lib.base.errors import UserError

NAME = "09_skill_exam_answers.json"
BANK = load_bank("09")
LESSONS = [f"{number:02}" for number in range(1, 9)]
SEEDS = st.integers(0, NUM_SEEDS - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    (tmp_path / "lesson").mkdir()
    monkeypatch.chdir(tmp_path / "lesson")
    return tmp_path / "lesson"


def _paper(attempt: int | None = None) -> Bank:
    place = exams.place_in(read_answers(NAME))
    assert place is not None
    return exams.paper(BANK, place, attempt)


def _right(question: Question) -> str:
    assert isinstance(question, Choice)
    return next(o.id for o in question.options if question.judge("09", o.id).is_right)


def _wrong(question: Question) -> str:
    assert isinstance(question, Choice)
    return next(o.id for o in question.options if not question.judge("09", o.id).is_right)


def _answer_all(num_right: int = 15) -> None:
    for number, question in enumerate(_paper().questions):
        give_answer(question.id, _right(question) if number < num_right else _wrong(question))


# What is drawn


@settings(deadline=None)
@given(seed=SEEDS, attempt=st.integers(1, 9))
def test_every_attempt_has_its_number_of_each_lesson_and_of_measured_questions(
    seed: int, attempt: int
) -> None:
    hand = exams.deal(BANK, seed, attempt)
    assert len({question.id for question in hand}) == len(hand) == BANK.draw == 15
    lessons = Counter(question.lesson for question in hand)
    assert sorted(lessons) == LESSONS and max(lessons.values()) <= 2
    assert sum(question.is_measured for question in hand) >= 3
    assert hand == exams.deal(BANK, seed, attempt)


@settings(deadline=None)
@given(seed=SEEDS)
def test_four_attempts_share_no_question_and_later_ones_as_few_as_can_be(seed: int) -> None:
    hands = [{q.id for q in exams.deal(BANK, seed, attempt)} for attempt in range(1, 9)]
    assert len(set().union(*hands[:4])) == 60
    times = Counter(itertools.chain.from_iterable(hands))
    assert max(times.values()) <= 3 and len(times) == len(BANK.questions)


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, attempt=st.integers(1, 5))
def test_a_paper_asks_the_same_questions_with_the_same_keys(seed: int, attempt: int) -> None:
    shown = exams.paper(BANK, Place(seed=seed, attempt=attempt, handed_in=attempt - 1))
    assert [q.id for q in shown.questions] == [f"09.{attempt}.{n}" for n in range(1, 16)]
    originals = {question.id: question for question in BANK.questions}
    for question in shown.questions:
        original = originals[question.drawn]
        assert isinstance(question, Choice) and isinstance(original, Choice)
        secret, before = question.secret, original.secret
        texts = {option.id: option.text for option in question.options}
        texts_before = {option.id: option.text for option in original.options}
        assert list(texts) == list(texts_before) and sorted(texts.values()) == sorted(texts_before.values())
        told = {texts[letter]: said for letter, said in secret.options.items()}
        assert told == {texts_before[letter]: said for letter, said in before.options.items()}
        if question.is_measured:
            assert texts == texts_before and secret.key is None
        else:
            assert texts[secret.key or ""] == texts_before[before.key or ""]


def test_questions_and_options_are_shuffled() -> None:
    papers = [exams.paper(BANK, Place(seed=seed, attempt=1, handed_in=0)) for seed in range(400)]
    keys = Counter(q.key for paper in papers for q in paper.questions if not q.is_measured)
    assert sorted(keys) == ["a", "b", "c", "d"] and max(keys.values()) < 1.15 * min(keys.values())
    first = Counter(paper.questions[0].lesson for paper in papers)
    assert sorted(first) == LESSONS
    assert len({tuple(q.drawn for q in paper.questions) for paper in papers}) == 400


def test_another_process_draws_the_same() -> None:
    code = (
        "import json; from autograder.quizzes import exams; from autograder.quizzes.grading import load_bank\n"
        "print(json.dumps(exams.paper(load_bank('09'), exams.Place(seed=4711, attempt=3, handed_in=2)).to_dict()))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == exams.paper(BANK, Place(seed=4711, attempt=3, handed_in=2)).to_dict()


def test_the_draw_is_for_ever() -> None:
    """An attempt that was begun with an older release, or an older Python, must go on with the same questions."""
    bank = Bank.from_dict(
        {
            "lesson": "77",
            "title": "T",
            "draw": 4,
            "min_measured": 1,
            "questions": [
                {"id": f"{lesson}.{n}", "text": "?", "options": [], "lesson": lesson}
                | ({"measured": "m"} if n == 3 else {})
                for lesson in ("01", "02")
                for n in (1, 2, 3)
            ],
        }
    )
    hands = [[question.id for question in exams.deal(bank, 1234, attempt)] for attempt in (1, 2)]
    assert hands == FOR_EVER


FOR_EVER = [["02.2", "02.1", "01.1", "01.3"], ["01.2", "02.3", "02.1", "01.1"]]


# The bank


def test_the_bank_is_large_and_of_every_kind() -> None:
    questions = BANK.questions
    assert len(questions) >= 64 and BANK.num_questions == 15
    assert Counter(question.lesson for question in questions) == dict.fromkeys(LESSONS, 8)
    assert sum(question.is_measured for question in questions) >= 12
    kinds = Counter(question.kind for question in questions)
    assert sorted(kinds) == ["bug", "diagnose", "estimate", "interpret"] and min(kinds.values()) >= 8
    assert len({question.text for question in questions}) == len(questions)
    assert len({question.topic for question in questions}) == len(questions)


def test_no_question_is_one_of_a_lessons_quiz() -> None:
    texts = {question.text for question in BANK.questions}
    for lesson in LESSONS:
        if (path := Path(autograder.__file__).parent / "lessons" / f"lesson_{lesson}" / "quiz.json").exists():
            assert texts.isdisjoint(
                question["text"] for question in json.loads(path.read_text())["questions"]
            )


MEASURED = [question for question in BANK.questions if isinstance(question, Measured)]


@pytest.mark.parametrize("question", MEASURED, ids=lambda question: question.measured)
def test_a_measurement_is_quick_and_far_inside_one_interval(question: Measured) -> None:
    import torch  # noqa: F401  # not counted in: a kernel has it loaded

    started = time.process_time()
    value = measure("09", question.measured)
    assert time.process_time() - started < 3
    ends = [end for option in question.options for end in (option.low, option.high)]
    limits = [end for end in ends if math.isfinite(end)]
    assert all(abs(value - limit) > max(0.04 * abs(value), 2 * question.slack) for limit in limits)
    assert sum(question.judge("09", option.id).is_right for option in question.options) == 1


# An attempt, from the first answer to the reasons


def test_the_seed_is_there_before_the_first_answer_and_stays(folder: Path) -> None:
    autograder.exam("09")
    entry = read_answers(folder / NAME)["exam"]
    assert 0 <= entry["seed"] < NUM_SEEDS and (entry["attempt"], entry["handed_in"]) == (1, 0)
    before = (folder / NAME).read_bytes()
    autograder.exam("09")
    autograder.quiz("09")
    autograder.exam("09", new_attempt=True)
    assert (folder / NAME).read_bytes() == before


def test_an_open_attempt_tells_no_reason_and_takes_changes(capfd: pytest.CaptureFixture[str]) -> None:
    autograder.exam("09")
    question = _paper().questions[0]
    for letter in ("a", "b"):
        autograder.answer(question.id, letter)
    autograder.exam("09")
    out, err = capfd.readouterr()
    assert f"{question.id} b\nsaved in {NAME}" in out and err == ""
    assert "(•) b" in out and "( ) a" in out
    for told in [*question.reasons, *question.mistakes]:
        assert not told or told not in out
    assert progress.summary().lessons["09"].answered == 1
    assert read_answers(NAME)[question.id]["choice"] == "b"


def test_the_checking_cell_hands_in_what_is_complete(capfd: pytest.CaptureFixture[str]) -> None:
    assert float(check_quiz("09")) == 0 and 'run exam("09")' in capfd.readouterr().out
    autograder.exam("09")
    assert float(check_quiz("09")) == 0
    assert "15 of 15 questions have no answer yet" in capfd.readouterr().out
    _answer_all(12)
    missing = _paper().questions[4].id
    AnswersFile(NAME, "09").save(missing, {"choice": None})
    score = check_quiz("09")
    out = capfd.readouterr().out
    assert float(score) == 0 and f"1 of 15 questions have no answer yet: {missing}" in out
    assert _paper().is_open
    give_answer(missing, _right(_paper().questions[4]))
    score = check_quiz("09")
    out, err = capfd.readouterr()
    assert (float(score), repr(score), err) == (12.0, "12", "")
    assert "12 of 15 right: passed (70% are needed)" in out
    assert not _paper().is_open
    missed = _paper().questions[12:]
    for question in missed:
        assert question.topic in out.partition("Read again:")[2]
    assert missed[0].topic in html.unescape(score._repr_html_())


def test_eleven_right_answers_pass_and_ten_do_not() -> None:
    for num_right, passes in ((10, False), (11, True)):
        autograder.exam("09", new_attempt=True)
        _answer_all(num_right)
        assert check_quiz("09").result["passed"] is passes


def test_after_handing_in_there_are_reasons_and_no_more_answers(capfd: pytest.CaptureFixture[str]) -> None:
    autograder.exam("09")
    _answer_all(0)
    check_quiz("09")
    question = _paper().questions[3]
    with pytest.raises(UserError, match="attempt 1 is handed in"):
        give_answer(question.id, _right(question))
    capfd.readouterr()
    autograder.exam("09")
    out = capfd.readouterr().out
    mistake = question.judge("09", _wrong(question)).mistake
    assert f"Not this one: {plain(mistake)}" in out
    assert out.count("Right is ") == 15
    if not question.is_measured:
        assert plain(question.judge("09", _right(question)).reason) in out
    assert float(check_quiz("09")) == 0


def test_the_best_attempt_counts() -> None:
    for num_right in (9, 13, 4):
        autograder.exam("09", new_attempt=True)
        _answer_all(num_right)
        check_quiz("09")
    result = grade_quiz("09", read_answers(NAME))
    assert (result.score, result.passed) == (13.0, True)
    assert [one.score for one in result.attempts or ()] == [9.0, 13.0, 4.0]
    assert result.questions[0].id == "09.3.1"
    assert not {q.drawn for q in _paper(1).questions} & {q.drawn for q in _paper(3).questions}


def test_a_new_attempt_waits_for_the_open_one(capfd: pytest.CaptureFixture[str]) -> None:
    autograder.exam("09")
    give_answer("09.1.1", "a")
    autograder.exam("09", new_attempt=True)
    assert "Attempt 1 is open and goes on" in capfd.readouterr().out
    hand_in("09", answers_file("09"), incomplete=True)
    autograder.exam("09", new_attempt=True)
    assert _paper().attempt == 2
    with pytest.raises(UserError, match=r"attempt 1 is handed in .* 09\.2\.1 to 09\.2\.15"):
        give_answer("09.1.1", "a")


def test_the_last_attempt_is_the_last(capfd: pytest.CaptureFixture[str]) -> None:
    entry = {"seed": 1, "attempt": MAX_ATTEMPTS, "handed_in": MAX_ATTEMPTS}
    AnswersFile(NAME, "09").save("exam", entry)
    autograder.exam("09", new_attempt=True)
    assert "was the last" in capfd.readouterr().out
    assert _paper().attempt == MAX_ATTEMPTS


def test_an_answer_before_the_first_attempt_is_one_line(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    autograder.answer("09.1.1", "a")
    out, err = capfd.readouterr()
    assert 'exam("09") begins it' in out and len(out.splitlines()) == 1 and err == ""
    assert not list(folder.iterdir())


def test_an_exam_that_cannot_be_saved_does_not_begin(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder.rmdir()
    autograder.exam("09")
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1 and err == ""
    autograder.exam("01")
    assert "no exam" in capfd.readouterr().out


# Interrupted, moved, forged

ANSWERER = """
import itertools
from autograder import exam
from autograder.quizzes.acting import give_answer
exam("09")
print("begun", flush=True)
for number in itertools.count():
    question, letter = f"09.1.{number % 15 + 1}", "abc"[number // 15 % 3]
    give_answer(question, letter)
    print(question, letter, flush=True)
"""


def test_kill_9_in_the_middle_loses_no_answer_and_no_question(folder: Path) -> None:
    chance = random.Random(0)
    papers = []
    for _ in range(5):
        run = subprocess.Popen([sys.executable, "-c", ANSWERER], stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        while run.stdout.readline() != "begun\n":
            pass
        time.sleep(chance.uniform(0, 0.1))
        run.send_signal(signal.SIGKILL)
        said = dict(line.split() for line in run.stdout if line.startswith("09.") and line.endswith("\n"))
        run.wait()
        kept = read_answers(NAME)
        assert "problem" not in kept
        # One more may have been saved than was said.
        differ = [question for question, letter in said.items() if kept[question]["choice"] != letter]
        assert len(differ) <= 1
        papers.append(_paper().questions)
    assert all(paper == papers[0] for paper in papers)
    assert [left.name for left in folder.iterdir()] == [NAME]


def test_processes_that_begin_at_once_begin_one_attempt() -> None:
    code = "from autograder import exam; exam('09'); exam('09', new_attempt=True)"
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    shown = {run.communicate(timeout=60)[0].partition(b"\nQuiz")[0].splitlines()[-1] for run in runs}
    assert len(shown) == 1
    assert exams.place_in(read_answers(NAME)) is not None and _paper().attempt == 1


@settings(deadline=None)
@given(entry=JSON | st.fixed_dictionaries({"seed": JSON, "attempt": JSON, "handed_in": JSON}), choice=JSON)
def test_no_entry_can_stop_the_grader_or_score_beyond(entry: Any, choice: Any) -> None:
    answers = {"exam": entry} | {f"09.1.{number}": choice for number in range(1, 16)}
    result = grade_quiz("09", answers)
    assert result.score is not None and 0 <= result.score <= result.max_score == 15
    if exams.place_in(answers) is None:
        assert result.score == 0 and "none that this course writes" in result.problem


@pytest.mark.parametrize(
    "entry",
    [
        {"seed": NUM_SEEDS, "attempt": 1, "handed_in": 0},
        {"seed": -1, "attempt": 1, "handed_in": 0},
        {"seed": True, "attempt": 1, "handed_in": 0},
        {"seed": 1, "attempt": MAX_ATTEMPTS + 1, "handed_in": 0},
        {"seed": 1, "attempt": 3, "handed_in": 1},
        {"seed": 1, "attempt": 0, "handed_in": 0},
        {"seed": 1, "attempt": 1},
    ],
)
def test_a_place_that_cannot_be_is_no_place(entry: dict[str, Any]) -> None:
    assert exams.place_in({"exam": entry}) is None


def test_another_seed_gains_another_draw_and_nothing_else() -> None:
    AnswersFile(NAME, "09").save("exam", {"seed": 4711, "attempt": 1, "handed_in": 0})
    _answer_all(15)
    answers = read_answers(NAME)
    full = grade_quiz("09", answers)
    assert (full.score, full.passed) == (15.0, True)
    scores = []
    for seed in range(0, NUM_SEEDS, 97):
        result = grade_quiz("09", answers | {"exam": answers["exam"] | {"seed": seed}})
        assert result.score is not None and result.max_score == 15 and len(result.questions) == 15
        scores.append(result.score)
    # Answers to other questions are guesses: a quarter of them right, where options are four.
    assert 3 < sum(scores) / len(scores) < 5 and sum(score >= 11 for score in scores) <= 1
    # Answers to attempts that were never begun count for nothing until those attempts are there to be drawn.
    assert grade_quiz("09", {key: entry for key, entry in answers.items() if key != "exam"}).score == 0


def test_an_open_attempt_counts_for_the_grader_as_it_stands() -> None:
    autograder.exam("09")
    for question in _paper().questions[:12]:
        give_answer(question.id, _right(question))
    assert grade_quiz("09", read_answers(NAME)).score == 12
    assert grade_quiz("09", read_answers(NAME), open_counts=False).score == 0


# Buttons


def _view() -> ExamView:
    return ExamView(BANK, answers_file("09"))


def test_the_button_hands_in_shows_reasons_and_begins_another() -> None:
    view = _view()
    assert view.button.description == "Hand in"
    questions = _paper().questions
    for question in questions[:14]:
        view.questions.radios[question.id].value = _wrong(question)
    feedback = view.questions.feedback[questions[0].id].value
    assert "saved" in feedback and "Not this one" not in feedback
    again = _view()
    assert again.questions.feedback[questions[0].id].value == ""
    assert again.questions.radios[questions[0].id].value == _wrong(questions[0])

    view.button.click()
    assert questions[14].id in view.status.value and _paper().is_open
    view.button.click()
    assert not _paper().is_open
    assert "Not this one" in view.questions.feedback[questions[0].id].value
    left_open = view.questions.feedback[questions[14].id].value
    assert "Not answered" in left_open and f"<strong>{_right(questions[14])}</strong>" in left_open
    assert all(radio.disabled for radio in view.questions.radios.values())
    assert "0 of 15 right" in view.grade.value and "Read again" in view.grade.value
    assert progress.summary().lessons["09"].quiz == progress.BestQuiz(score=0.0, max_score=15.0, passed=False)

    view.button.click()
    assert view.button.description == "Hand in" and next(iter(view.questions.radios)) == "09.2.1"
    assert not any(radio.disabled for radio in view.questions.radios.values())
    # The other tab still shows attempt 1: it must not answer it, and its button brings it up to date.
    again.questions.radios[questions[0].id].value = _right(questions[0])
    assert "is handed in" in again.questions.status.value
    again.button.click()
    assert next(iter(again.questions.radios)) == "09.2.1" and _paper().attempt == 2


def test_a_hand_in_that_cannot_be_saved_is_said(folder: Path) -> None:
    view = _view()
    (folder / NAME).unlink()
    folder.rmdir()
    view.button.click()
    assert "not saved" in view.status.value


def test_the_map_shows_the_exam() -> None:
    assert "09  Skill exam" in repr(progress_html())
    autograder.exam("09")
    _answer_all(12)
    check_quiz("09")
    row = next(line for line in repr(progress_html()).splitlines() if "Skill exam" in line)
    assert "12 of 15 right, passed" in row and "points" not in row and row.count("█") == 16


# Graders


def _notebook(folder: Path, step: str = "release") -> Path:
    root = Path(autograder.__file__).parents[1] / "notebooks" / step / "09_skill_exam" / "09_skill_exam.ipynb"
    copy = folder / "09_skill_exam.ipynb"
    copy.write_bytes(root.read_bytes())
    return copy


def _pytest(notebook: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", str(notebook)]
    return subprocess.run(command, capture_output=True, text=True)


def test_workbook_check_grades_the_exam(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook = str(_notebook(folder))
    assert main(["check", "--json", notebook]) == 1
    report = json.loads(capfd.readouterr().out)
    assert (report["lesson"], report["exercises"]) == ("09", [])
    assert report["quiz"] == {"score": 0.0, "max_score": 15.0, "passed": False}
    autograder.exam("09")
    _answer_all()
    capfd.readouterr()
    assert main(["check", "--json", notebook]) == 0
    full = {"score": 15.0, "max_score": 15.0, "passed": True}
    assert json.loads(capfd.readouterr().out)["quiz"] == full
    main(["check", notebook])
    text = capfd.readouterr().out
    assert "Quiz: 15 of 15, passed" in text and "Exercises:" not in text


@pytest.mark.further
def test_pytest_runs_the_exam_as_one_item(folder: Path) -> None:
    notebook = _notebook(folder)
    ran = _pytest(notebook)
    assert ran.returncode == 1 and "Quiz: 0 of 15 points; 70% are needed" in ran.stdout
    autograder.exam("09")
    _answer_all()
    ran = _pytest(notebook)
    assert ran.returncode == 0 and "1 passed" in ran.stdout
