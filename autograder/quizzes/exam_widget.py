"""The exam as ipywidgets: the questions of the attempt, and one button that hands it in or begins another."""

from __future__ import annotations

import ipywidgets as widgets

from autograder.kept import AnswersFile
from autograder.quizzes import exams
from autograder.quizzes.acting import hand_in
from autograder.quizzes.bank import Bank, unanswered
from autograder.quizzes.card import grade_html, headline
from autograder.quizzes.exam_time import end_text, invitation, is_over, minutes_in
from autograder.quizzes.grade import QuizGrade
from autograder.quizzes.grading import exam_bank, grade_quiz
from autograder.quizzes.widget import BUTTON, QuizView
from autograder.show import render, spoken
from course_lib.base import UserError


class ExamView:
    """The last attempt of one answers file on the screen.

    Attributes:
        widget: what is displayed.
        questions: the questions as a quiz; read-only, with reasons, once the attempt is handed in. Not there before a
            clock runs.
        button: hands in an open attempt (asking once more if answers are missing), else begins another.
        status: what the button has to say.
    """

    questions: QuizView

    def __init__(self, bank: Bank, file: AnswersFile, *, more_time: float | None = None) -> None:
        self.bank, self.file, self.more_time = bank, file, more_time
        self.place: exams.Place | None = None
        self.button = widgets.Button(layout=BUTTON)
        self.button.on_click(lambda _: self._press())
        self.status, self.grade = spoken(), widgets.HTML()
        self.sheet = widgets.VBox()
        # The button stays the same one: were it made anew, whoever pressed it would lose the focus.
        self.widget = widgets.VBox([self.sheet, self.button, self.status])
        self.widget.add_class("workbook-turns")
        self._warned: list[str] = []
        folder = file.path.parent
        if exams.place_in(file.entries()) is None and (minutes := minutes_in(folder, bank.lesson)):
            self.button.description = "Begin"
            self._say(invitation(bank, minutes * (more_time or 1.0)))
        else:
            self._show()

    def _show(self) -> None:
        """The attempt as the file has it. Where its time is over, it is handed in as it is."""
        self.place = exams.begin(self.file, more_time=self.more_time)
        entries = self.file.entries()
        self.bank = exam_bank(self.file.path.parent, self.bank.lesson, entries)
        if self.place.is_open and is_over(self.bank, entries, self.place.attempt):
            hand_in(self.bank.lesson, self.file, incomplete=True)
            self.place = exams.begin(self.file)
        self.questions = QuizView(exams.paper(self.bank, self.place), self.file)
        self.button.description = "Hand in" if self.place.is_open else "Begin another attempt"
        self.button.disabled = not self.place.is_open and self.place.attempt >= exams.MAX_ATTEMPTS
        result = None if self.place.is_open else self._graded()
        self.grade.value = grade_html(result) if result else ""
        self._say(headline(result) if result else end_text(self.bank, entries, self.place.attempt))
        self.sheet.children = [self.grade, self.questions.widget]

    def _graded(self) -> QuizGrade:
        return grade_quiz(self.bank.lesson, self.file.entries(), open_counts=False)

    def _press(self) -> None:
        # The file is asked, not the screen: the attempt may have been handed in elsewhere meanwhile.
        try:
            place = exams.begin(self.file, more_time=self.more_time)
            is_late = place.is_open and is_over(self.bank, self.file.entries(), place.attempt)
            if place != self.place or is_late:
                pass
            elif not place.is_open:
                exams.begin(self.file, new_attempt=True)
            elif not self._hands_in():
                return
            self._show()
        except UserError as error:
            self._say(problem=str(error))

    def _hands_in(self) -> bool:
        """Hand in; with answers missing only at the second press."""
        assert self.place, "there is an attempt"
        questions = exams.paper(self.bank, self.place).questions
        missing = unanswered(questions, self.file.entries())
        if missing and missing != self._warned:
            self._warned = missing
            left = f"no answer yet to {len(missing)} of {len(questions)}: {', '.join(missing)}"
            self._say(problem=f"{left}. Press again to hand in all the same.")
            return False
        self._say("measuring and counting …")
        hand_in(self.bank.lesson, self.file, incomplete=True)
        return True

    def _say(self, hint: str = "", problem: str = "") -> None:
        self.status.value = render("status.html", problem=problem, hint=hint)
