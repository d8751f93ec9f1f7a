"""The learner's own data: a CSV with the columns `text` and `label`.

Rows are counted as a spreadsheet does: the header is row 1. Nothing is dropped without a note, and what
cannot be understood for certain is refused with the row and the fix.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from course_lib.data.csv_text import Row, count, read_table
from course_lib.data.texts import Texts, normalise
from course_lib.errors import UserError

LONG_TEXT = 100_000
_SHOWN = 5


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
    path = Path(path)
    with contextlib.suppress(RuntimeError):  # no such user: then "~name" is an ordinary file name
        path = path.expanduser()
    try:
        return _load(path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _load(path: Path) -> Texts:
    header, rows, notes = read_table(path)
    text_column, label_column = (_find_column(header, name, notes) for name in ("text", "label"))
    ignored = [name for i, name in enumerate(header) if i not in (text_column, label_column)]
    if ignored:
        notes.append(f"columns ignored: {', '.join(map(_show, ignored))}")
    texts, raw_labels = _usable(rows, text_column, label_column, notes)
    if not texts:
        raise UserError(
            "no row below the header has both a text and a label. Add rows such as: great film,positive"
        )
    labels = [label.strip() for label in raw_labels]
    names = sorted(set(labels))
    if len(names) == 1:
        raise UserError(
            f"column 'label' has the one value {_show(names[0])} in all {len(labels)} usable rows. "
            "A classifier needs at least two: add rows of another class"
        )
    with contextlib.suppress(ValueError):
        names = sorted(names, key=int)
    notes += _label_notes(raw_labels, labels) + _repeat_notes(texts, labels)
    number_of = {name: number for number, name in enumerate(names)}
    return Texts(
        texts=texts,
        labels=np.array([number_of[label] for label in labels], dtype=np.int64),
        label_names=tuple(names),
        notes=tuple(notes),
    )


def _find_column(header: list[str], name: str, notes: list[str]) -> int:
    """Where a column is: by its exact name, else by its name but for case and spaces."""
    exact = [i for i, column in enumerate(header) if column == name]
    matches = exact or [i for i, column in enumerate(header) if column.strip().casefold() == name]
    if len(matches) > 1:
        places = " and ".join(str(i + 1) for i in matches)
        raise UserError(f"row 1 names the column {_show(name)} more than once (columns {places}): rename one")
    if not matches:
        found = ", ".join(map(_show, header[:10])) + (", …" if len(header) > 10 else "")
        raise UserError(
            f"row 1 does not name a column {_show(name)} (found: {found}). "
            "The first row must be a header with the columns text and label: rename or add it"
        )
    if not exact:
        notes.append(f"column {_show(header[matches[0]])} was read as {_show(name)}")
    return matches[0]


def _usable(
    rows: Iterable[Row], text_column: int, label_column: int, notes: list[str]
) -> tuple[list[str], list[str]]:
    """Texts and labels of the rows that have both; what is left out goes into the notes."""
    long_kept = f"text{{s}} longer than {LONG_TEXT:,} characters kept whole here (the model cuts them)"
    blank, no_text = "blank line{s} skipped", "blank text{s} dropped"
    no_label = "text{s} without a label dropped"
    found: dict[str, list[int]] = {what: [] for what in (blank, no_text, no_label, long_kept)}
    texts, labels = [], []
    for number, _, fields in rows:
        text, label = (fields[text_column], fields[label_column]) if fields else ("", "")
        if not fields:
            found[blank].append(number)
        elif not text.strip():
            found[no_text].append(number)
        elif not label.strip():
            found[no_label].append(number)
        else:
            texts.append(text)
            labels.append(label)
            if len(text) > LONG_TEXT:
                found[long_kept].append(number)
    for what, numbers in found.items():
        if numbers:
            s = "s" if len(numbers) > 1 else ""
            more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
            listed = ", ".join(map(str, numbers[:_SHOWN])) + more
            notes.append(f"{len(numbers)} {what.format(s=s)}: row{s} {listed}")
    return texts, labels


def _label_notes(raw: Sequence[str], labels: Sequence[str]) -> list[str]:
    notes = []
    num_trimmed = sum(before != after for before, after in zip(raw, labels, strict=True))
    if num_trimmed:
        notes.append(f"spaces around the label removed in {count(num_trimmed, 'row')}")
    sizes = Counter(labels)
    by_case = defaultdict(list)
    for name in sorted(sizes):
        by_case[name.casefold()].append(_show(name))
    for alike in by_case.values():
        if len(alike) > 1:
            notes.append(f"labels that differ only in case are kept apart: {', '.join(alike)}")
    single = [_show(name) for name in sorted(sizes) if sizes[name] == 1]
    if len(sizes) > max(20, len(labels) // 2):
        notes.append(f"{len(sizes)} different labels in {len(labels)} rows: is 'label' the right column?")
    elif single:
        shown = ", ".join(single[:_SHOWN]) + (", …" if single[_SHOWN:] else "")
        notes.append(f"labels with a single text, which cannot be validated: {shown}")
    return notes


def _repeat_notes(texts: Sequence[str], labels: Sequence[str]) -> list[str]:
    labels_of = defaultdict(set)
    for text, label in zip(texts, labels, strict=True):
        labels_of[normalise(text)].add(label)
    notes = []
    if len(labels_of) < len(texts):
        num_repeated = len(texts) - len(labels_of)
        notes.append(f"{num_repeated} texts repeat an earlier one; a split keeps equal texts on one side")
    torn = [text for text, found in labels_of.items() if len(found) > 1]
    if torn:
        notes.append(
            f"{len(torn)} of the texts occur with different labels, the first being {_show(torn[0])}"
        )
    return notes


def _show(value: str) -> str:
    """A value from the file, quoted and short enough for a one-line message."""
    return repr(value if len(value) <= 40 else value[:39] + "…")
