"""The learner's own data: a CSV with the columns `text` and `label`.

Rows are counted as a spreadsheet does: the header is row 1. Nothing is dropped without a note, and what
cannot be understood for certain is refused with the row and the fix.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import numpy as np

from course_lib.data.csv_text import Row, read_rows, read_text, show
from course_lib.data.texts import Texts, normalise
from course_lib.errors import UserError

COLUMNS = ("text", "label")
LONG_TEXT = 100_000
_ROWS_LISTED = 5


def load_csv(path: str | Path) -> Texts:
    """Read a CSV (or TSV; `;`, tab and `|` are recognised) with a header that names `text` and `label`.

    Left out and reported in `notes`: blank lines, rows with a blank text or a blank label. Mended and
    reported: spaces around labels or column names, another delimiter, UTF-16. Other columns are ignored
    and reported. Texts are kept as they are, whatever their length.

    Returns:
        Texts; `label_names` in numeric order when all are integers, else in alphabetical order.

    Raises:
        UserError: one line that names the row or column and the fix. The file is missing, empty, not text,
            not UTF-8; a column is missing or doubled; a row has too many or too few fields, or a quote that
            is not closed; there is no usable row, or just one label.
    """
    with contextlib.suppress(RuntimeError):  # no such user: then "~name" is an ordinary file name
        path = Path(path).expanduser()
    path = Path(path)
    content, notes = read_text(path)
    table = read_rows(path, content)
    notes += table.notes
    text_column, label_column = (_find_column(path, table.header, name, notes) for name in COLUMNS)
    ignored = [name for i, name in enumerate(table.header) if i not in (text_column, label_column)]
    if ignored:
        notes.append(f"columns ignored: {', '.join(show(name) for name in ignored)}")
    texts, raw_labels = _usable(table.rows, text_column, label_column, notes)
    if not texts:
        raise UserError(
            f"{path}: no row below the header has both a text and a label. Add rows such as: great film,positive"
        )
    labels = [label.strip() for label in raw_labels]
    names = _label_names(path, labels)
    notes += _label_notes(raw_labels, labels) + _repeat_notes(texts, labels)
    number_of = {name: number for number, name in enumerate(names)}
    return Texts(
        texts=texts,
        labels=np.array([number_of[label] for label in labels], dtype=np.int64),
        label_names=names,
        notes=tuple(notes),
    )


def _find_column(path: Path, header: list[str], name: str, notes: list[str]) -> int:
    """Where a column is: by its exact name, else by its name but for case and spaces."""
    exact = [i for i, column in enumerate(header) if column == name]
    alike = [i for i, column in enumerate(header) if column.strip().casefold() == name]
    matches = exact or alike
    if len(matches) > 1:
        places = " and ".join(str(i + 1) for i in matches)
        raise UserError(
            f"{path}: row 1 names the column {show(name)} more than once (columns {places}): rename one"
        )
    if not matches:
        found = ", ".join(show(column) for column in header[:10]) + (", …" if len(header) > 10 else "")
        raise UserError(
            f"{path}: row 1 does not name a column {show(name)} (found: {found}). "
            "The first row must be a header with the columns text and label: rename or add it"
        )
    if not exact:
        notes.append(f"column {show(header[matches[0]])} was read as {show(name)}")
    return matches[0]


def _usable(
    rows: list[Row], text_column: int, label_column: int, notes: list[str]
) -> tuple[list[str], list[str]]:
    """Texts and labels of the rows that have both; what is left out goes into the notes."""
    texts, labels = [], []
    blank_lines, blank_texts, blank_labels, long_texts = [], [], [], []
    for row in rows:
        if not row.fields:
            blank_lines.append(row.number)
            continue
        text, label = row.fields[text_column], row.fields[label_column]
        if not text.strip():
            blank_texts.append(row.number)
        elif not label.strip():
            blank_labels.append(row.number)
        else:
            texts.append(text)
            labels.append(label)
            if len(text) > LONG_TEXT:
                long_texts.append(row.number)
    for numbers, what in (
        (blank_lines, "blank line{s} skipped"),
        (blank_texts, "blank text{s} dropped"),
        (blank_labels, "text{s} without a label dropped"),
        (long_texts, f"text{{s}} longer than {LONG_TEXT:,} characters kept whole here (the model cuts them)"),
    ):
        if numbers:
            notes.append(
                f"{len(numbers)} {what.format(s='' if len(numbers) == 1 else 's')}: {_listed(numbers)}"
            )
    return texts, labels


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_ROWS_LISTED])
    more = f" and {len(numbers) - _ROWS_LISTED} more" if len(numbers) > _ROWS_LISTED else ""
    return f"{'row' if len(numbers) == 1 else 'rows'} {shown}{more}"


def _label_names(path: Path, labels: list[str]) -> tuple[str, ...]:
    names = sorted(set(labels))
    if len(names) == 1:
        raise UserError(
            f"{path}: column 'label' has the one value {show(names[0])} in all {len(labels)} usable rows. "
            "A classifier needs at least two: add rows of another class"
        )
    try:
        return tuple(sorted(names, key=int))
    except ValueError:
        return tuple(names)


def _label_notes(raw: list[str], labels: list[str]) -> list[str]:
    notes = []
    trimmed = sum(before != after for before, after in zip(raw, labels, strict=True))
    if trimmed:
        notes.append(f"spaces around the label removed in {trimmed} row{'' if trimmed == 1 else 's'}")
    sizes = Counter(labels)
    by_case: dict[str, list[str]] = {}
    for name in sorted(sizes):
        by_case.setdefault(name.casefold(), []).append(name)
    for alike in by_case.values():
        if len(alike) > 1:
            shown = ", ".join(show(name) for name in alike)
            notes.append(f"labels that differ only in case are kept apart: {shown}")
    single = [name for name in sorted(sizes) if sizes[name] == 1]
    if len(sizes) > max(20, len(labels) // 2):
        notes.append(f"{len(sizes)} different labels in {len(labels)} rows: is 'label' the right column?")
    elif single:
        shown = ", ".join(show(name) for name in single[:_ROWS_LISTED]) + (
            ", …" if single[_ROWS_LISTED:] else ""
        )
        notes.append(f"labels with a single text, which cannot be validated: {shown}")
    return notes


def _repeat_notes(texts: list[str], labels: list[str]) -> list[str]:
    labels_of: dict[str, set[str]] = {}
    for text, label in zip(texts, labels, strict=True):
        labels_of.setdefault(normalise(text), set()).add(label)
    notes = []
    repeated = len(texts) - len(labels_of)
    if repeated:
        notes.append(f"{repeated} texts repeat an earlier one; a split keeps equal texts on one side")
    torn = next((text for text, found in labels_of.items() if len(found) > 1), None)
    if torn is not None:
        count = sum(len(found) > 1 for found in labels_of.values())
        notes.append(f"{count} of the texts occur with different labels, the first being {show(torn)}")
    return notes
