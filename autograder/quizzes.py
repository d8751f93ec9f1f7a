"""The quiz of a lesson: shown, answered, saved at each choice, graded from the answers file alone."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder import progress
from autograder.answers import AnswersFile, Entry, answers_file
from autograder.exercises import Score
from autograder.quiz_bank import PASS_MARK, Judgement, Question, judge
from autograder.quiz_card import feedback_text, grade_html, grade_text, quiz_text
from autograder.rich import show_widget, told
from course_lib.errors import UserError


class QuizScore(Score):
    """Number of right answers; notebooks show the card of all questions."""

    def _repr_html_(self) -> str:
        return grade_html(self.result)


@dataclass(frozen=True, kw_only=True)
class Given:
    """One answer after it was given.

    Attributes:
        judgement: what the answer is worth, and why.
        problem: why it could not be saved; empty when it was.
        text: all of it in plain lines.
    """

    judgement: Judgement
    problem: str
    text: str


def has_quiz(lesson_id: str) -> bool:
    """Whether the lesson has a quiz."""
    return _bank_path(lesson_id).exists()


@functools.cache
def load_bank(lesson_id: str) -> dict[str, Any]:
    """The questions of a lesson.

    Raises:
        UserError: the lesson has no quiz.
    """
    if not has_quiz(lesson_id):
        raise UserError(f'there is no quiz "{lesson_id}"; lessons are named "01", "02", …')
    bank: dict[str, Any] = json.loads(_bank_path(lesson_id).read_text(encoding="utf-8"))
    return bank


def find_question(question_id: str) -> tuple[str, Question]:
    """Lesson id and question of an id like "01.3". Raises `UserError` with the ids that exist."""
    lesson_id, dot, _ = str(question_id).partition(".")
    if not dot:
        raise UserError(f'"{question_id}" names no question; write lesson.number, for instance "01.3"')
    questions = load_bank(lesson_id)["questions"]
    for question in questions:
        if question["id"] == question_id:
            return lesson_id, question
    raise UserError(
        f'quiz {lesson_id} has no question "{question_id}"; it has {lesson_id}.1 to {questions[-1]["id"]}'
    )


@told()
def quiz(lesson_id: str) -> None:
    """Show the quiz of a lesson, with the answers given so far; as text where there are no widgets."""
    bank, file = load_bank(lesson_id), answers_file(lesson_id)
    text = quiz_text(bank, file.entries())
    file.print_notices()

    def build() -> Any:
        from autograder.quiz_widget import QuizView

        return QuizView(bank, file).widget

    show_widget(build, text)


def give_answer(question_id: str, choice: str, *, file: AnswersFile | None = None) -> Given:
    """Save one choice, judge it, note it in the progress. Both the widgets and `answer` end up here.

    A choice that cannot be saved is judged all the same, and the problem is reported with it.

    Raises:
        UserError: there is no such question or option; the message lists what there is.
    """
    lesson_id, question = find_question(question_id)
    letters = _letters(question)
    choice = str(choice).strip().lower()
    if choice not in letters:
        raise UserError(
            f'{question_id} has the options {", ".join(letters)}; for instance answer("{question_id}", "a")'
        )
    file = file or answers_file(lesson_id)
    problem = ""
    try:
        file.save(question_id, lambda old: _next_entry(old, choice))
    except UserError as error:  # saved before judged: a measurement takes time, and a click must not get lost
        problem = str(error)
    judgement = judge(lesson_id, question, choice)
    progress.record_answer(lesson_id, question_id, choice, judgement.is_right)
    saved = problem or f"saved in {file.path.name}"
    lines = filter(None, [file.take_notices(), feedback_text(question, choice, judgement), saved])
    return Given(judgement=judgement, problem=problem, text="\n".join(lines))


def grade_quiz(lesson_id: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Grade the answers of a quiz without showing anything. Answers that make no sense count as not given.

    Args:
        answers: by question id; an entry of the answers file, or the letter alone.

    Returns:
        score: number of right answers; max_score: number of questions; passed: at least `PASS_MARK` of them;
        questions: id, choice (None if not answered), is_right, right_first, mistake, reason, measured of each;
        problem: what was wrong with the file, or "".
    """
    questions = load_bank(lesson_id)["questions"]
    graded = [_grade(lesson_id, question, answers.get(question["id"])) for question in questions]
    score, max_score = sum(question["is_right"] for question in graded), len(graded)
    return {
        "lesson": lesson_id,
        "score": float(score),
        "max_score": float(max_score),
        "passed": score >= PASS_MARK * max_score - 1e-9,
        "questions": graded,
        "problem": str(answers.get("problem", "")),
    }


def check_quiz(lesson_id: str) -> Score:
    """Grade the quiz from the saved answers: one point for each right one."""
    with told():
        file = answers_file(lesson_id)
        result = grade_quiz(lesson_id, file.entries())
        file.print_notices()
        progress.record_quiz(result)
        print(grade_text(result))
        return QuizScore(result["score"], result)
    return Score(0.0)


def _next_entry(old: Entry, choice: str) -> Entry:
    """The last choice counts; the first and the number of tries are kept beside it."""
    tries = old.get("tries", 0) if isinstance(old.get("tries"), int) else 0
    changed = old.get("choice") != choice
    return {"choice": choice, "first": old.get("first", choice), "tries": tries + changed}


def _grade(lesson_id: str, question: Question, entry: Any) -> dict[str, Any]:
    given = entry if isinstance(entry, dict) else {"choice": entry}
    choice = given.get("choice") if given.get("choice") in _letters(question) else None
    judgement = judge(lesson_id, question, choice) if choice else Judgement(is_right=False)
    right_first = judgement.is_right and given.get("first", choice) == choice
    return {"id": question["id"], "choice": choice, "right_first": right_first, **asdict(judgement)}


def _letters(question: Question) -> list[str]:
    return [option["id"] for option in question["options"]]


def _bank_path(lesson_id: str) -> Path:
    # The name goes into a path, and it may come from a submission's file.
    name = lesson_id if lesson_id.isalnum() else "none"
    return Path(__file__).parent / "lessons" / f"lesson_{name}" / "quiz.json"
