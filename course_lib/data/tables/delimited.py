"""CSV and TSV: delimiter, quotes and header as they are found, and rows read strictly."""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from course_lib.base import UserError
from course_lib.data.tables.characters import Encoding, lines_of
from course_lib.data.tables.table import SAMPLE_ROWS, Row, Table, show

_QUOTES = (
    'Put a text with delimiters, quotes or line breaks in quotes and double those inside: "she said ""hi"""'
)
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_SAMPLE_CHARACTERS = 2**20
_LONGEST_NAME = 30
# csv's own limit is 131,072 characters. Not endless: a quote that is never closed would fill the memory.
_LONGEST_CELL = 2**26


def open_delimited(path: Path, encoding: Encoding, has_header: bool | None, known: Iterable[str]) -> Table:
    """`known`: names of columns by which a first row is told to be a header."""
    csv.field_size_limit(_LONGEST_CELL)
    lines = _sampled(path, encoding.codec)
    usual = "\t" if path.suffix.casefold() in (".tsv", ".tab") else ","
    delimiter = _delimiter(lines, usual)
    options: dict[str, Any] = {"delimiter": delimiter, "strict": True}
    notes = [encoding.note] if encoding.note else []
    if delimiter != usual:
        notes.append(f"delimiter = {_DELIMITERS[delimiter]}")
    if delimiter == "\t" and _quotes_are_letters(path, encoding.codec):
        options["quoting"] = csv.QUOTE_NONE
        notes.append("quotes are part of the texts: some rows open one and do not close it")
    sample = _readable(lines, options)
    first = [name.strip() for name in next(iter(sample), [])]
    if has_header is None:
        has_header, note = _finds_header(first, sample[1:], {name.casefold() for name in known})
        notes += [note] if note else []
    columns = first if has_header else [f"column {i}" for i in range(1, 1 + len(first))]

    def read(chosen: Sequence[int] | None) -> Iterator[Row]:
        reader = csv.reader(_from_first_line(path, encoding.codec), **options)
        return _rows(reader, len(columns), bool(has_header), chosen)

    return Table(str(path), columns, read, tuple(notes))


def _rows(
    reader: Iterator[list[str]], width: int, has_header: bool, chosen: Sequence[int] | None
) -> Iterator[Row]:
    """Strictly: a stray quote is an error and does not swallow the rows below it."""
    number = 0
    try:
        for number, fields in enumerate(reader, 1):
            if has_header and number == 1:
                continue
            if len(fields) > width and not any(map(str.strip, fields[width:])):
                del fields[width:]  # a row that ends in delimiters
            if len(fields) == width:
                yield number, fields if chosen is None else [fields[i] for i in chosen]
            elif any(map(str.strip, fields)):
                first = "the header" if has_header else "the first row"
                raise UserError(f"row {number} has {len(fields)} fields, {first} {width}. {_QUOTES}")
    except csv.Error as error:
        raise UserError(f"row {number + 1}: {error}. {_QUOTES}") from None


def _from_first_line(path: Path, codec: str) -> Iterator[str]:
    return itertools.dropwhile(lambda line: not line.strip(), lines_of(path, codec))


def _sampled(path: Path, codec: str) -> list[str]:
    lines, num_characters = [], 0
    for line in itertools.islice(_from_first_line(path, codec), SAMPLE_ROWS):
        lines.append(line)
        num_characters += len(line)
        if num_characters > _SAMPLE_CHARACTERS:
            break
    return lines


def _readable(lines: Iterable[str], options: dict[str, Any]) -> list[list[str]]:
    """The rows up to the first that cannot be read, which is told when it is read."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        for row in csv.reader(lines, **options):
            if row:
                rows.append(row)
    return rows


def _delimiter(lines: list[str], usual: str) -> str:
    """The one by which most rows have as many fields as the first; of two, the usual one."""

    def fits(delimiter: str) -> tuple[float, bool, int]:
        rows = _readable(lines, {"delimiter": delimiter})
        width = len(rows[0]) if rows else 0
        share = sum(len(row) == width for row in rows) / len(rows) if width > 1 else 0.0
        return share, delimiter == usual, width

    return max(_DELIMITERS, key=fits)


def _quotes_are_letters(path: Path, codec: str) -> bool:
    """Whether a tab-separated file is whole only where quotes mean nothing: many programs write them so."""
    widths = {line.count("\t") for line in lines_of(path, codec) if line.strip()}
    if len(widths) != 1:
        return False
    num_lines = sum(1 for line in lines_of(path, codec) if line.strip())
    try:
        reader = csv.reader(lines_of(path, codec), delimiter="\t", strict=True)
        return sum(1 for row in reader if any(map(str.strip, row))) < num_lines
    except csv.Error:
        return True


def _finds_header(first: list[str], others: list[list[str]], known: set[str]) -> tuple[bool, str]:
    """Whether the first row names the columns, and a note unless it plainly does."""
    if any(name.casefold() in known for name in first):
        return True, ""
    no_header = "has_header = false: {}; columns are called 'column 1' …"
    columns = [[row[i].strip() for row in others if i < len(row)] for i in range(len(first))]
    for name, values in zip(first, columns, strict=True):
        if name and name in values:
            return False, no_header.format(f"{show(name)} of the first row stands further down, too")
    if any(map(_is_number, first)):
        return False, no_header.format("there is a number in the first row")
    if any(values and all(map(_is_number, values)) for values in columns):
        return True, ""
    is_name = [len(name) <= _LONGEST_NAME and len(name.split()) <= 3 for name in first]
    if others and not all(is_name):
        return False, no_header.format("the first row does not read like names")
    return (
        True,
        f"has_header = true: the first row reads like names, {', '.join(map(show, filter(None, first)))}",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
