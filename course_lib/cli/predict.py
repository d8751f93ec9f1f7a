"""`course-lib predict`: text in, label and probability out."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from course_lib.base import UserError, progress_bar
from course_lib.cli.common import GOOD, add_table_options, table_settings

DESCRIPTION = """\
Label texts with a trained model. Prints label, probability and text. With --out, a table keeps every row
and column in order, and the answers stand beside them.

examples:
  course-lib predict runs/a "The soup was cold."
  course-lib predict runs/a --file new.csv --out answers.csv --all
  course-lib predict runs/a --file new.csv --set text_column=body --top-k 3 --json"""

_LINES = ("", ".txt")
"""Endings of files with one text a line; what ends otherwise is a table."""


def add(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="label texts with a trained model",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
    )
    predict.add_argument("run_folder", metavar="RUN", help="the folder of a run")
    predict.add_argument("texts", metavar="TEXT", nargs="*", help="none: standard input, one text a line")
    predict.add_argument(
        "--file",
        metavar="FILE",
        help="a table (CSV, TSV, JSON, JSON Lines, Parquet), or a .txt with one text a line; - is standard input",
    )
    add_table_options(predict)
    ranking = predict.add_mutually_exclusive_group()
    ranking.add_argument("--top-k", type=_count, metavar="K", help="the K most probable labels")
    ranking.add_argument("--all", action="store_true", help="the probability of every label")
    form = predict.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON alone")
    form.add_argument("--out", metavar="FILE", help="write a table: .csv, .tsv, .jsonl or .parquet")
    predict.set_defaults(run=_predict)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of labels: give 1 or more")
    return int(text)


def _predict(arguments: argparse.Namespace) -> int:
    from course_lib.runs import as_objects, check_out, predict_table, predict_texts, write_table

    out = Path(arguments.out) if arguments.out else None
    file = arguments.file or (None if arguments.texts else "-")
    is_table = file is not None and file != "-" and Path(file).suffix.casefold() not in _LINES
    if is_table and arguments.texts:
        raise UserError("give texts, or a table by --file, not both")
    if out:
        check_out(out, file)
    options = {"weights": arguments.weights, "top_k": arguments.top_k, "every": arguments.all}
    if is_table:
        found = predict_table(arguments.run_folder, file, settings=table_settings(arguments), **options)
    else:
        texts = itertools.chain(arguments.texts, _lines(file) if file else ())
        found = predict_texts(arguments.run_folder, texts, **options)
    for note in found.notes:
        print(f"course-lib: {note}", file=sys.stderr)
    if out:
        write_table(out, found.columns, _with_bar(found), like=found.table)
    elif arguments.json:
        _print_json(as_objects(found.columns, _with_bar(found)))
    else:
        for values, answer in _with_bar(found.answered()):
            ranked = answer.top(None if arguments.all else arguments.top_k or 1) if found.is_ranked else []
            said = [f"{part:.3f}" if isinstance(part, float) else part for pair in ranked for part in pair]
            print(*(said or _one(answer)), " ".join(str(values[found.text] or "").split()), sep="\t")
    if is_table and found.num_blank:
        blank = "1 text is blank" if found.num_blank == 1 else f"{found.num_blank} texts are blank"
        answers = f"{blank}: answered as no words at all"
        print(f"course-lib: {answers}", file=sys.stderr)
    return GOOD


def _one(answer: Any) -> list[str]:
    if isinstance(answer.label, float):
        return [f"{answer.label:.6g}"]
    label = answer.label if isinstance(answer.label, str) else " ".join(map(str, answer.label))
    return [label, f"{answer.probability:.3f}"]


def _with_bar(rows: Iterable[Any]) -> Iterator[Any]:
    return iter(progress_bar(rows, "Predicting", unit="text", delay=2))


def _print_json(rows: Iterable[dict[str, Any]]) -> None:
    separator = "["
    for row in rows:  # one by one: a list of all might not fit into memory
        print(separator, json.dumps(row, ensure_ascii=False), sep="", end="")
        separator = ",\n"
    print("[]" if separator == "[" else "]")


def _lines(file: str) -> Iterator[str]:
    """The lines of a text file or of standard input. Raises UserError for what is no text."""
    is_pipe = file == "-"
    try:
        # A file can be saved again as it should be; of what another program says, most is better than nothing.
        errors = "replace" if is_pipe else "strict"
        with open(0 if is_pipe else file, encoding="utf-8-sig", errors=errors) as lines:  # noqa: PTH123
            for number, line in enumerate(lines, 1):
                if "\0" in line:
                    raise UserError(
                        f"{file}: line {number} is no text, it holds a NUL byte; give a text file or a table"
                    )
                yield line.rstrip("\n")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}; give a text file, a table, or -") from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8 text: save it as that, or give a table") from None
