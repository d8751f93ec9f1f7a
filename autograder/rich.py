"""Small pieces of rich text that quiz, predictions and progress share."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

CARD = (
    "border:1px solid var(--jp-border-color1,#bbb);border-left:6px solid {colour};border-radius:4px;"
    "padding:.7em 1em;margin:.3em 0;max-width:46em;font-family:var(--jp-ui-font-family,system-ui,sans-serif);"
    "color:var(--jp-ui-font-color1,inherit);line-height:1.45"
)
# For edges and bars, on white and on dark alike; a word or a sign always says the same as the colour.
GREEN, ORANGE, BLUE, GREY = "#1a7f37", "#b35900", "#0072b2", "#767d86"
# `role=status` lets a screen reader speak what changes.
_STATUS = """<div role="status" style="line-height:1.45;margin:.3em 0">{% if count %}{{ count }} · {% endif %}
{% if problem %}<strong style="color:var(--jp-error-color1,#b42318)">! {{ problem }}</strong>
{% else %}{{ "✓ " ~ word if word else hint }}{% endif %} {{ notices }}</div>"""


@functools.cache
def _templates() -> Environment:
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["inline"] = lambda text: Markup(inline_html(text))
    return environment


def render(template: str, **values: Any) -> str:
    """HTML from a Jinja template. Values are escaped; `|inline` keeps their `code` and **bold**."""
    return _templates().from_string(template).render(**values)


def status_html(
    *, word: str = "", problem: str = "", notices: str = "", hint: str = "saved as you type", count: str = ""
) -> str:
    """What a widget says about saving: a problem, else the word ("saved", "restored"), else the hint."""
    return render(_STATUS, word=word, problem=problem, notices=notices, hint=hint, count=count)


def card(colour: str, body: str, *, label: str = "") -> str:
    """A box with a coloured edge around trusted HTML."""
    named = f' role="group" aria-label="{escape(label)}"' if label else ""
    return f'<div class="workbook-card"{named} style="{CARD.format(colour=colour)}">{body}</div>'


def inline_html(text: str) -> str:
    """Escaped text with `code` and **bold**."""
    pieces = escape(text).split("`")
    return "".join(
        f"<code>{piece}</code>" if i % 2 else re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", piece)
        for i, piece in enumerate(pieces)
    )


def rich_html(text: str) -> str:
    """Paragraphs and ``` blocks as HTML."""
    parts = []
    for i, piece in enumerate(re.split(r"^```\w*$", text, flags=re.MULTILINE)):
        if i % 2:
            parts.append(
                f'<pre tabindex="0" style="background:var(--jp-layout-color2,#eee);color:inherit;padding:.5em .8em;'
                f'margin:.4em 0;overflow-x:auto;line-height:1.35">{escape(piece.strip(chr(10)))}</pre>'
            )
        else:
            paragraphs = [block for block in re.split(r"\n\s*\n", piece) if block.strip()]
            parts += [f'<p style="margin:.4em 0">{inline_html(block.strip())}</p>' for block in paragraphs]
    return "".join(parts)


def plain(text: str) -> str:
    """Text with the marks of `rich_html` taken off."""
    kept = [line for line in text.splitlines() if not line.startswith("```")]
    return "\n".join(kept).replace("`", "").replace("**", "")


# A saved widget is only a reference: with another kernel JupyterLab writes "Error displaying widget: model not found"
# in its place, on every page that was closed and opened again. This note stands above each widget, unseen, until
# there is such an empty place below it; then it takes the place.
_ASLEEP = """<style>
.jp-OutputArea-child:has(>.jp-OutputArea-output>.workbook-asleep){display:none}
.jp-OutputArea:has(.jp-OutputArea-output.jupyter-widgets):not(:has(.widget-vbox))
 >.jp-OutputArea-child:has(>.jp-OutputArea-output>.workbook-asleep){display:flex}
.jp-OutputArea:has(.workbook-asleep) .jp-OutputArea-output.jupyter-widgets:not(:has(*)){display:none}
.jp-OutputArea .workbook-asleep{display:block!important}
</style><div class="workbook-asleep" style="display:none">Run this cell to see its buttons and boxes again.
What you answered is saved.</div>"""


def in_kernel() -> bool:
    """Whether this process is a Jupyter kernel. Says so without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def show_widget(build: Callable[[], Any], text: str) -> bool:
    """Display the widget that `build` makes, with `text` for frontends that have no widgets.

    Returns whether anything was shown: not outside a kernel, and not where ipywidgets cannot be imported.
    """
    if not in_kernel():
        return False
    try:
        widget = build()
    except ImportError:
        return False
    from IPython.display import display

    display({"text/html": _ASLEEP, "text/plain": ""}, raw=True)
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display({"application/vnd.jupyter.widget-view+json": view, "text/plain": text}, raw=True)
    return True


def show_html(html: str, text: str) -> None:
    """Display HTML in a kernel, print the text elsewhere."""
    if not in_kernel():
        print(text)
        return
    from IPython.display import display

    display({"text/html": html, "text/plain": text}, raw=True)
