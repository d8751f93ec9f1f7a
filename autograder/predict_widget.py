"""The number box of `predict` and the text box of `compare`, saved while typing."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from autograder.answers import AnswersFile
from autograder.predictions import kept_prediction, parse_number, save_prediction, why_key
from autograder.rich import rich_html, status_html
from course_lib.errors import UserError

_STYLE = """<style>
.workbook-predict .widget-html,.workbook-predict .widget-html-content{height:auto;line-height:1.45}
.workbook-predict input:focus,.workbook-predict textarea:focus{outline:2px solid var(--jp-brand-color1,#0072b2)}
</style>"""


class SavedBox:
    """A box whose text is saved as it changes.

    Attributes:
        widget: what is displayed.
        box: setting `.value` to text is what typing does.
        status: says what is saved.
    """

    def __init__(
        self,
        file: AnswersFile,
        box: widgets.Text,
        save: Callable[[str], str],
        *,
        above: str,
        unit: str,
        hint: str,
    ) -> None:
        """`save` keeps a text and returns what to say, or raises `UserError`. `above` is trusted HTML."""
        self.file, self.box, self._save = file, box, save
        restored = "restored" if box.value else ""
        self.status = widgets.HTML(status_html(word=restored, hint=hint, notices=file.take_notices()))
        box.observe(lambda change: self._typed(change["new"]), names="value")
        row = widgets.HBox([box, widgets.HTML(escape(unit)), self.status], layout={"flex_flow": "row wrap"})
        row.layout.align_items, row.layout.grid_gap = "center", "0 .6em"
        self.widget = widgets.VBox([widgets.HTML(_STYLE + above), row])
        self.widget.add_class("workbook-predict")

    def _typed(self, text: str) -> None:
        word = problem = ""
        try:
            word = self._save(text)
        except UserError as error:
            problem = str(error)
        self.status.value = status_html(word=word, problem=problem, notices=self.file.take_notices())


def predict_box(name: str, question: str, unit: str, file: AnswersFile) -> SavedBox:
    """A question and a box for a number."""

    def save(text: str) -> str:
        number = parse_number(text, unit)
        save_prediction(file, name, number, unit)
        return f"saved {number:g}"

    kept = kept_prediction(file, name)
    # Text, not FloatText: an empty box and a predicted 0 are not the same.
    box = widgets.Text(
        value="" if kept is None else f"{kept:g}",
        description="Your prediction",
        placeholder="a number",
        style={"description_width": "initial"},
        layout={"width": "18em"},
    )
    return SavedBox(file, box, save, above=rich_html(question), unit=unit, hint="saved as you type")


def why_box(name: str, file: AnswersFile) -> SavedBox:
    """A box for the learner's reason, saved when the box is left."""

    def save(text: str) -> str:
        file.save(why_key(name), {"text": text})
        return "saved"

    box = widgets.Textarea(
        value=str(file.entries().get(why_key(name), {}).get("text", "")),
        placeholder="One sentence: what did you not think of, or what did you think of rightly?",
        description="Why?",
        continuous_update=False,
        style={"description_width": "initial"},
        layout={"width": "100%", "max_width": "46em", "height": "4.5em"},
    )
    return SavedBox(file, box, save, above="", unit="", hint="saved when you leave the box")
