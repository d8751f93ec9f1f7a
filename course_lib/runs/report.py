"""`report.html`: one file that shows how a run went. No network, no other file needed to look at it."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from course_lib.base import COLOURS, atomic_write_text, draw, render
from course_lib.runs.folder import RunFolder
from course_lib.training import MAX_MATRIX_LABELS

_FIGURES = {
    "Loss": "loss",
    "Validation accuracy": "accuracy",
    "Validation macro F1": "macro_f1",
    "Validation R²": "r2",
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
        heat_map=heat_map(record.get("per_class") or [], record.get("confused") or []),
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


def heat_map(per_class: Sequence[dict[str, Any]], confused: Sequence[dict[str, Any]]) -> Markup:
    """Labels that are too many for a table of counts, as an SVG: a square for what came often enough, darker for a
    larger share of its row. Each names itself when it is pointed at; "" for few labels or none."""
    if len(per_class) <= MAX_MATRIX_LABELS or not confused:
        return Markup("")
    totals = {row["label"]: max(1, row["num_samples"]) for row in per_class}
    place = {label: i for i, label in enumerate(totals)}
    right = [
        {
            "label": row["label"],
            "predicted": row["label"],
            "num_samples": round(row["recall"] * row["num_samples"]),
        }
        for row in per_class
    ]
    squares = [
        row | {"row": place[row["label"]], "column": place[row["predicted"]]} | {"share": share}
        for row in [*right, *confused]
        if (share := row["num_samples"] / totals[row["label"]])
    ]
    return Markup(
        render(
            "heat_map.html",
            labels=[label if len(label) <= 28 else label[:27] + "…" for label in totals],
            squares=squares,
            size=max(4.0, min(16.0, 720 / len(totals))),
        )
    )
