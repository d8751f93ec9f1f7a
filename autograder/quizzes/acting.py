"""The quiz of a lesson: shown, answered, saved at each choice, graded from the answers file alone.

An exam is a quiz whose questions are drawn for each attempt (`exams`), and whose reasons wait until it is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autograder.kept import AnswersFile, Entry, answers_file, progress
from autograder.quizzes import exams
from autograder.quizzes.bank import SECOND, Judgement, Question, is_keyless, judge, unanswered
from autograder.quizzes.card import feedback_text, grade_html, grade_text
from autograder.quizzes.grading import bank_in, grade_quiz, is_exam, letters, load_bank
from autograder.show import Score, in_kernel, told
from course_lib.base import UserError

GRADED_LATER = "; it is graded after you hand in"


class QuizScore(Score):
    """Number of right answers; notebooks show the card of all questions."""

    def _repr_html_(self) -> str:
        return grade_html(self.result)


@dataclass(frozen=True, kw_only=True)
class Given:
    """One answer after it was given.

    Attributes:
        judgement: what the answer is worth, and why; None in an exam, which says so when it is handed in, and in a
            graded release, where nobody here knows.
        problem: why it could not be saved; empty when it was.
        text: all of it in plain lines.
    """

    judgement: Judgement | None
    problem: str
    text: str


@told()
def answer(question_id: str, choice: str) -> None:
    """Answer a quiz question without widgets: save the choice and print what it gets right or wrong.

    Example:
        `answer("01.3", "b")`
    """
    print(give_answer(question_id, choice).text)


def give_answer(question_id: str, choice: str, *, file: AnswersFile | None = None) -> Given:
    """Save one choice, judge it, note it in the progress. Both the widgets and `answer` end up here.

    In an exam the judgement waits until the attempt is handed in.

    A choice that cannot be saved is judged all the same, and the problem is reported with it.

    Raises:
        UserError: there is no such question or option; the message lists what there is. Or its attempt is over.
    """
    lesson_id, dot, _ = str(question_id).partition(".")
    if not dot:
        raise UserError(f'"{question_id}" names no question; write lesson.number, for instance "01.3"')
    bank = load_bank(lesson_id)
    file = file or answers_file(lesson_id)
    bank = _open_paper(bank, file) if is_exam(lesson_id) else bank_in(file.path.parent, lesson_id)
    question = _find(bank, question_id)
    choices = letters(question)
    choice = str(choice).strip().lower()
    if choice not in choices:
        raise UserError(
            f'{question_id} has the options {", ".join(choices)}; for instance answer("{question_id}", "a")'
        )
    problem = ""
    try:
        file.save(question_id, lambda old: _next_entry(old, choice))
    except UserError as error:  # saved before judged: a measurement takes time, and a click must not get lost
        problem = str(error)
    waits = is_exam(lesson_id) or is_keyless(bank)
    judgement = None if waits else judge(lesson_id, question, choice)
    asked = question_id.removesuffix(SECOND)  # what was asked in two forms is one question of the lesson
    progress.record_answer(lesson_id, asked, choice, judgement.is_right if judgement else None)
    said = feedback_text(question, choice, judgement) if judgement else f"{question_id} {choice}"
    saved = problem or f"saved in {file.path.name}{GRADED_LATER * is_keyless(bank)}"
    lines = filter(None, [file.take_notices(), said, saved])
    return Given(judgement=judgement, problem=problem, text="\n".join(lines))


def hand_in(lesson_id: str, file: AnswersFile, *, incomplete: bool = False) -> dict[str, Any]:
    """Close the open attempt at an exam, if there is one, and grade all that are closed.

    Args:
        incomplete: also one with questions left open; else it stays open, and `problem` names them.

    Raises:
        UserError: it could not be saved.
    """
    entries = file.entries()
    place, problem = exams.place_in(entries), ""
    if place is None:
        problem = f'No attempt has begun: run exam("{lesson_id}").'
    elif place.is_open:
        questions = exams.paper(load_bank(lesson_id), place)["questions"]
        missing = unanswered(questions, entries)
        if missing and not incomplete:
            left = f"{len(missing)} of {len(questions)} questions have no answer yet: {', '.join(missing)}"
            problem = f"Attempt {place.attempt} is not handed in. {left}."
        else:
            exams.close(file, place.attempt)
    result = grade_quiz(lesson_id, file.entries(), open_counts=False)
    if result["attempts"]:
        progress.record_quiz(result)
    return result | {"problem": result["problem"] or problem}


def check_quiz(lesson_id: str) -> Score:
    """Grade the quiz from the saved answers: one point for each right one. An exam is handed in by it once every
    question is answered; before that, only the attempts handed in earlier count. A graded release says what is
    answered, and leaves the points to the instructor."""
    with told():
        file = answers_file(lesson_id)
        if is_exam(lesson_id):
            result = hand_in(lesson_id, file)
        else:
            result = grade_quiz(lesson_id, file.entries(), bank=bank_in(file.path.parent, lesson_id))
            if result["score"] is not None:
                progress.record_quiz(result)
        file.print_notices()
        if not in_kernel():  # a notebook shows the card
            print(grade_text(result))
        return QuizScore(result["score"] or 0.0, result)
    return Score(0.0)


def _open_paper(bank: dict[str, Any], file: AnswersFile) -> dict[str, Any]:
    """The questions that an exam takes answers to."""
    place = exams.place_in(file.entries())
    if place is None:
        raise UserError(f'no attempt has begun: exam("{bank["lesson"]}") begins it')
    if not place.is_open:
        more = f'exam("{bank["lesson"]}", new_attempt=True) begins another'
        raise UserError(f"attempt {place.attempt} is handed in and takes no more answers; {more}")
    return exams.paper(bank, place)


def _find(bank: dict[str, Any], question_id: str) -> Question:
    questions: list[Question] = bank["questions"]
    for question in [*questions, *bank.get("second_forms", [])]:
        if question["id"] == question_id:
            return question
    first, last = questions[0]["id"], questions[-1]["id"]
    attempt = question_id.split(".")[1]
    if attempt.isdecimal() and 0 < int(attempt) < bank.get("attempt", 0):
        raise UserError(
            f"attempt {attempt} is handed in and takes no more answers; the open one has {first} to {last}"
        )
    raise UserError(f'quiz {bank["lesson"]} has no question "{question_id}"; it has {first} to {last}')


def _next_entry(old: Entry, choice: str) -> Entry:
    """The last choice counts; the first and the number of tries are kept beside it."""
    tries = old.get("tries", 0) if isinstance(old.get("tries"), int) else 0
    changed = old.get("choice") != choice
    return {"choice": choice, "first": old.get("first", choice), "tries": tries + changed}
