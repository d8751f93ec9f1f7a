"""Rows of a CSV, JSON Lines or Parquet file, one at a time, so that the file may be larger than memory.

Every failure is one line that names the row and the fix.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from course_lib.errors import UserError, require

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_FOREIGN = {
    b"PK\x03\x04": "a zip or Excel file: save it as CSV (UTF-8) or unpack it",
    b"\xd0\xcf\x11\xe0": "an Excel file: save it as CSV (UTF-8)",
    b"\x1f\x8b": "compressed with gzip: unpack it",
    b"%PDF": "a PDF: export the table as CSV",
}
_EMPTY = "the file is empty. Its first row must be text,label and the data below it"
_QUOTES = 'Put a field with quotes in quotes and double those inside: "she said ""hi"""'
_CSV_ERRORS = {
    "unexpected end": "a quote is opened and never closed",
    "expected after": "a quoted field goes on after its closing quote",
    "larger than": "a field is larger than 64 MB: perhaps a quote is opened and never closed",
}
_JSON_FIX = 'Write one object a line, in UTF-8: {"text": "great film", "label": "good"}'

Row = tuple[int, list[Any] | None]
"""Its number (a CSV's header is row 1) and the values of the wanted columns; None for a blank line."""


def read_rows(path: Path, wanted: Sequence[str], notes: list[str]) -> Iterator[Row]:
    """The rows of a file, whose kind its first bytes and its suffix tell; how it was read goes into `notes`.

    Raises UserError: the file is missing, empty, of another kind, lacks a wanted column, or has a bad row.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
        for magic, what in _FOREIGN.items():
            if start.startswith(magic):
                raise UserError(f"this is {what}")
        if start == b"PAR1" or path.suffix == ".parquet":
            yield from _parquet(path, wanted, notes)
        elif path.suffix in (".jsonl", ".ndjson", ".json"):
            yield from _json_lines(path, wanted, notes)
        else:
            yield from _csv(path, start[:2] in (b"\xff\xfe", b"\xfe\xff"), wanted, notes)
    except FileNotFoundError:
        raise UserError("no such file. Give the path of a CSV with the columns text,label") from None
    except IsADirectoryError:
        raise UserError("this is a folder. Give the path of a CSV file in it") from None
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}. Check the path and its permissions") from None


def _csv(path: Path, is_utf16: bool, wanted: Sequence[str], notes: list[str]) -> Iterator[Row]:
    if is_utf16:
        notes.append("read as UTF-16, as its first two bytes say")
    # csv's own limit is 131,072 characters. Not endless: a quote that is never closed would fill the memory.
    csv.field_size_limit(2**26)
    try:
        # newline="": csv must see the line ends as they are, or those inside quoted fields would be changed.
        with path.open(encoding="utf-16" if is_utf16 else "utf-8-sig", newline="") as file:
            yield from _records(_plain_lines(file), wanted, notes)
    except UnicodeDecodeError:
        raise UserError(
            f"{'this' if is_utf16 else _bad_line(path)} is not valid UTF-{16 if is_utf16 else 8}. "
            "Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8')"
        ) from None


def _plain_lines(file: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        if "\0" in line:
            raise UserError(
                f"line {number} holds a NUL byte, so this is no text: save the file as CSV in UTF-8"
            )
        yield line


def _bad_line(path: Path) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f"line {number}: byte 0x{line[error.start]:02X}"
    return "this"


def _records(lines: Iterator[str], wanted: Sequence[str], notes: list[str]) -> Iterator[Row]:
    """Rows, strictly: a stray quote is an error and does not swallow the rows below it."""
    number, first = next(((i, line) for i, line in enumerate(lines, 1) if line.strip()), (0, ""))
    if not first:
        raise UserError(_EMPTY)
    if number > 1:
        notes.append(f"{count(number - 1, 'blank line')} above the header skipped")
    delimiter = _delimiter(first)
    name = _DELIMITERS[delimiter]
    if delimiter != ",":
        notes.append(f"read with the delimiter {name} instead of comma")
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    try:
        header = next(reader)
        columns = _find_columns(header, wanted, notes)
        for fields in reader:
            number += 1
            if len(fields) == len(header):
                yield number, [fields[i] for i in columns]
            elif not any(fields) and len(fields) < 2:
                yield number, None
            else:
                fix = f"add the missing {name} and value, or delete the row"
                if len(fields) > len(header):
                    fix = f'if a {name} belongs to the text, put the text in quotes: "one{delimiter} two"'
                has = f"has {count(len(fields), 'field')} but the header has {len(header)}"
                raise UserError(f"row {number} {has}: {fix}")
    except csv.Error as error:
        what = next((says for key, says in _CSV_ERRORS.items() if key in str(error)), str(error))
        raise UserError(f"row {number + 1}: {what}. {_QUOTES}") from None


def _delimiter(first_line: str) -> str:
    """The delimiter that makes the first line name `text`; comma when none does."""
    for candidate in _DELIMITERS:
        if "text" in {name.strip(' "\t\r\n').casefold() for name in first_line.split(candidate)}:
            return candidate
    return ","


def _json_lines(path: Path, wanted: Sequence[str], notes: list[str]) -> Iterator[Row]:
    names: list[str] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                yield number, None
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(f"row {number} is not JSON ({error}). {_JSON_FIX}") from None
            if not isinstance(record, dict):
                raise UserError(f"row {number} is not an object. {_JSON_FIX}")
            names = names or [list(record)[i] for i in _find_columns(list(record), wanted, notes)]
            yield number, [record.get(name) for name in names]
    if not names:
        raise UserError(_EMPTY)


def _parquet(path: Path, wanted: Sequence[str], notes: list[str]) -> Iterator[Row]:
    parquet = require("pyarrow.parquet", extra="parquet")
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            header = file.schema_arrow.names
            names = [header[i] for i in _find_columns(header, wanted, notes)]
            for batch in file.iter_batches(1024, columns=names):
                for values in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                    number += 1
                    yield number, list(values)
    except require("pyarrow", extra="parquet").ArrowException as error:
        raise UserError(f"this is not a whole Parquet file ({error}). Write it again") from None


def _find_columns(header: list[str], wanted: Sequence[str], notes: list[str]) -> list[int]:
    """Where the columns are: by their exact names, else by their names but for case and spaces."""
    chosen = []
    for name in wanted:
        exact = [i for i, column in enumerate(header) if column == name]
        matches = exact or [i for i, column in enumerate(header) if column.strip().casefold() == name]
        if len(matches) > 1:
            places = " and ".join(str(i + 1) for i in matches)
            raise UserError(f"row 1 names the column {name!r} more than once (columns {places}): rename one")
        if not matches:
            found = ", ".join(map(show, header[:10])) + (", …" if len(header) > 10 else "")
            fix = f"The first row must be a header with the columns {' and '.join(wanted)}: rename or add it"
            raise UserError(f"row 1 does not name a column {name!r} (found: {found}). {fix}")
        if not exact:
            notes.append(f"column {show(header[matches[0]])} was read as {name!r}")
        chosen += matches
    ignored = [show(name) for i, name in enumerate(header) if i not in chosen]
    if ignored:
        notes.append(f"columns ignored: {', '.join(ignored[:10])}")
    return chosen


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def show(value: str) -> str:
    """A value from the file, quoted and short enough for a one-line message."""
    return repr(value if len(value) <= 40 else value[:39] + "…")
