"""The quiz as ipywidgets: radio buttons that save at each choice."""

from __future__ import annotations

from datetime import datetime
from html import escape

import ipywidgets as widgets

from autograder.kept import Answer, AnswersFile
from autograder.quizzes.acting import GRADED_LATER, give_answer
from autograder.quizzes.bank import Bank
from autograder.quizzes.card import feedback_html
from autograder.quizzes.forms import is_second, shown_form, turn
from autograder.quizzes.kinds import Choice
from autograder.quizzes.question import Question
from autograder.show import plain, render, rich_html, spoken
from course_lib.base import UserError

BUTTON = {"width": "auto", "align_self": "flex-start", "padding": "0 1.2em"}


class QuizView:
    """The quiz of one lesson on the screen.

    Attributes:
        widget: what is displayed.
        radios: the buttons by question id; setting `.value` to a letter is what a click does.
        feedback: the HTML under each question.
        status: the line that says what is saved.
    """

    def __init__(self, bank: Bank, file: AnswersFile) -> None:
        self.file = file
        self.is_graded = bank.is_keyless
        self.radios: dict[str, widgets.RadioButtons] = {}
        self.feedback: dict[str, widgets.HTML] = {}
        self.status = spoken()
        entries = file.entries()
        told = bank.to_dict()
        rows: list[widgets.Widget] = [widgets.HTML(render("widgets.html", **told))]
        for question in bank.questions:
            rows.append(self._question(bank, question, Answer.from_entry(entries.get(question.id))))
        self.widget = widgets.VBox([*rows, self.status, widgets.HTML(render("quiz_footer.html", **told))])
        self.widget.add_class("workbook-quiz")
        self._show_status("restored from" if any(radio.value for radio in self.radios.values()) else "")

    def _question(self, bank: Bank, question: Question, saved: Answer) -> widgets.Widget:
        radio = _control(question, saved)
        # An exam's reasons come when it is handed in, and then what would have been right as well.
        waits, is_over = bank.is_open is True or self.is_graded, bank.is_open is False
        radio.disabled = is_over
        judged = question.judge(bank.lesson, radio.value) if radio.value and not waits else None
        right = question.solution(bank.lesson, radio.value) if is_over else ""
        feedback = spoken(feedback_html(judged, solution=right) if judged or is_over else "")
        radio.observe(lambda change: self._choose(question, change["new"], waits), names="value")
        self.radios[question.id], self.feedback[question.id] = radio, feedback
        number = f'<h4 style="margin:1.2em 0 .2em">{question.id}</h4>'
        asked = widgets.HTML(number + rich_html(question.text))
        row = widgets.VBox([asked, radio, feedback])
        asked.add_class("workbook-asked")
        row.add_class("workbook-question")
        return row

    def _choose(self, question: Question, choice: str, waits: bool) -> None:
        if question.is_measured and not waits:
            self.feedback[question.id].value = "Measuring on this machine …"
        try:
            given = give_answer(question.id, choice, file=self.file)
        except UserError as error:  # the attempt was handed in elsewhere, in another tab for instance
            return self._show_status("", str(error))
        saved = given.problem or f"✓ saved {datetime.now():%H:%M:%S}{GRADED_LATER * self.is_graded}"
        judged = given.judgement
        self.feedback[question.id].value = feedback_html(judged, saved) if judged else escape(saved)
        self._show_status("saved in", given.problem)

    def _show_status(self, word: str, problem: str = "") -> None:
        num_answered = sum(radio.value is not None for radio in self.radios.values())
        self.status.value = render(
            "status.html",
            count=f"{num_answered} of {len(self.radios)} answered",
            word=word and f"{word} {self.file.path.name}",
            problem=problem,
            notices=self.file.take_notices(),
            hint="each choice is saved at once",
        )


def _control(question: Question, saved: Answer) -> widgets.RadioButtons:
    """What takes the answer to a question, by its kind."""
    assert isinstance(question, Choice)
    return widgets.RadioButtons(
        options=[(f"{option.id}.  {plain(option.text)}", option.id) for option in question.options],
        value=saved.choice if question.accepts(saved.choice) else None,
        description=f"Your answer to question {question.id.partition('.')[2]}",
        layout=widgets.Layout(width="auto"),
        style={"description_width": "initial"},
    )


class FormsView:
    """A lesson's quiz that has other questions: one form on the screen, and a button that turns to the other.

    Attributes:
        widget: what is displayed.
        questions: the form that is shown, as a quiz.
        button: turns; to the other questions once all are answered, back at any time.
        status: what the button has to say.
    """

    questions: QuizView

    def __init__(self, bank: Bank, file: AnswersFile) -> None:
        self.bank, self.file = bank, file
        self.button = widgets.Button(layout=BUTTON)
        self.button.on_click(lambda _: self._turn())
        self.status, self.sheet = spoken(), widgets.VBox()
        # The button stays the same one: were it made anew, whoever pressed it would lose the focus.
        self.widget = widgets.VBox([self.sheet, self.button, self.status])
        self.widget.add_class("workbook-turns")
        self._show()

    def _show(self) -> None:
        """The form that the file names."""
        entries = self.file.entries()
        self.is_second = is_second(self.bank, entries)
        self.questions = QuizView(shown_form(self.bank, entries), self.file)
        for radio in self.questions.radios.values():
            radio.observe(lambda _: self._refresh(), names="value")
        self.button.description = "First questions" if self.is_second else "Other questions"
        self.sheet.children = [self.questions.widget]
        self._refresh()

    def _refresh(self) -> None:
        is_open = any(radio.value is None for radio in self.questions.radios.values())
        self.button.disabled = is_open and not self.is_second
        hint = "The answers of both are kept; the better of the two counts."
        if not self.is_second:
            hint = f"Other questions on the same decisions{' come once all are answered' * is_open}. {hint}"
        self._say(hint)

    def _turn(self) -> None:
        try:
            turn(self.file, to_second=not self.is_second)
            self._show()
        except UserError as error:
            self._say(problem=str(error))

    def _say(self, hint: str = "", problem: str = "") -> None:
        self.status.value = render("status.html", problem=problem, hint=hint)
