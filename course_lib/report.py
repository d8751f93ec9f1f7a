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
TRAIN, VALIDATION = COLOURS[:2]
Records = Sequence[dict[str, Any]]

_FIGURES = {
    "Loss": "loss",
    "Validation accuracy": "accuracy",
    "Learning rate": "learning_rate",
    "Gradient norm before clipping": "grad_norm",
    "Texts per second": "samples_per_sec",
    "Share of padding": "pad_fraction",
}
_FROM_ZERO = {"samples_per_sec", "pad_fraction"}


def render(template: str, **values: Any) -> str:
    """The page `templates/{template}` as text. Values are escaped, but for `Markup`."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("course_lib"), autoescape=True, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["cell"] = cell
    return environment.get_template(template).render(values)


def cell(value: Any) -> str:
    """A value as a table shows it: 12,345, 0.123, 1.2e-05, — for None."""
    if value is None or value != value:
        return "—"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2g}"


def draw(
    title: str, alt: str, plot: Callable[[Any], None], *, size: tuple[float, float] = (4.8, 2.9)
) -> Markup:
    """What `plot(axes)` draws, as SVG for a page; `alt` is for those who do not see it. Titles must differ
    within a page: ids of the drawing are made from them."""
    import matplotlib
    from matplotlib.figure import Figure

    # Text stays text (small, selectable).
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 10}):
        figure = Figure(figsize=size, layout="constrained")
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
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def write_report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write `report.html` from the finished record and the lines of `metrics.jsonl`."""
    atomic_write_text(folder.report, report_html(folder.directory.name, record, folder.read_metrics()))


def report_html(name: str, record: dict[str, Any], records: Records) -> str:
    """The page as text. `record` as in `run.json` of a finished run."""
    counts = [row["num_samples"] for row in record["per_class"]]
    return render(
        "report.html",
        **record,
        name=name,
        unit="texts" if record["config"].get("task", "classification") == "classification" else "tokens",
        cards=_cards(record),
        majority_share=max(counts) / sum(counts) if counts else None,
        advice=_advice(record["best"], record["step"]),
        figures=[_curves(title, key, records) for title, key in _FIGURES.items()],
        made=_provenance(record),
    )


def _advice(best: dict[str, Any], last_step: int) -> str:
    """What the place of the best step says about the length of the run."""
    if best["step"] == last_step:
        return "The last weights were the best: more epochs may help."
    if best["step"] < 0.6 * last_step:
        return (
            f"Validation {best['monitor']} did not improve after step {best['step']:,} of {last_step:,}: "
            f"fewer epochs would do, or more dropout may help."
        )
    return ""


def _cards(record: dict[str, Any]) -> dict[str, str]:
    shown = {
        "accuracy": ("accuracy", "{:.1%}"),
        "macro_f1": ("macro F1", "{:.3f}"),
        "perplexity": ("perplexity", "{:,.1f}"),
        "loss": ("loss", "{:.3f}"),
    }
    scores = record["validation"]
    return {
        **{words: form.format(scores[key]) for key, (words, form) in shown.items() if key in scores},
        "steps": f"{record['step']:,}",
        "training time": duration(record["train_seconds"]),
        "texts/s": f"{record['samples_per_sec'] or 0:,.0f}",
    }


def _provenance(record: dict[str, Any]) -> dict[str, str]:
    environment, hardware = record["environment"], record["hardware"]
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items() if version)
    return {
        "processor": f"{hardware['processor']}, threads: {hardware['num_threads']}",
        "accelerators": ", ".join(hardware["accelerators"]) or "none",
        "software": f"Python {environment['python']}, {packages}",
        **record["resolved"],
        "parameters": f"{record['num_parameters']:,}",
        "weights SHA-256": record["weights_sha256"],
        "data fingerprint": record["data"]["fingerprint"],
        "config fingerprint": record["config_fingerprint"],
    }


def _curves(title: str, key: str, records: Records) -> Markup:
    """One value over the steps: training and validation."""
    curves, ends = [], []
    for kind, label, colour, marker in (
        ("train", "training", TRAIN, None),
        ("validation", "validation", VALIDATION, "o"),
    ):
        rows = [row for row in records if row["kind"] == kind and row.get(key) is not None]
        if rows:
            steps, values = [row["step"] for row in rows], [row[key] for row in rows]
            curves.append((steps, values, {"color": colour, "marker": marker, "label": label}))
            ends.append(
                f"{label} from {values[0]:.4g} at step {steps[0]} to {values[-1]:.4g} at step {steps[-1]}"
            )

    def plot(axes: Any) -> None:
        axes.set_xlabel("step")
        for steps, values, style in curves:
            axes.plot(steps, values, markersize=4, **style)
        if len(curves) == 2:
            axes.legend(frameon=False)
        if key in _FROM_ZERO:
            axes.set_ylim(bottom=0)

    return draw(title, f"{'; '.join(ends) or 'not recorded'}.", plot)
