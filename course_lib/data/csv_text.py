"""Bytes → text → rows of a CSV, with every failure told as one line that names the row."""

from __future__ import annotations

import codecs
import csv
import io
import threading
from pathlib import Path
from typing import NamedTuple

from course_lib.errors import UserError

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# csv refuses fields above 131,072 characters unless told otherwise; a C long has 32 bits on Windows.
_FIELD_LIMIT = 2**31 - 1
_limit_lock = threading.Lock()
_FOREIGN = {
    b"PK\x03\x04": "a zip or Excel file: save it as CSV (UTF-8) or unpack it",
    b"\xd0\xcf\x11\xe0": "an Excel file: save it as CSV (UTF-8)",
    b"\x1f\x8b": "compressed with gzip: unpack it",
    b"PAR1": "a Parquet file: export it as CSV",
    b"%PDF": "a PDF: export the table as CSV",
}
_EMPTY = "the file is empty. Its first row must be text,label and the data below it"


class Row(NamedTuple):
    """One record. `number` counts records, the header being 1; `line` is where it starts. Blank: no fields."""

    number: int
    line: int
    fields: list[str]

    def __str__(self) -> str:
        return f"row {self.number}" + (f" (line {self.line})" if self.line != self.number else "")


def read_table(path: Path) -> tuple[list[str], list[Row], list[str]]:
    """Header, rows (each blank or as long as the header), and notes on how the file was read."""
    notes: list[str] = []
    return *_table(_decoded(_contents(path), notes), notes), notes


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError("no such file. Give the path of a CSV with the columns text,label") from None
    except IsADirectoryError:
        raise UserError("this is a folder. Give the path of a CSV file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot be read: {reason}. Check the path and its permissions") from None


def _decoded(data: bytes, notes: list[str]) -> str:
    if not data.strip():
        raise UserError(_EMPTY)
    for magic, what in _FOREIGN.items():
        if data.startswith(magic):
            raise UserError(f"this is {what}")
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if is_utf16:
        notes.append("read as UTF-16, as its first two bytes say")
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1  # .object: the data without a byte order mark
        raise UserError(
            f"line {line}: byte 0x{error.object[error.start]:02X} is not valid UTF-{16 if is_utf16 else 8}. "
            "Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8')"
        ) from None
    before, nul, _ = text.partition("\x00")
    if nul:
        raise UserError(
            f"line {before.count(chr(10)) + 1} holds a NUL byte, so this is not plain text: "
            "save the file as CSV in UTF-8"
        )
    return text


def _table(text: str, notes: list[str]) -> tuple[list[str], list[Row]]:
    """Header and rows: each row is blank or has as many fields as the header."""
    delimiter = _delimiter(text)
    name = _DELIMITERS[delimiter]
    rows = _records(text, delimiter)
    num_blank = next((i for i, row in enumerate(rows) if row.fields), None)
    if num_blank is None:
        raise UserError(_EMPTY)
    header = rows[num_blank].fields
    if delimiter != ",":
        notes.append(f"read with the delimiter {name} instead of comma")
    if num_blank:
        notes.append(f"{count(num_blank, 'blank line')} above the header skipped")
    rows = rows[num_blank + 1 :]
    for row in rows:
        if row.fields and len(row.fields) != len(header):
            fix = f"add the missing {name} and value, or delete the row"
            if len(row.fields) > len(header):
                fix = f'if a {name} belongs to the text, put the text in quotes: "one{delimiter} two"'
            raise UserError(
                f"{row} has {count(len(row.fields), 'field')} but the header has {len(header)}: {fix}"
            )
    return header, rows


def _delimiter(text: str) -> str:
    """The delimiter that makes the first line name `text` and `label`; comma when none does or several do."""
    first_line = next((line for line in io.StringIO(text) if line.strip()), "")
    for candidate in _DELIMITERS:
        names = {name.strip(' "\t\r\n').casefold() for name in first_line.split(candidate)}
        if {"text", "label"} <= names:
            return candidate
    return ","


def _records(text: str, delimiter: str) -> list[Row]:
    """All records, strictly: a stray quote is an error and does not swallow the rows below it."""
    # newline="": csv must see the line ends as they are, or those inside quoted fields would be changed.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    line = 1
    with _limit_lock:  # the limit is one global of the csv module: put back what others rely on
        before = csv.field_size_limit(_FIELD_LIMIT)
        try:
            for fields in reader:
                rows.append(Row(len(rows) + 1, line, fields if any(fields) or len(fields) > 1 else []))
                line = reader.line_num + 1
        except csv.Error as error:
            what = str(error)
            if "unexpected end of data" in what:
                what = "a quote is opened and never closed"
            elif "expected after" in what:
                what = "a quoted field goes on after its closing quote"
            raise UserError(
                f"{Row(len(rows) + 1, line, [])}: {what}. "
                'Put a field with quotes in quotes and double those inside: "she said ""hi"""'
            ) from None
        finally:
            csv.field_size_limit(before)
    return rows


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
