"""The number box of `predict` and the text box of `compare`, saved while typing."""

from __future__ import annotations

from html import escape

import ipywidgets as widgets

from autograder.answers import AnswersFile
from autograder.predictions import kept_prediction, parse_number, save_prediction, why_key
from autograder.rich import ERROR_TEXT, rich_html
from course_lib.errors import UserError

_STYLE = """<style>
.workbook-predict .widget-html,.workbook-predict .widget-html-content{height:auto;line-height:1.45}
.workbook-predict input:focus,.workbook-predict textarea:focus{outline:2px solid var(--jp-brand-color1,#0072b2)}
</style>"""


class PredictView:
    """A question and a box for a number.

    Attributes:
        widget: what is displayed.
        box: setting `.value` to text is what typing does.
        status: says what is saved.
    """

    def __init__(self, name: str, question: str, unit: str, file: AnswersFile) -> None:
        self.name, self.unit, self.file = name, unit, file
        kept = kept_prediction(file, name)
        # Text, not FloatText: an empty box and a predicted 0 are not the same.
        self.box = widgets.Text(
            value="" if kept is None else f"{kept:g}",
            description="Your prediction",
            placeholder="a number",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="18em"),
        )
        self.status = widgets.HTML(_status("restored" if kept is not None else "", file))
        self.box.observe(self._typed, names="value")
        row = widgets.HBox([self.box, widgets.HTML(f"<span>{escape(unit)}</span>"), self.status])
        self.widget = widgets.VBox([widgets.HTML(_STYLE + rich_html(question)), row])
        self.widget.add_class("workbook-predict")

    def _typed(self, change: dict[str, str]) -> None:
        try:
            number = parse_number(change["new"], self.unit)
            save_prediction(self.file, self.name, number, self.unit)
        except UserError as error:
            self.status.value = _status("", self.file, problem=str(error))
        else:
            self.status.value = _status(f"saved {number:g}", self.file)


class WhyView:
    """A box for the learner's reason, saved when the box is left. Attributes as in `PredictView`."""

    def __init__(self, name: str, file: AnswersFile) -> None:
        self.name, self.file = name, file
        kept = file.entries().get(why_key(name), {}).get("text", "")
        self.box = widgets.Textarea(
            value=str(kept),
            placeholder="One sentence: what did you not think of, or what did you think of rightly?",
            description="Why?",
            continuous_update=False,
            layout=widgets.Layout(width="100%", max_width="46em", height="4.5em"),
        )
        self.status = widgets.HTML(
            _status("restored" if kept else "", file, hint="saved when you leave the box")
        )
        self.box.observe(self._typed, names="value")
        self.widget = widgets.VBox([widgets.HTML(_STYLE), self.box, self.status])
        self.widget.add_class("workbook-predict")

    def _typed(self, change: dict[str, str]) -> None:
        try:
            self.file.save(why_key(self.name), {"text": change["new"]})
        except UserError as error:
            self.status.value = _status("", self.file, problem=str(error))
        else:
            self.status.value = _status("saved", self.file)


def _status(word: str, file: AnswersFile, *, problem: str = "", hint: str = "saved as you type") -> str:
    if problem:
        said = f'<span style="color:{ERROR_TEXT}">! {escape(problem)}</span>'
    else:
        said = f"✓ {escape(word)}" if word else hint
    notices = escape(file.take_notices())
    return f'<div role="status">{said} {notices}</div>'
