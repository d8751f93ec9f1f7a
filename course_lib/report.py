"""`report.html`: one file that shows how a run went. No network, no other file needed to look at it.

The pages of this package share `templates/base.html`, `render` and `draw`.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from course_lib.files import atomic_write_text
from course_lib.metrics import RunFolder

# Okabe and Ito, "Color Universal Design", 2008: told apart with colour-vision deficiencies too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = (
    ("train", "training", {"color": COLOURS[0]}),
    ("validation", "validation", {"color": COLOURS[1], "marker": "o"}),
)
Records = Sequence[dict[str, Any]]
Line = tuple[str, Sequence[float], Sequence[float], dict[str, Any]]

_FIGURES = {
    "Loss": "loss",
    "Validation accuracy": "accuracy",
    "Validation perplexity": "perplexity",
    "Learning rate": "learning_rate",
    "Gradient norm before clipping": "grad_norm",
    "Texts per second": "samples_per_sec",
    "Share of padding": "pad_fraction",
}
_FROM_ZERO = {"samples_per_sec", "pad_fraction"}


def render(template: str, **values: Any) -> str:
    """The page `templates/{template}` as text. Values are escaped, but for `Markup`."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("course_lib"), autoescape=True, trim_blocks=True)
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


def plot_lines(title: str, x_label: str, lines: Sequence[Line], *, from_zero: bool = False) -> Markup:
    """Curves, each (name, xs, ys, style of matplotlib); their ends are told in words too."""
    ends = [
        f"{name} from {ys[0]:.4g} at {x_label} {xs[0]:.4g} to {ys[-1]:.4g} at {xs[-1]:.4g}"
        for name, xs, ys, _ in lines
    ]

    def plot(axes: Any) -> None:
        axes.set_xlabel(x_label)
        for name, xs, ys, style in lines:
            axes.plot(xs, ys, markersize=4, label=name, **style)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8 if len(lines) > 4 else None)
        if from_zero:
            axes.set_ylim(bottom=0)

    return draw(title, f"{'; '.join(ends) or 'not recorded'}.", plot)


def write_report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write `report.html` from the finished record and the lines of `metrics.jsonl`."""
    atomic_write_text(folder.report, report_html(folder.directory.name, record, folder.read_metrics()))


def report_html(name: str, record: dict[str, Any], records: Records) -> str:
    """The page as text. `record` as in `run.json` of a finished run."""
    figures = [
        plot_lines(title, "step", _train_and_validation(key, records), from_zero=key in _FROM_ZERO)
        for title, key in _FIGURES.items()
        if any(key in row for row in records)
    ]
    return render("report.html", **record, name=name, figures=figures)


def _train_and_validation(key: str, records: Records) -> list[Line]:
    lines: list[Line] = []
    for kind, label, style in _STYLES:
        rows = [row for row in records if row["kind"] == kind and row.get(key) is not None]
        if rows:
            lines.append((label, [row["step"] for row in rows], [row[key] for row in rows], style))
    return lines
