"""One page for many runs: how fast, how good, at what cost. A static file, no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mode
from typing import Any

from course_lib.errors import UserError
from course_lib.metrics import RunFolder
from course_lib.report import COLOURS, Line, draw, plot_lines, render

_X_AXES = {"cost_to_target": "cost to target", "cost": "cost", "train_seconds": "training time, s"}
_STYLES = [{"color": colour, "linestyle": line} for line in ("-", "--", ":") for colour in COLOURS]


def read_runs(directory: str | Path) -> list[dict[str, Any]]:
    """A flat row per run at or below `directory`: what is told apart in the dashboard.

    Raises UserError when no run is there.
    """
    rows = []
    for path in sorted(Path(directory).rglob("run.json")):
        if record := RunFolder(path.parent).read_record():
            best = record.get("best") or {}
            kept = {key: record.get(key) for key in ("status", "step", "train_seconds", "samples_per_sec")}
            scores, cost = record.get("validation") or {}, record.get("cost") or {}
            cost = {**cost, "utilisation": cost.get("mfu", cost.get("matmul_peak_share"))}
            name = path.parent.relative_to(directory).as_posix()
            row = {"run": path.parent.resolve().name if name == "." else name, "folder": path.parent}
            row |= {"monitor": best.get("monitor"), "best": best.get("value")}
            rows.append({**row, **kept, **scores, **cost})
    if not rows:
        raise UserError(f"no run is at or below {directory}: give the folder that holds run folders")
    return rows


def dashboard_html(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page as text, from what `read_runs` gave."""
    monitors = [row["monitor"] for row in rows if row["monitor"]]
    monitor = mode(monitors) if monitors else "loss"
    alike = [row for row in rows if row["monitor"] == monitor]
    x_key = next((key for key in _X_AXES if any(row.get(key) is not None for row in alike)), "train_seconds")
    points = [(row["run"], row[x_key], row["best"]) for row in alike if row.get(x_key) is not None]

    def plot(axes: Any) -> None:
        axes.set(xlabel=_X_AXES[x_key], ylabel=f"best validation {monitor}")
        for (name, x, y), style in zip(points, _STYLES * len(points), strict=False):
            axes.scatter(x, y, color=style["color"])
            axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)

    words = "; ".join(f"{name}: {y:.4g} for {x:.4g}" for name, x, y in points)
    figures = [
        draw(f"Best {monitor} against {_X_AXES[x_key]}", words or "no run to show", plot),
        plot_lines(f"Validation {monitor} over time", "seconds", _over_time(alike, monitor)),
    ]
    return render("dashboard.html", title=title, runs=rows, figures=figures)


def _over_time(rows: Sequence[dict[str, Any]], monitor: str) -> list[Line]:
    lines: list[Line] = []
    for row, style in zip(rows, _STYLES, strict=False):  # more curves than styles cannot be told apart
        checks = [r for r in RunFolder(row["folder"]).read_metrics() if r["kind"] == "validation"]
        points = [(r.get("elapsed_seconds"), r.get(monitor)) for r in checks]
        if points := [point for point in points if None not in point]:
            xs, ys = zip(*points, strict=True)
            lines.append((row["run"], xs, ys, {"marker": ".", **style}))
    return lines
