"""`course-lib dashboard`: write one page that compares all runs below a folder: speed, best metric, time, cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from course_lib.cli.common import GOOD


def add(commands: Any) -> None:
    dashboard = commands.add_parser(
        "dashboard", help="a page of all runs", description=str(__doc__).partition(": ")[2]
    )
    dashboard.add_argument("directory", metavar="RUNS_DIR", help="the folder that holds run folders")
    dashboard.add_argument("--out", metavar="FILE.html", help="default: dashboard.html in RUNS_DIR")
    dashboard.set_defaults(run=_dashboard)


def _dashboard(arguments: argparse.Namespace) -> int:
    from course_lib.base import atomic_write_text
    from course_lib.runs import dashboard_html, read_runs

    directory = Path(arguments.directory)
    rows = read_runs(directory)
    out = Path(arguments.out or directory / "dashboard.html")
    atomic_write_text(out, dashboard_html(directory.resolve().name, rows))
    print(f"{len(rows)} runs: {out}")
    return GOOD
