"""`report.html`: one file that shows how a run went. No network, no other file needed to look at it."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.base import COLOURS, atomic_write_text, draw, render
from course_lib.runs.folder import RunFolder

_FIGURES = {
    "Loss": "loss",
    "Validation accuracy": "accuracy",
    "Validation perplexity": "perplexity",
    "Learning rate": "learning_rate",
    "Gradient norm before clipping": "grad_norm",
    "Texts per second": "samples_per_sec",
    "Share of padding": "pad_fraction",
}


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
