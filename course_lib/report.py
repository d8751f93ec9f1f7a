"""`report.html`: one file that shows how a run went. No network, no other file needed to look at it."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any

from course_lib.files import atomic_write_text
from course_lib.metrics import RunFolder

# Okabe and Ito, "Color Universal Design", 2008: told apart with colour-vision deficiencies too.
TRAIN, VALIDATION = "#0072B2", "#D55E00"
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

# A Jinja template: values are escaped.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Run {{ name }}</title>
<style>
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
.lead { color: #555; margin-top: .2rem; overflow-wrap: anywhere }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr)); gap: .75rem }
.cards { padding: 0; list-style: none }
.cards li { border: 1px solid #ddd; border-radius: 8px; padding: .6rem .8rem }
.cards strong { display: block; font-size: 1.3rem; white-space: nowrap }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem }
figure { margin: 0 } svg { width: 100%; height: auto }
table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #e5e5e5; text-align: right }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere }
.made th { white-space: nowrap; vertical-align: top } .made td { text-align: left; overflow-wrap: anywhere }
thead th { border-bottom: 2px solid #999 }
pre { background: #f6f6f6; padding: .8rem; border-radius: 8px; overflow-x: auto; font-size: .85rem }
</style>
</head>
<body>
<h1>Run {{ name }}</h1>
<p class="lead">{{ config.data }}: {{ "{:,}".format(data.num_train) }} texts to train on,
{{ "{:,}".format(data.num_validation) }} to validate on, {{ data.label_names | length }} labels.</p>
<ul class="cards">
{% for label, value in cards.items() %}<li><strong>{{ value }}</strong>{{ label }}</li>
{% endfor %}</ul>
<p>These are the figures of the best weights (step {{ "{:,}".format(best.step) }}, chosen by validation
{{ best.monitor }}) on the validation texts. Always answering the most frequent label would
reach {{ "{:.1%}".format(majority_share) }}. {{ advice }}</p>
<h2>Curves</h2>
<div class="figures">{% for figure in figures %}<figure>{{ figure | safe }}</figure>{% endfor %}</div>
<h2>Per label</h2>
<table><thead><tr>{% for head in ("label", "precision", "recall", "F1", "texts") %}
<th scope="col">{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for row in per_class | sort(attribute="f1") %}<tr><td>{{ row.label }}</td>
{% for key in ("precision", "recall", "f1") %}<td>{{ "{:.3f}".format(row[key]) }}</td>{% endfor %}
<td>{{ "{:,}".format(row.num_samples) }}</td></tr>
{% endfor %}</tbody></table>
<h2>Notes on the data</h2>
<ul>{% for note in data.notes or ["Nothing to report."] %}<li>{{ note }}</li>{% endfor %}</ul>
<h2>How it was made</h2>
<table class="made"><tbody>
{% for key, value in made.items() %}<tr><th scope="row">{{ key }}</th><td>{{ value }}</td></tr>
{% endfor %}</tbody></table>
<h2>Config</h2>
<pre>{% for key, value in config.items() %}{{ key }}: {{ value }}
{% endfor %}</pre>
</body>
</html>
"""


def write_report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write `report.html` from the finished record and the lines of `metrics.jsonl`."""
    atomic_write_text(folder.report, report_html(folder.directory.name, record, folder.read_metrics()))


def report_html(name: str, record: dict[str, Any], records: Records) -> str:
    """The page as text. `record` as in `run.json` of a finished run."""
    from jinja2 import Environment

    counts = [row["num_samples"] for row in record["per_class"]]
    page = Environment(autoescape=True, keep_trailing_newline=True).from_string(_PAGE)
    return page.render(
        record,
        name=name,
        cards=_cards(record),
        majority_share=max(counts) / sum(counts),
        advice=_advice(record["best"], record["step"]),
        figures=[_figure(title, key, records) for title, key in _FIGURES.items()],
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
    validation, seconds = record["validation"], record["train_seconds"]
    minutes, rest = divmod(round(seconds), 60)
    return {
        "accuracy": f"{validation['accuracy']:.1%}",
        "macro F1": f"{validation['macro_f1']:.3f}",
        "loss": f"{validation['loss']:.3f}",
        "steps": f"{record['step']:,}",
        "training time": f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s",
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


def _figure(title: str, key: str, records: Records) -> str:
    """One curve over the steps as SVG, with its ends in words for those who do not see it."""
    import matplotlib
    from matplotlib.figure import Figure

    curves = {
        kind: [record for record in records if record["kind"] == kind and key in record]
        for kind in ("train", "validation")
    }
    ends = []
    # Text stays text (small, selectable); ids are salted per figure, for all share one page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 10}):
        figure = Figure(figsize=(4.8, 2.9), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        axes.set_xlabel("step")
        for label, rows, colour, marker in (
            ("training", curves["train"], TRAIN, None),
            ("validation", curves["validation"], VALIDATION, "o"),
        ):
            if rows:
                steps, values = [row["step"] for row in rows], [row[key] for row in rows]
                axes.plot(steps, values, color=colour, marker=marker, markersize=4, label=label)
                ends.append(
                    f"{label} from {values[0]:.4g} at step {steps[0]} to {values[-1]:.4g} at step {steps[-1]}"
                )
        if len(ends) == 2:
            axes.legend(frameon=False)
        if key in _FROM_ZERO:
            axes.set_ylim(bottom=0)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    # Names of groups repeat from figure to figure and nothing refers to them.
    drawing = re.sub(r'<g id="[^"]*"', "<g", buffer.getvalue())
    alt = html.escape(f"{title}: {'; '.join(ends) or 'not recorded'}.")
    opening = f'<svg role="img" aria-label="{alt}"'
    return re.sub(r"<svg", lambda _: opening, drawing[drawing.index("<svg") :], count=1)
