"""An evaluation as people read it: aligned tables for a terminal, and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from course_lib.base import COLOURS, cell, draw, render
from course_lib.runs.report import heat_map
from course_lib.runs.using.judging import excerpt

NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "perplexity": "perplexity",
    "loss": "loss",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "mean_error": "mean error",
    "r2": "R²",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "label": "label",
    "predicted": "predicted",
    "mistaken_for": "most often taken for",
    "worst_label": "worst label",
    "num_predicted": "predicted",
    "num_samples": "in the data",
    "num_items": "items",
    "num_tokens": "tokens",
    "row": "row",
    "probability": "probability",
    "probability_of_label": "of the label",
    "share_true": "true",
    "prediction": "mean prediction",
    "absolute_error": "off by",
    "word": "word",
    "around": "around it",
    "text": "text",
    "slice": "slice",
    "low": "from",
    "high": "to",
}
"""What keys are called before a reader's eyes."""

ITEMS = {"token-classification": "words", "language-modelling": "tokens"}
_SHOWN = 12
_ERROR_WIDTH = 60


def evaluation_text(found: dict[str, Any]) -> str:
    """What `evaluate_run` found, for a terminal: the worst labels and the costliest errors, not all."""
    items = ITEMS.get(found["task"], "texts")
    counted = f"{found['num_rows']:,} rows"
    if items != "texts":
        counted += f", {found['scores']['num_items']:,} {items}"
    lines = [
        f"{found['run']}, {found['weights']} weights (step {found['step']}), on {found['data']}: {counted}",
        *(f"note: {note}" for note in found["notes"]),
        "",
        *(f"{NAMES[name]:<26}{said}" for name, said in headline(found).items()),
    ]
    if said := believed(found):
        lines += ["", said]
    for title, rows in _blocks(found, items):
        if rows:
            lines += ["", title, *_aligned(rows)]
    return "\n".join(lines)


def _blocks(found: dict[str, Any], items: str) -> Iterator[tuple[str, Sequence[dict[str, Any]]]]:
    """Each table with its title."""
    labels = [row for row in found.get("per_class", ()) if row["num_samples"]]
    yield "worst labels", sorted(labels, key=lambda row: row["f1"])[:_SHOWN]
    yield "most frequent errors", _times(found)[:_SHOWN]
    for name, rows in found["slices"].items():
        yield f"by {name} in {found['length_unit']}" if name == "length" else f"by {name}", rows
    yield "numbers" if found["task"] == "regression" else "probabilities", found["calibration"]["bins"]
    worst = "texts" if items == "tokens" else "errors"
    yield f"costliest {worst}", [_short(row) for row in found["errors"][:_SHOWN]]


def headline(found: dict[str, Any]) -> dict[str, str]:
    """Each score as words, with its interval, and what the simplest answer would reach."""
    scores, baseline = found["scores"], found.get("baseline") or {}
    said = {}
    for name in [key for key in NAMES if key in scores and key != "num_items"]:
        said[name] = cell(scores[name])
        if name == "accuracy" and found["task"] == "multi-label":
            said[name] += "   (texts all of whose labels are right)"
        if between := scores.get(f"{name}_interval"):
            said[name] += f"   95 % interval {between[0]:.3f}–{between[1]:.3f}"
        if name in baseline:
            said[name] += f"   always {cell(baseline['says'])!r}: {cell(baseline[name])}"
    return said


def believed(found: dict[str, Any]) -> str:
    """How far the probabilities can be believed, in a sentence; "" where there are none."""
    about = found["calibration"]
    if "expected_calibration_error" not in about:
        return ""
    error, over = about["expected_calibration_error"], about["overconfidence"]
    manner = "too sure" if over > 0 else "too careful"
    return (
        f"expected calibration error {error:.3f}: on average the probabilities are {abs(over):.3f} {manner} "
        f"({about['mean_probability']:.3f} said, {about['mean_probability'] - over:.3f} true); {about['method']}"
    )


def _times(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The most frequent errors, with a heading that says what is counted."""
    rows = found.get("confused") or []
    return [
        {"label": row["label"], "predicted": row["predicted"], "times": row["num_samples"]} for row in rows
    ]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    hidden = ("loss", "text") if "around" in row else ("loss",)
    return {
        name: excerpt(value, _ERROR_WIDTH) if isinstance(value, str) else value
        for name, value in row.items()
        if name not in hidden or (name == "loss" and "perplexity" not in row and "probability" not in row)
    }


def _aligned(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A table with a heading: texts to the left, numbers to the right."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        texts = [NAMES.get(name, name), *(excerpt(_shown(name, value), _ERROR_WIDTH) for value in values)]
        is_text = any(isinstance(value, str | list) for value in values)
        width = max(map(len, texts))
        columns.append([text.ljust(width) if is_text else text.rjust(width) for text in texts])
    return ["  " + "  ".join(parts).rstrip() for parts in zip(*columns, strict=True)]


def _shown(name: str, value: Any) -> str:
    return str(value) if name == "row" else cell(value)  # a number of a row is looked up, not read


def evaluation_html(found: dict[str, Any]) -> str:
    """The same as a page that needs nothing else to be looked at."""
    bins = found["calibration"]["bins"]
    is_number = found["task"] == "regression"
    said, came = ("prediction", "label") if is_number else ("probability", "share_true")
    points = [(row[said], row[came]) for row in bins]
    alt = "; ".join(f"said {x:.3g}, came {y:.3g}" for x, y in points)

    def plot(axes: Any) -> None:
        low, high = (min(map(min, points)), max(map(max, points))) if is_number else (0.0, 1.0)
        axes.plot([low, high], [low, high], color="#999", linestyle="--", label="as said")
        axes.plot(*zip(*points, strict=True), color=COLOURS["train"], marker="o", label="this run")
        axes.set(xlabel=f"mean {said}", ylabel="mean label" if is_number else "share that was true")
        axes.legend(frameon=False)

    heading = "What was said and what came"
    return render(
        "evaluation.html",
        found=found | {"errors": [row | {"row": str(row["row"])} for row in found["errors"]]},
        confused=_times(found),
        headline=headline(found),
        believed=believed(found),
        names=NAMES,
        items=ITEMS.get(found["task"], "texts"),
        figures=[draw(heading, alt, plot)],
        heat_map=heat_map(found.get("per_class") or [], found.get("confused") or []),
    )
