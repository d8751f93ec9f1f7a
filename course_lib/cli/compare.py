"""`course-lib compare`: config, data, code, environment, hardware and metrics of runs, side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from course_lib.cli.common import GOOD


def add(commands: Any) -> None:
    compare = commands.add_parser(
        "compare", help="what differs between runs", description=str(__doc__).partition(": ")[2]
    )
    compare.add_argument("runs", metavar="RUN", nargs="+", help="a run folder")
    compare.add_argument("--out", metavar="FILE.html", help="write a page, too")
    compare.add_argument("--json", action="store_true", help="print JSON alone")
    compare.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from course_lib.base import atomic_write_text, render, to_json
    from course_lib.runs import compare_runs, comparison_text

    comparison = compare_runs(arguments.runs)
    if arguments.out:
        atomic_write_text(Path(arguments.out), render("compare.html", **comparison))
    print(to_json(comparison) if arguments.json else comparison_text(comparison))
    return GOOD
