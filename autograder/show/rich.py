"""What quiz, predictions, progress and results share: templates, rich text, and ways to show them in a kernel."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.common import named, printable
from autograder.show.terminal import say
from course_lib.base import UserError
from course_lib.base import in_kernel as in_kernel

if TYPE_CHECKING:
    from jinja2 import Environment

# For edges and bars, on white and on dark alike; a word or a sign always says the same as the colour.
GREEN, ORANGE, BLUE, GREY = "#1a7f37", "#b35900", "#0072b2", "#767d86"
_EMPHASIS = re.compile(r"(?<![\w*])\*(\w(?:[^*]*\w)?)\*(?![\w*])")  # a product or `*args` is none


@functools.cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    folder = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters["named"] = named
    environment.filters["inline"] = lambda text: Markup(inline_html(text))
    environment.filters["quoting"] = lambda text: Markup(inline_html(text, is_quoting=True))
    return environment


def _shown(value: object) -> object:
    """A value of a template: a bidirectional override would turn the page around it, too."""
    return printable(value) if type(value) is str else value


def render(template: str, **values: Any) -> str:
    """HTML from a file in `templates`. Values are `printable` and escaped; `|inline` keeps their `code`, **bold** and
    *emphasis*, `|quoting` of texts that quote a learner `code` alone, `|named` marks a name that could be taken for
    something else."""
    return _templates().get_template(template).render(**values)


def inline_html(text: str, *, is_quoting: bool = False) -> str:
    """Escaped text with `code`, **bold** and *emphasis*; with `code` alone where it may quote a learner, whose words
    would look like heads of ours."""
    pieces, mark = escape(printable(text)).split("`"), str if is_quoting else _marked
    return "".join(f"<code>{piece}</code>" if i % 2 else mark(piece) for i, piece in enumerate(pieces))


def _marked(text: str) -> str:
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    return _EMPHASIS.sub(r"<em>\1</em>", bold)


def rich_html(text: str) -> str:
    """Paragraphs and ``` blocks as HTML."""
    parts = []
    for i, piece in enumerate(re.split(r"^```\w*$", text, flags=re.MULTILINE)):
        if i % 2:
            parts.append(
                '<pre tabindex="0" style="background:var(--jp-layout-color2,#eee);color:inherit;padding:.5em .8em;'
                'margin:.4em 0;overflow-x:auto;white-space:pre;font-size:.92em;line-height:1.35">'
                f"{escape(printable(piece).strip(chr(10)))}</pre>"
            )
        else:
            paragraphs = [block for block in re.split(r"\n\s*\n", piece) if block.strip()]
            parts += [f'<p style="margin:.4em 0">{inline_html(block.strip())}</p>' for block in paragraphs]
    return "".join(parts)


def plain(text: str) -> str:
    """Text with the marks of `rich_html` taken off."""
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("```"))
    pieces = kept.split("`")
    return "".join(
        piece if i % 2 else _EMPHASIS.sub(r"\1", piece.replace("**", "")) for i, piece in enumerate(pieces)
    )


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Print a `UserError` as its one line: what a learner calls raises none."""
    try:
        yield
    except UserError as error:
        say(str(error))


def show_widget(build: Callable[[], Any], text: str) -> None:
    """Display the widget that `build` makes, with `text` for frontends that have no widgets.

    Without a kernel or without ipywidgets the text is printed.
    """
    try:
        widget = build() if in_kernel() else None
    except ImportError:
        widget = None
    if widget is None:
        say(text)
        return
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    _display({"text/html": render("asleep.html"), "text/plain": ""})
    _display({"application/vnd.jupyter.widget-view+json": view, "text/plain": text})


def spoken(html: str = "") -> Any:
    """A place on the screen whose words change: a screen reader speaks them (`templates/widgets.js`)."""
    import ipywidgets

    place = ipywidgets.HTML(html)
    place.add_class("workbook-says")
    return place


def show_html(html: str, text: str) -> None:
    """Display HTML in a kernel, print the text elsewhere."""
    if in_kernel():
        _display({"text/html": html, "text/plain": text})
    else:
        say(text)


def _display(data: dict[str, Any]) -> None:
    from IPython.display import display

    display(data, raw=True)
