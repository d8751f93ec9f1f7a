"""The number box of `predict` and the text box of `compare`, saved while typing."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from autograder.kept import AnswersFile, kept_prediction, parse_number, save_prediction, why_key
from autograder.show import render, rich_html, spoken
from course_lib.base import UserError


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
        hint: str,
        above: str = "",
        unit: str = "",
    ) -> None:
        """`save` keeps a text and returns what to say, or raises `UserError`. `above` is trusted HTML."""
        self.file, self.box, self._save, self.status = file, box, save, spoken()
        box.style, self._hint = {"description_width": "initial"}, hint
        self._say("restored" if box.value else "")
        box.observe(lambda change: self._typed(change["new"]), names="value")
        row = widgets.HBox([box, widgets.HTML(escape(unit)), self.status], layout={"flex_flow": "row wrap"})
        row.layout.align_items, row.layout.grid_gap = "center", "0 .6em"
        self.widget = widgets.VBox([widgets.HTML(render("widgets.html") + above), row])
        self.widget.add_class("workbook-predict")

    def _typed(self, text: str) -> None:
        try:
            self._say(self._save(text))
        except UserError as error:
            self._say(problem=str(error))

    def _say(self, word: str = "", problem: str = "") -> None:
        notices = self.file.take_notices()
        self.status.value = render(
            "status.html", word=word, problem=problem, hint=self._hint, notices=notices
        )


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
        layout={"width": "18em"},
    )
    return SavedBox(file, box, save, hint="saved as you type", above=rich_html(question), unit=unit)


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
        layout={"width": "100%", "max_width": "46em", "height": "4.5em"},
    )
    return SavedBox(file, box, save, hint="saved when you leave the box")
