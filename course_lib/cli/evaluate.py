"""`course-lib evaluate`: how good a trained run is on a table, and where it fails."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from course_lib.cli.common import GOOD, add_table_options, table_settings

DESCRIPTION = """\
Judge a run on a table that it was not trained on: accuracy, macro F1, each label, what is taken for what,
how far its probabilities can be believed, slices, and the errors that cost most. Other tasks get the
scores that fit them.

examples:
  course-lib evaluate runs/a --data test.csv
  course-lib evaluate runs/a --data test.csv --slice source --out test.html
  course-lib evaluate runs/a --data test.csv --set label_column=intent --json"""


def add(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="judge a trained model on a table",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
    )
    evaluate.add_argument("run_folder", metavar="RUN", help="the folder of a run")
    evaluate.add_argument(
        "--data",
        metavar="FILE",
        help="a table with texts and labels (default: test_data of the run's config)",
    )
    add_table_options(evaluate)
    evaluate.add_argument(
        "--slice",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of FILE: scores for each of its values",
    )
    evaluate.add_argument("--out", metavar="FILE.html", help="write a page, too")
    evaluate.add_argument("--json", action="store_true", help="print JSON alone")
    evaluate.set_defaults(run=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    from course_lib.base import atomic_write_text, to_json
    from course_lib.runs import evaluate_run, evaluation_html, evaluation_text

    found = evaluate_run(
        arguments.run_folder,
        arguments.data,
        weights=arguments.weights,
        slices=arguments.slice,
        settings=table_settings(arguments),
        progress=True,
    )
    if arguments.out:
        atomic_write_text(Path(arguments.out), evaluation_html(found))
    print(to_json(found) if arguments.json else evaluation_text(found))
    return GOOD
