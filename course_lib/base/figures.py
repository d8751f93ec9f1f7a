"""What the pages of this library share: templates, numbers as text, drawings."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from course_lib.base.errors import require

# Okabe and Ito, "Color Universal Design", 2008: told apart with colour-vision deficiencies too.
COLOURS = {"train": "#0072B2", "validation": "#D55E00"}


def render(template: str, **values: Any) -> str:
    """The page `templates/{template}` as text. Values are escaped, but for `Markup`."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("course_lib.base"), autoescape=True, trim_blocks=True)
    environment.filters |= {"cell": cell, "duration": duration}
    return environment.get_template(template).render(values)


def cell(value: Any) -> str:
    """A value as a table shows it: 12,345; 0.123; 1.2e-05; — for None."""
    if value is None or value != value:
        return "—"
    if isinstance(value, list):
        return ", ".join(map(cell, value)) or "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value == 0 or 0.1 <= abs(value) < 100 else f"{value:.3g}"


def draw(title: str, alt: str, plot: Callable[[Any], None]) -> Markup:
    """What `plot(axes)` draws, as SVG for a page; `alt` is for those who do not see it. Titles must differ
    within a page: ids of the drawing are made from them."""
    matplotlib, figures = require("matplotlib"), require("matplotlib.figure")
    # Text stays text (small, selectable).
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 10}):
        figure = figures.Figure(figsize=(4.8, 2.9), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        plot(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    # Names of groups repeat from figure to figure and nothing refers to them.
    drawing = re.sub(r'<g id="[^"]*"', "<g", buffer.getvalue())
    opening = f'<svg role="img" aria-label="{html.escape(f"{title}: {alt}")}"'
    return Markup(re.sub(r"<svg", lambda _: opening, drawing[drawing.index("<svg") :], count=1))


def duration(seconds: float) -> str:
    """`"12.3 s"`, `"3 min 4 s"`, `"2 h 5 min"`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
