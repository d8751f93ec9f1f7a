"""The quiz as ipywidgets: radio buttons that save at each choice."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import ipywidgets as widgets

from autograder.answers import AnswersFile, Entry
from autograder.quiz_bank import Question, judge
from autograder.quiz_card import feedback_html
from autograder.quizzes import give_answer
from autograder.rich import plain, render, rich_html, status_html

_FOOTER = """<div style="opacity:.8;font-size:.9em;line-height:1.45">
The last choice counts; the first is kept beside it.
Without buttons: <code>answer("{{ questions[0].id }}", "b")</code> saves the same.<br>{{ note }}</div>"""
# ipywidgets keeps every option on one line of fixed height; long options must wrap, and focus must be seen.
_STYLE = """<style>
.workbook-quiz{max-width:50em}
.workbook-quiz .widget-radio-box label{position:relative;display:block;white-space:normal;height:auto;
 line-height:1.4;padding:.2em .4em .2em 1.9em}
.workbook-quiz .widget-radio-box input{position:absolute;left:.3em;top:.42em;float:none;width:1em;height:1em;margin:0}
.workbook-quiz .widget-radio-box{height:auto;margin-bottom:0!important}
.workbook-quiz .widget-radio{width:auto;height:auto;flex-direction:column}
.workbook-quiz .widget-radio>.widget-label{text-align:left;font-weight:600;width:auto!important}
.workbook-quiz .widget-radio-box label:focus-within{outline:2px solid var(--jp-brand-color1,#0072b2)}
.workbook-quiz .widget-html,.workbook-quiz .widget-html-content{height:auto;line-height:1.45}
</style>"""


class QuizView:
    """The quiz of one lesson on the screen.

    Attributes:
        widget: what is displayed.
        radios: the buttons by question id; setting `.value` to a letter is what a click does.
        feedback: the HTML under each question.
        status: the line that says what is saved.
    """

    def __init__(self, bank: dict[str, Any], file: AnswersFile) -> None:
        self.file = file
        self.radios: dict[str, widgets.RadioButtons] = {}
        self.feedback: dict[str, widgets.HTML] = {}
        self.status = widgets.HTML()
        entries = file.entries()
        heading = render('<h3 style="margin:.2em 0">Quiz: {{ title }}</h3>', **bank)
        rows: list[widgets.Widget] = [widgets.HTML(_STYLE + heading)]
        for question in bank["questions"]:
            rows += self._question(bank["lesson"], question, entries.get(question["id"], {}))
        self.widget = widgets.VBox([*rows, self.status, widgets.HTML(render(_FOOTER, **bank))])
        self.widget.add_class("workbook-quiz")
        self._show_status("restored from" if any(radio.value for radio in self.radios.values()) else "")

    def _question(self, lesson_id: str, question: Question, entry: Entry) -> list[widgets.Widget]:
        options = {
            option["id"]: f"{option['id']}.  {plain(option['text'])}" for option in question["options"]
        }
        saved = entry.get("choice")
        radio = widgets.RadioButtons(
            options=[(text, letter) for letter, text in options.items()],
            value=saved if saved in list(options) else None,  # a list: what a file holds may not be hashable
            description=f"Your answer to question {question['id'].partition('.')[2]}",
            layout=widgets.Layout(width="auto"),
            style={"description_width": "initial"},
        )
        judged = judge(lesson_id, question, radio.value) if radio.value else None
        feedback = widgets.HTML(feedback_html(judged) if judged else "")
        radio.observe(lambda change: self._choose(question, change["new"]), names="value")
        self.radios[question["id"]], self.feedback[question["id"]] = radio, feedback
        number = f'<h4 style="margin:1.2em 0 .2em">{question["id"]}</h4>'
        return [widgets.HTML(number + rich_html(question["text"])), radio, feedback]

    def _choose(self, question: Question, choice: str) -> None:
        if "measured" in question:
            self.feedback[question["id"]].value = '<div role="status">Measuring on this machine …</div>'
        given = give_answer(question["id"], choice, file=self.file)
        saved = given.problem or f"✓ saved {datetime.now():%H:%M:%S}"
        self.feedback[question["id"]].value = feedback_html(given.judgement, saved)
        self._show_status("saved in", given.problem)

    def _show_status(self, word: str, problem: str = "") -> None:
        num_answered = sum(radio.value is not None for radio in self.radios.values())
        self.status.value = status_html(
            count=f"{num_answered} of {len(self.radios)} answered",
            word=word and f"{word} {self.file.path.name}",
            problem=problem,
            notices=self.file.take_notices(),
            hint="each choice is saved at once",
        )
