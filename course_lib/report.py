"""`report.html`: one file that shows how a run went. No network, no other file needed to look at it."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from course_lib.files import atomic_write_text
from course_lib.metrics import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito, "Color Universal Design", 2008: told apart with colour-vision deficiencies too.
TRAIN, VALIDATION = "#0072B2", "#D55E00"
Records = Sequence[dict[str, Any]]

_STYLE = """
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
"""


def write_report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write `report.html` from the finished record and the lines of `metrics.jsonl`."""
    atomic_write_text(folder.report, report_html(folder.directory.name, record, folder.read_metrics()))


def report_html(name: str, record: dict[str, Any], records: Records) -> str:
    """The page as text. `record` as in `run.json` of a finished run."""
    data, config = record["data"], record["config"]
    notes = "".join(f"<li>{_text(note)}</li>" for note in data["notes"]) or "<li>Nothing to report.</li>"
    settings = "\n".join(f"{key}: {value}" for key, value in config.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Run {_text(name)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Run {_text(name)}</h1>
<p class="lead">{_text(config["data"])}: {data["num_train"]:,} texts to train on,
{data["num_validation"]:,} to validate on, {len(data["label_names"])} labels.</p>
<ul class="cards">{_cards(record)}</ul>
<p>These are the figures of the best weights (step {record["best"]["step"]:,}, chosen by validation
{_text(record["best"]["monitor"])}) on the validation texts. Always answering the most frequent label would
reach {_majority_share(record):.1%}. {_advice(record)}</p>
<h2>Curves</h2>
<div class="figures">{_figures(records)}</div>
<h2>Per label</h2>
{_class_table(record["per_class"])}
<h2>Notes on the data</h2>
<ul>{notes}</ul>
<h2>How it was made</h2>
<table class="made"><tbody>{_provenance(record)}</tbody></table>
<h2>Config</h2>
<pre>{_text(settings)}</pre>
</body>
</html>
"""


def _text(value: object) -> str:
    return html.escape(str(value))


def _advice(record: dict[str, Any]) -> str:
    """What the place of the best step says about the length of the run."""
    best, last = record["best"]["step"], record["step"]
    if best == last:
        return "The last weights were the best: more epochs may help."
    if best < 0.6 * last:
        monitor = record["best"]["monitor"]
        return (
            f"Validation {_text(monitor)} did not improve after step {best:,} of {last:,}: "
            f"fewer epochs would do, or more dropout may help."
        )
    return ""


def _majority_share(record: dict[str, Any]) -> float:
    counts = [row["num_samples"] for row in record["per_class"]]
    return max(counts) / sum(counts)


def _cards(record: dict[str, Any]) -> str:
    validation = record["validation"]
    shown = {
        "accuracy": f"{validation['accuracy']:.1%}",
        "macro F1": f"{validation['macro_f1']:.3f}",
        "loss": f"{validation['loss']:.3f}",
        "steps": f"{record['step']:,}",
        "training time": _duration(record["train_seconds"]),
        "texts/s": f"{record['samples_per_sec'] or 0:,.0f}",
    }
    return "".join(f"<li><strong>{value}</strong>{_text(label)}</li>" for label, value in shown.items())


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _class_table(rows: Records) -> str:
    body = "".join(
        f"<tr><td>{_text(row['label'])}</td><td>{row['precision']:.3f}</td><td>{row['recall']:.3f}</td>"
        f"<td>{row['f1']:.3f}</td><td>{row['num_samples']:,}</td></tr>"
        for row in sorted(rows, key=lambda row: row["f1"])
    )
    heads = "".join(
        f'<th scope="col">{name}</th>' for name in ("label", "precision", "recall", "F1", "texts")
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _provenance(record: dict[str, Any]) -> str:
    environment, hardware = record["environment"], record["hardware"]
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items() if version)
    rows = {
        "processor": f"{hardware['processor']}, threads: {hardware['num_threads']}",
        "accelerators": ", ".join(hardware["accelerators"]) or "none",
        "software": f"Python {environment['python']}, {packages}",
        **record["resolved"],
        "parameters": f"{record['num_parameters']:,}",
        "weights SHA-256": record["weights_sha256"],
        "data fingerprint": record["data"]["fingerprint"],
        "config fingerprint": record["config_fingerprint"],
    }
    return "".join(
        f'<tr><th scope="row">{_text(key)}</th><td>{_text(value)}</td></tr>' for key, value in rows.items()
    )


def _figures(records: Records) -> str:
    train = [record for record in records if record["kind"] == "train"]
    validation = [record for record in records if record["kind"] == "validation"]
    plots: list[tuple[str, str, Callable[[Axes], None]]] = [
        ("Loss", _span("Loss", train, "loss", validation), _curves("loss", train, validation)),
        ("Validation accuracy", _span("Accuracy", [], "accuracy", validation), _curves("accuracy", [], validation)),
        ("Learning rate", _span("Learning rate", train, "learning_rate"), _curves("learning_rate", train)),
        ("Gradient norm before clipping", _span("Gradient norm", train, "grad_norm"), _curves("grad_norm", train)),
        ("Texts per second", _span("Texts per second", train, "samples_per_sec"), _curves("samples_per_sec", train)),
        ("Share of padding", _span("Padding", train, "pad_fraction"), _curves("pad_fraction", train)),
    ]  # fmt: skip
    return "".join(f"<figure>{_svg(title, alt, draw)}</figure>" for title, alt, draw in plots)


def _span(name: str, train: Records, key: str, validation: Records = ()) -> str:
    """The curve in words, for those who do not see it."""
    parts = [
        f"{kind} from {rows[0][key]:.4g} at step {rows[0]['step']} to {rows[-1][key]:.4g} at step {rows[-1]['step']}"
        for kind, rows in (("training", train), ("validation", validation))
        if rows
    ]
    return f"{name}: {'; '.join(parts)}." if parts else f"{name}: not recorded."


def _curves(key: str, train: Records, validation: Records = ()) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for rows, colour, marker, label in (
            (train, TRAIN, None, "training"),
            (validation, VALIDATION, "o", "validation"),
        ):
            if rows:
                steps, values = [row["step"] for row in rows], [row[key] for row in rows]
                axes.plot(steps, values, color=colour, marker=marker, markersize=4, label=label)
        if train and validation:
            axes.legend(frameon=False)
        axes.set_xlabel("step")
        if key in ("pad_fraction", "samples_per_sec"):
            axes.set_ylim(bottom=0)

    return draw


def _svg(title: str, alt: str, draw: Callable[[Axes], None]) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    # Text stays text (small, selectable); ids are salted per figure, for all share one page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 10}):
        figure = Figure(figsize=(4.8, 2.9), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    # Names of groups repeat from figure to figure and nothing refers to them.
    drawing = re.sub(r'<g id="[^"]*"', "<g", buffer.getvalue())
    label = f'<svg role="img" aria-label="{html.escape(alt, quote=True)}"'
    return re.sub(r"<svg", lambda _: label, drawing[drawing.index("<svg") :], count=1)
