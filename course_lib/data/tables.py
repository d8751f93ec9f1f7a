"""The user's own data: a CSV, JSON Lines or Parquet file with the columns `text` and `label`.

The file is read row by row and never held: once to check it and to take labels, fingerprint and what the split
needs (16 bytes a row), then once more for each use of its texts. Nothing is dropped without a note.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from course_lib.data.cache import digest
from course_lib.data.readers import read_rows, show
from course_lib.data.texts import Texts, text_key
from course_lib.errors import UserError

LONG_TEXT = 100_000
_SHOWN = 5
_LONG = f"text{{s}} longer than {LONG_TEXT:,} characters kept whole here (the model cuts them)"


def load_table(path: str | Path, *, use_labels: bool = True, progress: bool = False) -> Texts:
    """Read a CSV (or TSV; `;`, tab and `|` are recognised), JSON Lines or Parquet file.

    Left out and reported in `notes`: blank lines, rows with a blank text or a blank label. Mended and
    reported: spaces around labels or column names, another delimiter, UTF-16. Other columns are ignored
    and reported. Texts are kept as they are, whatever their length. Rows of a CSV are counted as a
    spreadsheet does: the header is row 1.

    Args:
        use_labels: False: read the column `text` alone (language modelling); every label is then 0.
        progress: draw a progress bar on stdout when it takes longer than two seconds.

    Returns:
        Texts whose `texts` read the file again each time they are iterated; rows with texts that are equal
        but for case and spacing share a group; `label_names` in numeric order when all are integers, else
        in alphabetical order.

    Raises:
        UserError: one line that names the row or column and the fix. The file is missing, empty, not text,
            not UTF-8; a column is missing or doubled; a row has too many or too few fields, or a quote that
            is not closed; there is no usable row, or just one label.
    """
    from tqdm import tqdm

    column = TextColumn(Path(path), use_labels)
    report = _Report()
    number_of: dict[str, int] = {}
    labels, keys, content = array("q"), array("q"), hashlib.sha256()
    bar = tqdm(
        column.rows(report), "Reading", delay=2, mininterval=0.5, file=sys.stdout, disable=not progress
    )
    for text, label in bar:
        labels.append(number_of.setdefault(label, len(number_of)))
        keys.append(text_key(text))
        content.update(f"{len(text)} {text}".encode())
    column.size = len(keys)
    names = sorted(number_of)
    with contextlib.suppress(ValueError):
        names = sorted(names, key=int)
    if not names:
        what = "both a text and a label. Add rows such as: great film,positive" if use_labels else "a text"
        raise UserError(f"{path}: no row below the header has {what}")
    if use_labels and len(names) == 1:
        raise UserError(
            f"{path}: column 'label' has the one value {show(names[0])} in all {len(keys)} usable rows. "
            "A classifier needs at least two: add rows of another class"
        )
    rank = np.argsort([number_of[name] for name in names])
    numbers, groups = rank[np.asarray(labels)], np.asarray(keys)
    notes = (*report.notes(), *_label_notes(names, numbers), *_repeat_notes(groups, numbers))
    fingerprint = digest(content.digest(), "\0".join(names), numbers.astype("<i8").tobytes())
    return Texts(column, numbers, tuple(names), groups, fingerprint=fingerprint, notes=notes)


class TextColumn:
    """The `size` texts of a file, read again each time they are iterated."""

    def __init__(self, path: Path, use_labels: bool) -> None:
        with contextlib.suppress(RuntimeError):  # no such user: then "~name" is an ordinary file name
            path = path.expanduser()
        self.path, self.use_labels, self.size = path, use_labels, 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[str]:
        number = 0
        for text, _ in self.rows(_Report()):
            number += 1
            yield text
        if number != self.size:
            raise UserError(f"{self.path}: the file changed while it was being read. Start again")

    def rows(self, report: _Report) -> Iterator[tuple[str, str]]:
        """(text, label) of each usable row; the label is "" where labels are not used."""
        wanted = ("text", "label") if self.use_labels else ("text",)
        try:
            for number, values in read_rows(self.path, wanted, report.how):
                text, label = (_cell(value, number) for value in (*(values or [""]), "")[:2])
                if values is None:
                    report.add("blank line{s} skipped", number)
                elif not text.strip():
                    report.add("blank text{s} dropped", number)
                elif self.use_labels and not label.strip():
                    report.add("text{s} without a label dropped", number)
                else:
                    if len(text) > LONG_TEXT:
                        report.add(_LONG, number)
                    if label != label.strip():
                        report.add("label{s} with spaces around removed", number)
                    yield text, label.strip()
        except UserError as error:
            raise UserError(f"{self.path}: {error}") from None


class _Report:
    """How a file was read, and which rows were left out or mended: how many, and the first few of them."""

    def __init__(self) -> None:
        self.how: list[str] = []
        self._rows: dict[str, tuple[int, list[str]]] = {}

    def add(self, what: str, row: int) -> None:
        size, first = self._rows.get(what, (0, []))
        self._rows[what] = (size + 1, [*first, str(row)] if size < _SHOWN else first)

    def notes(self) -> Iterator[str]:
        yield from self.how
        for what, (size, first) in self._rows.items():
            s = "s" if size > 1 else ""
            more = f" and {size - _SHOWN} more" if size > _SHOWN else ""
            yield f"{size} {what.format(s=s)}: row{s} {', '.join(first)}{more}"


def _cell(value: object, row: int) -> str:
    if isinstance(value, list | dict | bytes):
        raise UserError(f"row {row}: {show(str(value))} is neither text nor a number: write it as text")
    text = "" if value is None else str(value)
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        raise UserError(f"row {row} holds half of a character (\\ud800 to \\udfff): delete it") from None
    return text


def _label_notes(names: list[str], numbers: np.ndarray) -> Iterator[str]:
    single = [show(names[i]) for i in np.flatnonzero(np.bincount(numbers) == 1)]
    if len(names) > max(20, len(numbers) // 2):
        yield f"{len(names)} different labels in {len(numbers)} rows: is 'label' the right column?"
    elif single:
        shown = ", ".join(single[:_SHOWN]) + (", …" if single[_SHOWN:] else "")
        yield f"labels with a single text, which cannot be validated: {shown}"


def _repeat_notes(groups: np.ndarray, numbers: np.ndarray) -> Iterator[str]:
    order = np.lexsort((numbers, groups))
    repeats = np.diff(groups[order]) == 0
    if repeats.any():
        yield f"{repeats.sum()} texts repeat an earlier one; a split keeps equal texts on one side"
    torn = np.unique(groups[order][1:][repeats & (np.diff(numbers[order]) != 0)])
    if len(torn):
        yield f"{len(torn)} of the texts occur with different labels"
