"""One page for many runs: how fast, how good, at what cost. A static file, no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mode
from typing import Any

from course_lib.base import UserError, draw, render
from course_lib.runs.folder import RunFolder

_X_AXES = {"cost_to_target": "cost to target", "cost": "cost", "train_seconds": "training time, s"}


def read_runs(directory: str | Path) -> list[dict[str, Any]]:
    """A flat row per run at or below `directory`: what is told apart in the dashboard.

    Raises UserError when no run is there.
    """
    rows = []
    for path in sorted(Path(directory).rglob("run.json")):
        if record := RunFolder(path.parent).read_record():
            best, scores, cost = (record.get(key) or {} for key in ("best", "validation", "cost"))
            name = path.parent.relative_to(directory).as_posix()
            row = {key: record.get(key) for key in ("status", "step", "train_seconds", "samples_per_sec")}
            row |= {"run": path.parent.resolve().name if name == "." else name}
            row |= {"monitor": best.get("monitor"), "best": best.get("value")}
            row |= {**scores, **cost, "utilisation": cost.get("mfu", cost.get("matmul_peak_share"))}
            rows.append(row)
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
        for name, x, y in points:
            axes.scatter(x, y)
            axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)

    words = "; ".join(f"{name}: {y:.4g} for {x:.4g}" for name, x, y in points)
    figure = draw(f"Best {monitor} against {_X_AXES[x_key]}", words or "no run to show", plot)
    return render("dashboard.html", title=title, runs=rows, figures=[figure])
