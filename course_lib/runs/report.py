"""`report.html`: one file that shows how a run went. No network, no other file needed to look at it.

The pages of this package share `templates/base.html`, `render` and `draw`.
"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from course_lib.base.files import atomic_write_text
from course_lib.runs.folder import RunFolder

# Okabe and Ito, "Color Universal Design", 2008: told apart with colour-vision deficiencies too.
COLOURS = {"train": "#0072B2", "validation": "#D55E00"}

_FIGURES = {
    "Loss": "loss",
    "Validation accuracy": "accuracy",
    "Validation perplexity": "perplexity",
    "Learning rate": "learning_rate",
    "Gradient norm before clipping": "grad_norm",
    "Texts per second": "samples_per_sec",
    "Share of padding": "pad_fraction",
}


def render(template: str, **values: Any) -> str:
    """The page `templates/{template}` as text. Values are escaped, but for `Markup`."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("course_lib.runs"), autoescape=True, trim_blocks=True)
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
    import matplotlib
    from matplotlib.figure import Figure

    # Text stays text (small, selectable).
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 10}):
        figure = Figure(figsize=(4.8, 2.9), layout="constrained")
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


def write_report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write `report.html` from the finished record and the lines of `metrics.jsonl`."""
    atomic_write_text(folder.report, report_html(folder.directory.name, record, folder.read_metrics()))


def report_html(name: str, record: dict[str, Any], records: Sequence[dict[str, Any]]) -> str:
    """The page as text. `record` as in `run.json` of a finished run."""
    titles = [title for title, key in _FIGURES.items() if any(key in row for row in records)]
    return render(
        "report.html",
        **record,
        name=name,
        figures=[draw(title, *_curves(title, records)) for title in titles],
    )


def curves_image(title: str, records: Sequence[dict[str, Any]]) -> str:
    """One figure of the report, by its title, as an `<img>` for a notebook: half as wide as a cell."""
    alt, plot = _curves(title, records)
    drawing = base64.b64encode(draw(title, alt, plot).encode()).decode()
    said = html.escape(f"{title}: {alt}")
    return f'<img src="data:image/svg+xml;base64,{drawing}" alt="{said}" style="width:49%;margin:0">'


def _curves(title: str, records: Sequence[dict[str, Any]]) -> tuple[str, Callable[[Any], None]]:
    """What was logged in training and validation, over steps: the ends of the curves in words, and what draws them."""
    key, curves = _FIGURES[title], {}
    for kind in ("train", "validation"):
        if rows := [row for row in records if row["kind"] == kind and row.get(key) is not None]:
            curves[kind] = [row["step"] for row in rows], [row[key] for row in rows]
    ends = [
        f"{kind} from {y[0]:.4g} at step {x[0]} to {y[-1]:.4g} at {x[-1]}" for kind, (x, y) in curves.items()
    ]

    def plot(axes: Any) -> None:
        axes.set_xlabel("step")
        for kind, (steps, values) in curves.items():
            axes.plot(steps, values, label=kind, color=COLOURS[kind], marker=".")
        axes.legend(frameon=False)

    return f"{'; '.join(ends) or 'not recorded'}.", plot
