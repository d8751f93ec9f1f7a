"""Rows become a file: CSV, TSV, JSON Lines or Parquet, by the ending of its name."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError, atomic_file, require
from course_lib.data.tables import Table

_ROWS_AT_ONCE = 1024


def as_objects(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """The rows for JSON, where a key must have a name, and one of its own."""
    keys: list[str] = []
    for number, name in enumerate(columns, 1):
        key = name or f"column {number}"
        keys.append(key if key not in keys else f"{key} ({number})")
    for row in rows:
        yield {key: _plain(value) for key, value in zip(keys, row, strict=True)}


def _plain(value: Any) -> Any:
    """What JSON can hold: of Parquet and frames come dates, numbers of NumPy and others."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, like: Table) -> None:
    """Write a table by the ending of its name, a key of `WRITERS`; whole, or not at all.

    Raises UserError for another ending, and when the system refuses.
    """
    check_out(path, None)
    with atomic_file(path) as temporary:
        WRITERS[path.suffix.casefold()](temporary, columns, rows, like)


def check_out(out: Path, source: str | Path | None) -> None:
    """Raise UserError when `out` has another ending, or is the file that is read, which would be gone."""
    if out.suffix.casefold() not in WRITERS:
        raise UserError(f"cannot write {out}: its name must end in one of {', '.join(WRITERS)}")
    if source is not None and out.exists() and Path(source).exists() and out.samefile(source):
        raise UserError(f"{out} is the input, which is never written over: choose another --out")


def _delimited(delimiter: str) -> Callable[..., None]:
    def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], _like: Table) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(columns)
            writer.writerows([_cell(value) for value in row] for row in rows)

    return write


def _cell(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return json.dumps(_plain(value), ensure_ascii=False) if isinstance(value, list | tuple | dict) else value


def _json_lines(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], _like: Table) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in as_objects(columns, rows):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _parquet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], like: Table) -> None:
    """In the types of the table that was read, if it is Parquet, too; else what are no numbers is text."""
    arrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    rows = iter(rows)
    first = [*itertools.islice(rows, _ROWS_AT_ONCE)]
    fields = []
    if like.name.casefold().endswith(".parquet"):
        fields = [*parquet.read_schema(like.name)]
    for i in range(len(fields), len(columns)):
        values = [row[i] for row in first]
        kind = arrow.string()
        if i >= len(like.columns):
            if any(isinstance(value, float) for value in values):
                kind = arrow.float64()
            elif any(isinstance(value, list) for value in values):
                kind = arrow.list_(arrow.string())
        fields.append(arrow.field(columns[i], kind))
    schema = arrow.schema(fields)
    with parquet.ParquetWriter(path, schema) as writer:
        while first:
            parts = [
                arrow.array([_typed(row[i], field.type) for row in first], field.type)
                for i, field in enumerate(schema)
            ]
            writer.write_batch(arrow.record_batch(parts, schema=schema))
            first = [*itertools.islice(rows, _ROWS_AT_ONCE)]


def _typed(value: Any, kind: Any) -> Any:
    return (
        str(_cell(value))
        if str(kind) == "string" and value is not None and not isinstance(value, str)
        else value
    )


WRITERS: dict[str, Callable[..., None]] = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}
