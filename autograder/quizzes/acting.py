"""The quiz of a lesson: shown, answered, saved at each choice, graded from the answers file alone.

An exam is a quiz whose questions are drawn for each attempt (`exams`), and whose reasons wait until it is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autograder.kept import Answer, AnswersFile, answers_file, progress
from autograder.quizzes import exams
from autograder.quizzes.bank import SECOND, Bank, unanswered
from autograder.quizzes.card import feedback_text, grade_html, grade_text
from autograder.quizzes.exam_time import is_over
from autograder.quizzes.grade import QuizGrade
from autograder.quizzes.grading import bank_in, exam_bank, grade_quiz, is_exam, load_bank
from autograder.quizzes.question import Judgement, Question
from autograder.show import Score, in_kernel, told
from course_lib.base import UserError

GRADED_LATER = "; it is graded after you hand in"


class QuizScore(Score):
    """Number of right answers; notebooks show the card of all questions."""

    grade: QuizGrade

    def __new__(cls, grade: QuizGrade) -> QuizScore:
        score = super().__new__(cls, grade.score or 0.0, grade.to_dict())
        assert isinstance(score, QuizScore)
        score.grade = grade
        return score

    def _repr_html_(self) -> str:
        return grade_html(self.grade)


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
    load_bank(lesson_id)  # that there is one is said before anything else
    file = file or answers_file(lesson_id)
    bank = _open_paper(lesson_id, file) if is_exam(lesson_id) else bank_in(file.path.parent, lesson_id)
    question = _find(bank, question_id)
    choice = question.parsed(str(choice))
    problem = ""
    try:
        file.save(question_id, lambda old: Answer.from_entry(old).then(choice).to_entry())
    except UserError as error:  # saved before judged: a measurement takes time, and a click must not get lost
        problem = str(error)
    waits = is_exam(lesson_id) or bank.is_keyless
    judgement = None if waits else question.judge(lesson_id, choice)
    asked = question_id.removesuffix(SECOND)  # what was asked in two forms is one question of the lesson
    progress.record_answer(lesson_id, asked, choice, judgement.is_right if judgement else None)
    said = feedback_text(question, choice, judgement) if judgement else f"{question_id} {choice}"
    saved = problem or f"saved in {file.path.name}{GRADED_LATER * bank.is_keyless}"
    lines = filter(None, [file.take_notices(), said, saved])
    return Given(judgement=judgement, problem=problem, text="\n".join(lines))


def hand_in(lesson_id: str, file: AnswersFile, *, incomplete: bool = False) -> QuizGrade:
    """Close the open attempt at an exam, if there is one, and grade all that are closed.

    Args:
        incomplete: also one with questions left open; else it stays open, and `problem` names them, unless its time is
            over.

    Raises:
        UserError: it could not be saved.
    """
    entries = file.entries()
    place, problem = exams.place_in(entries), ""
    if place is None:
        problem = f'No attempt has begun: run exam("{lesson_id}").'
    elif place.is_open:
        bank = exam_bank(file.path.parent, lesson_id, entries)
        questions = exams.paper(bank, place).questions
        missing = unanswered(questions, entries)
        if missing and not incomplete and not is_over(bank, entries, place.attempt):
            left = f"{len(missing)} of {len(questions)} questions have no answer yet: {', '.join(missing)}"
            problem = f"Attempt {place.attempt} is not handed in. {left}."
        else:
            exams.close(file, place.attempt)
    grade = grade_quiz(lesson_id, file.entries(), open_counts=False)
    if grade.attempts:
        _record(grade)
    return replace(grade, problem=grade.problem or problem)


def check_quiz(lesson_id: str) -> Score:
    """Grade the quiz from the saved answers: one point for each right one. An exam is handed in by it once every
    question is answered; before that, only the attempts handed in earlier count. A graded release says what is
    answered, and leaves the points to the instructor."""
    with told():
        file = answers_file(lesson_id)
        if is_exam(lesson_id):
            grade = hand_in(lesson_id, file)
        else:
            grade = grade_quiz(lesson_id, file.entries(), bank=bank_in(file.path.parent, lesson_id))
            if grade.score is not None:
                _record(grade)
        file.print_notices()
        if not in_kernel():  # a notebook shows the card
            print(grade_text(grade))
        return QuizScore(grade)
    return Score(0.0)


def _record(grade: QuizGrade) -> None:
    progress.record_quiz(grade.lesson, grade.score, grade.max_score, passed=grade.passed)


def _open_paper(lesson_id: str, file: AnswersFile) -> Bank:
    """The questions that an exam takes answers to."""
    entries = file.entries()
    place, bank = exams.place_in(entries), exam_bank(file.path.parent, lesson_id, entries)
    if place is None:
        raise UserError(f'no attempt has begun: exam("{bank.lesson}") begins it')
    if not place.is_open:
        more = f'exam("{bank.lesson}", new_attempt=True) begins another'
        raise UserError(f"attempt {place.attempt} is handed in and takes no more answers; {more}")
    if is_over(bank, entries, place.attempt):
        raise UserError(
            f"the {bank.minutes:g} minutes of attempt {place.attempt} are over, and it takes no more answers: "
            f'check_quiz("{bank.lesson}") hands it in as it is'
        )
    return exams.paper(bank, place)


def _find(bank: Bank, question_id: str) -> Question:
    for question in bank.all_questions:
        if question.id == question_id:
            return question
    first, last = bank.questions[0].id, bank.questions[-1].id
    attempt = question_id.split(".")[1]
    if attempt.isdecimal() and 0 < int(attempt) < bank.attempt:
        raise UserError(
            f"attempt {attempt} is handed in and takes no more answers; the open one has {first} to {last}"
        )
    raise UserError(f'quiz {bank.lesson} has no question "{question_id}"; it has {first} to {last}')
