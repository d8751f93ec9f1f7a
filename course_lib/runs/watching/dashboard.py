"""One page for many runs: how fast, how good, at what cost. A static file, no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
            config, data = record.get("config") or {}, record.get("data") or {}
            row |= {"data": Path(str(config.get("data", ""))).name, "task": config.get("task")}
            row |= {
                "judged_on": [
                    data.get("fingerprint"),
                    config.get("validation"),
                    config.get("validation_data"),
                ]
            }
            row |= {"monitor": best.get("monitor"), "best": best.get("value")}
            row |= {**scores, **cost, "utilisation": cost.get("mfu", cost.get("matmul_peak_share"))}
            rows.append(row)
    if not rows:
        raise UserError(f"no run is at or below {directory}: give the folder that holds run folders")
    return rows


def dashboard_html(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page as text, from what `read_runs` gave. Only runs that were judged alike share a figure."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["monitor"]:
            groups.setdefault(str([row["monitor"], row["task"], row["judged_on"]]), []).append(row)
    alike = sorted(groups.values(), key=len, reverse=True)
    # A run by itself is no comparison, unless no other is there either.
    drawn = [group for group in alike if len(group) > 1] or alike[:1]
    figures = [_figure(group, number if len(alike) > 1 else 0) for number, group in enumerate(drawn, 1)]
    return render("dashboard.html", title=title, runs=rows, figures=figures)


def _figure(alike: Sequence[dict[str, Any]], number: int) -> str:
    """Runs of one task on the same data, by the same metric. `number`: tells groups apart, 0 for the only one."""
    first = alike[0]
    monitor = first["monitor"]
    x_key = next((key for key in _X_AXES if any(row.get(key) is not None for row in alike)), "train_seconds")
    points = [(row["run"], row[x_key], row["best"]) for row in alike if row.get(x_key) is not None]

    def plot(axes: Any) -> None:
        axes.set(xlabel=_X_AXES[x_key], ylabel=f"best validation {monitor}")
        for name, x, y in points:
            axes.scatter(x, y)
            axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)

    words = "; ".join(f"{name}: {y:.4g} for {x:.4g}" for name, x, y in points)
    of = f" ({number}: {first['data']}, {first['task']})" if number else ""
    return draw(f"Best {monitor} against {_X_AXES[x_key]}{of}", words or "no run to show", plot)
