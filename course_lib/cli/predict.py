"""`course-lib predict`: text in, label and probability out."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from course_lib.base import UserError
from course_lib.cli.common import GOOD

_COLUMNS = ("text", "label", "probability")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def add(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="label texts with a trained model",
        description="Label texts with the best model of a run. Prints label, probability and text.",
    )
    predict.add_argument("run_folder", metavar="RUN", help="the folder of a run")
    predict.add_argument("texts", metavar="TEXT", nargs="*", help="none: standard input, one text a line")
    predict.add_argument(
        "--file",
        metavar="FILE",
        help=f"one text a line, or a table ({', '.join(_TABLES)}) with a column text",
    )
    form = predict.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON alone")
    form.add_argument("--out", metavar="FILE.csv", help="write text,label,probability there instead")
    predict.set_defaults(run=_predict)


def _predict(arguments: argparse.Namespace) -> int:
    from tqdm import tqdm

    from course_lib.runs import Predictor

    predictor = Predictor.load(arguments.run_folder)
    file = arguments.file or (None if arguments.texts else "-")
    texts = itertools.chain(arguments.texts, _read(file) if file else ())
    bar = tqdm(predictor.stream(texts), "Predicting", unit="text", delay=2)
    rows: Iterator[dict[str, Any]] = (
        dict(zip(_COLUMNS, (text, *prediction), strict=True)) for text, prediction in bar
    )
    if arguments.out:
        _write_csv(Path(arguments.out), rows)
    elif arguments.json:
        separator = "["
        for row in rows:  # one by one: a list of all might not fit into memory
            print(separator, json.dumps(row, ensure_ascii=False), sep="", end="")
            separator = ",\n"
        print("[]" if separator == "[" else "]")
    else:
        for row in rows:
            print(row["label"], f"{row['probability']:.3f}", " ".join(row["text"].split()), sep="\t")
    return GOOD


def _read(file: str) -> Iterator[str]:
    if file.endswith(_TABLES):
        from course_lib.data import load_table

        yield from load_table(file, use_labels=False).texts
        return
    try:
        with open(0 if file == "-" else file, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
            yield from (line.rstrip("\n") for line in lines)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}; give a text file, a table, or -") from None


def _write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    from course_lib.base import atomic_file

    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
