"""The quiz as ipywidgets: radio buttons that save at each choice."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import Any

import ipywidgets as widgets

from autograder.answers import AnswersFile, Entry
from autograder.quiz_bank import Question, judge
from autograder.quiz_card import feedback_html
from autograder.rich import ERROR_TEXT, plain, rich_html

# ipywidgets keeps every option on one line of fixed height; long options must wrap, and focus must be seen.
_STYLE = """<style>
.workbook-quiz .widget-radio-box label{position:relative;display:block;white-space:normal;height:auto;
 line-height:1.4;padding:.2em .4em .2em 1.9em;max-width:44em}
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
        self.bank, self.file = bank, file
        self.radios: dict[str, widgets.RadioButtons] = {}
        self.feedback: dict[str, widgets.HTML] = {}
        self.status = widgets.HTML()
        entries = file.entries()
        rows: list[widgets.Widget] = [widgets.HTML(self._heading())]
        for question in bank["questions"]:
            rows += self._question(question, entries.get(question["id"], {}))
        rows += [self.status, widgets.HTML(self._footer())]
        self.widget = widgets.VBox(rows)
        self.widget.add_class("workbook-quiz")
        self._show_status("restored" if self._answered() else "")

    def _question(self, question: Question, entry: Entry) -> list[widgets.Widget]:
        saved = entry.get("choice")
        letters = [option["id"] for option in question["options"]]
        number = question["id"].partition(".")[2]
        radio = widgets.RadioButtons(
            options=[
                (f"{option['id']}.  {plain(option['text'])}", option["id"]) for option in question["options"]
            ],
            value=saved if saved in letters else None,
            description=f"Your answer to question {number}",
            layout=widgets.Layout(width="auto"),
            style={"description_width": "initial"},
        )
        feedback = widgets.HTML()
        if radio.value is not None:
            feedback.value = self._judged(question, radio.value)
        radio.observe(lambda change: self._choose(question, change["new"]), names="value")
        self.radios[question["id"]], self.feedback[question["id"]] = radio, feedback
        stem = widgets.HTML(
            f'<h4 style="margin:1.2em 0 .2em">{escape(question["id"])}</h4>{rich_html(question["text"])}'
        )
        return [stem, radio, feedback]

    def _choose(self, question: Question, choice: str | None) -> None:
        from autograder.quizzes import give_answer

        if choice is None:
            return
        if "measured" in question:
            self.feedback[question["id"]].value = '<div role="status">Measuring on this machine …</div>'
        given = give_answer(question["id"], choice, file=self.file)
        saved = given.problem or f"✓ saved {datetime.now():%H:%M:%S}"
        self.feedback[question["id"]].value = feedback_html(given.judgement, saved)
        self._show_status("saved", given.problem)

    def _judged(self, question: Question, choice: str) -> str:
        return feedback_html(judge(self.bank["lesson"], question, choice))

    def _answered(self) -> int:
        return sum(radio.value is not None for radio in self.radios.values())

    def _show_status(self, word: str, problem: str = "") -> None:
        count = f"{self._answered()} of {len(self.radios)} answered"
        if problem:
            said = f'<strong style="color:{ERROR_TEXT}">! {escape(problem)}</strong>'
        elif word:
            where = (
                f"in {escape(self.file.path.name)}"
                if word == "saved"
                else f"from {escape(self.file.path.name)}"
            )
            said = f"✓ {word} {where}"
        else:
            said = "each choice is saved at once"
        notices = escape(self.file.take_notices())
        below = f"<br>{notices}" if notices else ""
        self.status.value = f'<div role="status" style="margin-top:1em">{count} · {said}{below}</div>'

    def _heading(self) -> str:
        return f'{_STYLE}<h3 style="margin:.2em 0">Quiz: {escape(self.bank["title"])}</h3>'

    def _footer(self) -> str:
        first = self.bank["questions"][0]["id"]
        return (
            '<div style="opacity:.8;font-size:.9em;line-height:1.45">'
            "The last choice counts; the first is kept beside it. "
            f"Without buttons: <code>answer(&quot;{escape(first)}&quot;, &quot;b&quot;)</code> saves the same.<br>"
            f"{escape(self.bank['note'])}</div>"
        )
