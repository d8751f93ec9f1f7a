"""The user's own data: a CSV, JSON Lines or Parquet file with the columns `text` and `label`.

The file is read row by row and never held: once to check it and to take labels, fingerprint and what the split
needs (16 bytes a row), then once more for each use of its texts. No row is left out without a note.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import itertools
import json
import os
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.base import UserError, digest, require
from course_lib.data.texts import Texts, text_key

_UTF8 = "Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8')"
_QUOTES = (
    'Put a text with delimiters, quotes or line breaks in quotes and double those inside: "she said ""hi"""'
)
_JSON = 'Write one object a line: {"text": "great film", "label": "good"}'

Columns = tuple[str, ...]
Row = tuple[int, list[Any]]
"""Its number (the header of a CSV is row 1) and the values of the wanted columns."""


def load_table(path: str | Path, *, use_labels: bool = True, progress: bool = False) -> Texts:
    """Read a CSV (its delimiter may be `;` or a tab), JSON Lines (.jsonl) or Parquet (.parquet) file.

    Rows with a blank text or a blank label are left out and reported in `notes`, as are other oddities worth
    a look. Blank lines and other columns are ignored, spaces around labels and a CSV's column names removed.
    Texts are kept as they are, whatever their length.

    Args:
        use_labels: False: read the column `text` alone (language modelling); every label is then 0.
        progress: draw a progress bar on stdout when it takes longer than two seconds.

    Returns:
        Texts whose `texts` read the file again each time they are iterated; rows with texts that are equal
        but for case and spacing share a group; `label_names` in numeric order when all are integers, else
        in alphabetical order.

    Raises:
        UserError: one line that names the row or column and the fix. The file is missing, not text, not
            UTF-8; a column is missing or doubled; a row has too many or too few fields, or a quote that is
            not closed; there is no usable row, or just one label.
    """
    from tqdm import tqdm

    column = TextColumn(path, use_labels)
    left_out: dict[str, list[int]] = defaultdict(list)
    number_of: dict[str, int] = {}
    labels, keys, content = array("q"), array("q"), hashlib.sha256()
    rows = column.rows(left_out)
    for text, label in tqdm(rows, "Reading", delay=2, mininterval=0.5, file=sys.stdout, disable=not progress):
        labels.append(number_of.setdefault(label, len(number_of)))
        keys.append(text_key(text))
        content.update(f"{len(text)} {text}".encode())
    column.size = len(keys)
    names = sorted(number_of)
    with contextlib.suppress(ValueError):
        names = sorted(names, key=int)
    if not names:
        raise UserError(
            f"{path}: no row has a {' and a '.join(column.wanted)}. Add rows: great film,positive"
        )
    if use_labels and len(names) == 1:
        only = f"column 'label' has the one value {_show(names[0])} in all {len(keys)} usable rows"
        raise UserError(f"{path}: {only}. A classifier needs at least two: add rows of another class")
    rank = np.argsort([number_of[name] for name in names])
    numbers, groups = rank[np.asarray(labels)], np.asarray(keys)
    notes = [f"{len(rows)} {what} left out, the first: row {rows[0]}" for what, rows in left_out.items()]
    fingerprint = digest(content.digest(), "\0".join(names), numbers.astype("<i8").tobytes())
    notes += _oddities(names, numbers, groups)
    return Texts(column, numbers, tuple(names), groups, fingerprint=fingerprint, notes=tuple(notes))


class TextColumn:
    """The `size` texts of a file, read again each time they are iterated."""

    def __init__(self, path: str | Path, use_labels: bool) -> None:
        self.path = Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own fails for "~nobody"
        self.wanted = ("text", "label") if use_labels else ("text",)
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[str]:
        number = 0
        for text, _ in self.rows(defaultdict(list)):
            number += 1
            yield text
        if number != self.size:
            raise UserError(f"{self.path}: the file changed while it was being read. Start again")

    def rows(self, left_out: dict[str, list[int]]) -> Iterator[tuple[str, str]]:
        """(text, label) of each usable row, the label "" where labels are not used; the numbers of the other
        rows go into `left_out`."""
        read = {".jsonl": _json_lines, ".ndjson": _json_lines, ".json": _json_lines, ".parquet": _parquet}
        try:
            for number, values in read.get(self.path.suffix, _csv)(self.path, self.wanted):
                text, label = (_cell(value, number) for value in [*values, ""][:2])
                if not text.strip():
                    left_out["blank texts"].append(number)
                elif len(values) == 2 and not label.strip():
                    left_out["texts without a label"].append(number)
                else:
                    yield text, label.strip()
        except (OSError, ValueError, NotImplementedError) as error:  # a UserError is a ValueError
            raise UserError(f"{self.path}: {getattr(error, 'strerror', None) or error}") from None


def _csv(path: Path, wanted: Columns) -> Iterator[Row]:
    """Strictly: a stray quote is an error and does not swallow the rows below it."""
    lines = _lines(path)
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    # csv's own limit is 131,072 characters. Not endless: a quote that is never closed would fill the memory.
    csv.field_size_limit(2**26)
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    number = 0
    try:
        header = [name.strip().casefold() for name in next(reader)]
        columns = _positions(header, wanted)
        for number, fields in enumerate(reader, 2):
            if len(fields) == len(header):
                yield number, [fields[i] for i in columns]
            elif fields:
                raise UserError(f"row {number} has {len(fields)} fields, the header {len(header)}. {_QUOTES}")
    except csv.Error as error:
        raise UserError(f"row {max(number, 1) + 1}: {error}. {_QUOTES}") from None


def _json_lines(path: Path, wanted: Columns) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise UserError(f"row {number} is not a JSON object. {_JSON}")
            if number == 1:
                _positions([*row], wanted)
            yield number, [row.get(name) for name in wanted]


def _parquet(path: Path, wanted: Columns) -> Iterator[Row]:
    with require("pyarrow.parquet", extra="parquet").ParquetFile(path) as file:
        _positions(file.schema_arrow.names, wanted)
        batches = (batch.to_pylist() for batch in file.iter_batches(1024, columns=[*wanted]))
        for number, row in enumerate(itertools.chain.from_iterable(batches), 1):
            yield number, [row[name] for name in wanted]


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"line {number} is not text: {error}. {_UTF8}") from None
            if "\0" in text:
                raise UserError(f"line {number} is not text: it holds a NUL byte. {_UTF8}")
            yield text


def _positions(names: list[str], wanted: Columns) -> list[int]:
    for name in wanted:
        if names.count(name) != 1:
            found = ", ".join(map(_show, names[:10])) or "nothing"
            raise UserError(f"there must be one column {name!r}, found: {found}. Name it in the first row")
    return [names.index(name) for name in wanted]


def _cell(value: object, row: int) -> str:
    if isinstance(value, list | dict | bytes):
        raise UserError(f"row {row}: {_show(str(value))} is neither text nor a number: write it as text")
    text = "" if value is None else str(value)
    text.encode()  # half of a character, which JSON can hold, is a UnicodeEncodeError, hence a ValueError
    return text


def _oddities(names: list[str], numbers: np.ndarray, groups: np.ndarray) -> Iterable[str]:
    if len(names) > max(20, len(numbers) // 2):
        yield f"{len(names)} different labels in {len(numbers)} rows: is 'label' the right column?"
    elif single := [names[i] for i in np.flatnonzero(np.bincount(numbers) == 1)]:
        yield f"{len(single)} labels with a single text, not to be validated, the first: {_show(single[0])}"
    pairs = np.unique(np.stack([groups, numbers]), axis=1)
    num_labels = np.unique(pairs[0], return_counts=True)[1]  # of each different text
    if repeats := len(groups) - len(num_labels):
        torn = f", {n} of them with different labels" if (n := (num_labels > 1).sum()) else ""
        yield f"{repeats} texts repeat an earlier one (a split keeps equal texts on one side){torn}"


def _show(value: str) -> str:
    """A value from the file, quoted and short enough for a one-line message."""
    return repr(value if len(value) <= 40 else value[:39] + "…")
