"""Diagnose first, then read on: the learner's choice, kept, and later shown beside what it was.

An answer is shown only to who has committed to one: what is read before it is guessed teaches little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from autograder.kept import kept_diagnosis, save_diagnosis
from autograder.show import BLUE, plain, render, show_html, show_widget, told
from course_lib.base import UserError


@told()
def diagnose(name: str, question: str, options: Sequence[str], choice: str | None = None) -> None:
    """Ask what it is before it is said, and keep the choice at once beside the notebook.

    Args:
        name: lesson number and a letter, for instance "1i".
        options: what it may be; the first is "a".
        choice: the letter, for working without widgets; `None` shows a list to choose from.

    Raises:
        UserError: the letter is none of the options; said in one line.
    """
    letters = ascii_lowercase[: len(options)]
    if choice is not None:
        if str(choice) not in list(letters):
            raise UserError(f"not saved: {str(choice)[:20]!r} is none of {', '.join(letters)}")
        save_diagnosis(name, str(choice))
    kept = kept_diagnosis(name)
    listed = "\n".join(f"  {letter}  {plain(text)}" for letter, text in zip(letters, options, strict=True))
    said = f"Your diagnosis: {kept}, saved" if kept else f'Without a list: diagnose("{name}", …, choice="a")'
    text = f"{plain(question)}\n{listed}\n{said}"
    if choice is not None:
        print(text)
        return

    def build() -> Any:
        from autograder.kernel.diagnose_widget import diagnose_box

        return diagnose_box(name, question, options)

    show_widget(build, text)


@told()
def reveal(answers: Mapping[str, tuple[str, str, str]]) -> None:
    """Show what it was beside each diagnosis; one that nobody has committed to stays closed.

    Args:
        answers: by the name of the diagnosis: what it was of, the letter that is right, and why.
    """
    rows = []
    for name, (what, right, why) in answers.items():
        chosen = kept_diagnosis(name)
        rows.append({"what": what, "word": _word(chosen, right), "why": plain(why) if chosen else ""})
    html = render("revealed.html", colour=BLUE, label="Diagnoses", rows=rows)
    show_html(html, "\n".join(f"{row['what']}: {row['word']} {row['why']}".rstrip() for row in rows))


def _word(chosen: str | None, right: str) -> str:
    if chosen is None:
        return "choose first, then run this cell again"
    return f"{right}, as you said." if chosen == right else f"{right}; you said {chosen}."
