"""Bytes → text → rows, with every failure told as one line that names the row."""

from __future__ import annotations

import codecs
import csv
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from course_lib.errors import UserError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# csv refuses fields above 131,072 characters unless told otherwise; a C long has 32 bits on Windows.
_FIELD_LIMIT = 2**31 - 1
_limit_lock = threading.Lock()
_FOREIGN = (
    (b"PK\x03\x04", "a zip or Excel file: save it as CSV (UTF-8) or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an Excel file: save it as CSV (UTF-8)"),
    (b"\x1f\x8b", "compressed with gzip: unpack it"),
    (b"PAR1", "a Parquet file: export it as CSV"),
    (b"%PDF", "a PDF: export the table as CSV"),
)


@dataclass(frozen=True)
class Row:
    """One record. `number` counts records, the header being 1; `line` is where it starts in the file."""

    number: int
    line: int
    fields: list[str]


@dataclass(frozen=True)
class Table:
    """A parsed CSV. Each row is either blank (no fields) or has as many fields as the header."""

    header: list[str]
    rows: list[Row]
    notes: list[str]


def show(value: str) -> str:
    """A value from the file, quoted and short enough for a one-line message."""
    return repr(value if len(value) <= 40 else value[:39] + "…")


def read_text(path: Path) -> tuple[str, list[str]]:
    """The decoded file and notes on how it was read. Errors as `load_csv`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. Give the path of a CSV with the columns text,label") from None
    except IsADirectoryError:
        raise UserError(f"{path}: this is a folder. Give the path of a CSV file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be read: {reason}. Check the path and its permissions") from None
    if not data.strip():
        raise _empty(path)
    for magic, what in _FOREIGN:
        if data.startswith(magic):
            raise UserError(f"{path}: this is {what}")
    notes = []
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
        notes.append("read as UTF-16, as its first two bytes say")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1  # .object: the data without a byte order mark
        raise UserError(
            f"{path}: line {line}: byte 0x{error.object[error.start]:02X} is not valid "
            f"{'UTF-16' if notes else 'UTF-8'}. "
            "Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8')"
        ) from None
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise UserError(
            f"{path}: line {line} holds a NUL byte, so this is not plain text: save the file as CSV in UTF-8"
        )
    return text, notes


def read_rows(path: Path, text: str) -> Table:
    """Parse, strictly: a stray quote is an error and does not swallow the rows below it. Errors as `load_csv`."""
    delimiter = _delimiter(text)
    records = _records(path, text, delimiter)
    blank_before = 0
    for header in records:
        if header.fields:
            break
        blank_before += 1
    else:
        raise _empty(path)
    notes = []
    if delimiter != ",":
        notes.append(f"read with the delimiter {DELIMITERS[delimiter]} instead of comma")
    if blank_before:
        lines = "1 blank line" if blank_before == 1 else f"{blank_before} blank lines"
        notes.append(f"{lines} above the header skipped")
    rows = []
    for row in records:
        if row.fields and len(row.fields) != len(header.fields):
            raise _ragged(path, row, header, delimiter)
        rows.append(row)
    return Table(header=header.fields, rows=rows, notes=notes)


def _delimiter(text: str) -> str:
    """The delimiter that makes the first line name `text` and `label`; comma when none does or several do."""
    first_line = next((line for line in io.StringIO(text) if line.strip()), "")
    for candidate in DELIMITERS:
        names = {name.strip(' "\t\r\n').casefold() for name in first_line.split(candidate)}
        if {"text", "label"} <= names:
            return candidate
    return ","


def _records(path: Path, text: str, delimiter: str) -> Iterator[Row]:
    # newline="": csv must see the line ends as they are, or those inside quoted fields would be changed.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number, line = 0, 1
    with _large_fields():
        records: list[Row] = []
        try:
            for fields in reader:
                number += 1
                records.append(Row(number, line, fields if any(fields) or len(fields) > 1 else []))
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(
                f"{path}: {_where(number + 1, line)}: {_explain(str(error))}. "
                'Put a field with quotes in quotes and double those inside: "she said ""hi"""'
            ) from None
    return iter(records)


def _empty(path: Path) -> UserError:
    return UserError(f"{path}: the file is empty. Its first row must be text,label and the data below it")


def _explain(message: str) -> str:
    if "unexpected end of data" in message:
        return "a quote is opened and never closed"
    if "expected after" in message:
        return "a quoted field goes on after its closing quote"
    return message


def _ragged(path: Path, row: Row, header: Row, delimiter: str) -> UserError:
    got, wanted = len(row.fields), len(header.fields)
    name = DELIMITERS[delimiter]
    if got > wanted:
        fix = f'if a {name} belongs to the text, put the text in quotes: "one{delimiter} two"'
    else:
        fix = f"add the missing {name} and value, or delete the row"
    fields = f"{got} field{'' if got == 1 else 's'}"
    return UserError(
        f"{path}: {_where(row.number, row.line)} has {fields} but the header has {wanted}: {fix}"
    )


def _where(number: int, line: int) -> str:
    return f"row {number}" if number == line else f"row {number} (line {line})"


@contextmanager
def _large_fields() -> Iterator[None]:
    # The limit is one global of the csv module: put back what others rely on.
    with _limit_lock:
        before = csv.field_size_limit(_FIELD_LIMIT)
        try:
            yield
        finally:
            csv.field_size_limit(before)
