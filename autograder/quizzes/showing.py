"""`quiz` and `exam` in a notebook's cell: the questions with buttons, or as text where there are no widgets."""

from __future__ import annotations

from typing import Any

from autograder.kept import AnswersFile, answers_file
from autograder.quizzes import exams
from autograder.quizzes import forms as quiz_forms
from autograder.quizzes.card import quiz_text
from autograder.quizzes.exam_time import checked_factor, end_text, invitation, minutes_in
from autograder.quizzes.grading import bank_in, exam_bank, graded, is_exam, load_bank
from autograder.show import show_widget, told
from course_lib.base import UserError


@told()
def quiz(lesson_id: str, *, new_attempt: bool = False) -> None:
    """Show the quiz of a lesson, with the answers given so far; as text where there are no widgets.

    Args:
        new_attempt: turn to other questions on the same decisions if all are answered; the next time back. What
            was answered stays, and the better form counts.
    """
    if is_exam(lesson_id):
        return exam(lesson_id, new_attempt=new_attempt)
    file = answers_file(lesson_id)
    bank = bank_in(file.path.parent, lesson_id)
    if new_attempt:
        with told():
            quiz_forms.turn_when_done(bank, file)
    text = quiz_text(quiz_forms.shown_form(bank, file.entries()), file.entries())
    file.print_notices()

    def build() -> Any:
        from autograder.quizzes.widget import FormsView, QuizView

        return (FormsView if bank.second_forms else QuizView)(bank, file).widget

    show_widget(build, text)


@told()
def exam(lesson_id: str = "09", *, new_attempt: bool = False, more_time: float | None = None) -> None:
    """Show the last attempt at an exam, with the answers given so far; the first call begins the first attempt. Where
    the course sets a time, the button does, or `new_attempt`: opening the page starts no clock.

    Args:
        new_attempt: begin another one, if the last is handed in; else that one goes on.
        more_time: what the course has granted you, as it told you: 1.5 for half as much time again. The grader knows
            what was granted, and leaves out what came later than that.
    """
    if not is_exam(lesson_id):
        raise UserError(f'lesson {lesson_id} has a quiz and no exam: quiz("{lesson_id}")')
    file = answers_file(lesson_id)
    factor = None if more_time is None else checked_factor(more_time)
    before = exams.place_in(file.entries())
    if minutes_in(file.path.parent, lesson_id) and before is None and not new_attempt:
        return _invite(lesson_id, file, factor)
    place = exams.begin(file, new_attempt=new_attempt, more_time=factor)
    bank = exam_bank(file.path.parent, lesson_id, file.entries())
    file.print_notices()
    if new_attempt and place == before:
        why = "is open and goes on: hand it in before you begin another" if place.is_open else "was the last"
        print(f"Attempt {place.attempt} {why}.")
    paper, entries = exams.paper(bank, place), file.entries()
    if paper.is_open and (end := end_text(bank, entries, place.attempt)):
        print(end)
    reasons = None if paper.is_open else graded(paper, entries)

    def build() -> Any:
        from autograder.quizzes.exam_widget import ExamView

        return ExamView(bank, file).widget

    show_widget(build, quiz_text(paper, entries, reasons))


def _invite(lesson_id: str, file: AnswersFile, more_time: float | None) -> None:
    """An exam with a clock, before its first attempt."""
    bank = load_bank(lesson_id)

    def build() -> Any:
        from autograder.quizzes.exam_widget import ExamView

        return ExamView(bank, file, more_time=more_time).widget

    minutes = minutes_in(file.path.parent, lesson_id) * (more_time or 1.0)
    how = "new_attempt=True" + (f", more_time={more_time:g}" if more_time else "")
    text = f'{invitation(bank, minutes)} Where no button is shown: exam("{lesson_id}", {how})'
    show_widget(build, text)
