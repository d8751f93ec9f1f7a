"""The list of `diagnose`: a choice is saved when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import ipywidgets as widgets

from autograder.kept import kept_diagnosis, prediction_file, save_diagnosis
from autograder.show import plain, render, rich_html, spoken
from course_lib.base import UserError


def diagnose_box(name: str, question: str, options: Sequence[str]) -> widgets.Widget:
    """A question and its options, none of them chosen for the learner."""
    kept, status = kept_diagnosis(name), spoken()
    named = [
        (f"{letter}  {plain(text)}", letter) for letter, text in zip(ascii_lowercase, options, strict=False)
    ]
    box = widgets.Dropdown(
        options=[("choose …", None), *named],
        value=kept if kept in dict(named).values() else None,
        description="Your diagnosis",
        style={"description_width": "initial"},
        layout={"width": "100%", "max_width": "46em"},
    )

    def say(word: str = "", problem: str = "") -> None:
        notices = prediction_file(name).take_notices()
        status.value = render(
            "status.html", word=word, problem=problem, hint="saved when you choose", notices=notices
        )

    def chosen(letter: str | None) -> None:
        if letter is None:  # what was saved stays
            return
        try:
            save_diagnosis(name, letter)
            say(f"saved {letter}")
        except UserError as error:
            say(problem=str(error))

    say(f"restored {kept}" if kept else "")
    box.observe(lambda change: chosen(change["new"]), names="value")
    head = widgets.HTML(render("widgets.html") + rich_html(question))
    whole = widgets.VBox([head, box, status])
    whole.add_class("workbook-predict")
    return whole
