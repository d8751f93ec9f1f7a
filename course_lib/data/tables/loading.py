"""A table becomes labelled texts.

It is read row by row and never held: once to check it and to take labels, fingerprint and what the split needs
(16 bytes a row), then once more for each use of its texts. No row is left out without a note.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from course_lib.base import UserError, digest, progress_bar
from course_lib.data.tables import cells
from course_lib.data.tables.columns import Columns, find_columns
from course_lib.data.tables.labels import Labels, make_labels
from course_lib.data.tables.oddities import oddities
from course_lib.data.tables.opening import open_table
from course_lib.data.tables.table import Table, named
from course_lib.data.texts import Texts, as_one, text_key

TASKS = ("classification", "multi-label", "regression", "token-classification", "language-modelling")


def load_table(
    source: Any,
    *,
    task: str = "classification",
    text_column: str | None = None,
    label_column: str | None = None,
    encoding: str | None = None,
    has_header: bool | None = None,
    like: Texts | None = None,
    use_labels: bool = True,
    progress: bool = False,
) -> Texts:
    """Read a table: CSV or TSV, JSON Lines or a JSON array, Parquet, or a frame of pandas or polars.

    What is not named is found, and said in `notes`, as are rows left out (a blank text, a blank label) and other
    oddities worth a look. Texts are kept as they are, whatever their length; spaces around labels are removed.

    Args:
        source: the path of a `.csv`, `.tsv`, `.jsonl`, `.ndjson`, `.json` or `.parquet` file (another ending is
            read as CSV), or the frame.
        task: what a label is. `classification`: one value. `multi-label`: a list, or values with a separator.
            `regression`: a number. `token-classification`: a list, as long as that of the words in the column of
            texts. `language-modelling`: not looked at.
        text_column, label_column: names of columns; None: `text` and `label`, else found.
        encoding: of a text file, as Python names it; None: UTF-8, UTF-16 or cp1252, as found.
        has_header: whether the first row of a CSV or TSV names the columns; None: found.
        like: texts whose `label_names` these share, such as those to train on; another label is an error.
        use_labels: False: as `task="language-modelling"`.
        progress: draw a progress bar on stdout when it takes longer than two seconds.

    Returns:
        Texts whose `texts` read the table again each time they are iterated; rows with texts that are equal
        but for case and spacing share a group; `label_names` in numeric order when all are integers, else
        in alphabetical order.

    Raises:
        UserError: one line that names the row or column and the fix. The file is missing, not text, or of an
            encoding that must be named; a column is missing, doubled, or one of several; a row has too many or
            too few fields, a quote that is not closed, or a label that is not of the task; there is no usable
            row, or just one label.
    """
    task = task if use_labels else "language-modelling"
    if task not in TASKS:
        raise UserError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    known = [name for name in (text_column, label_column) if name is not None]
    table = open_table(source, encoding=encoding, has_header=has_header, known=known)
    with named(table.name):
        sample = table.sample()
        found = find_columns(table, sample, task=task, text_column=text_column, label_column=label_column)
        in_sample = [values[found.label] for _, values in sample] if found.label is not None else []
        labels = make_labels(task, in_sample, None if like is None else like.label_names)
        column = TextColumn(table, found, task, labels)
        left_out: dict[str, list[int]] = defaultdict(list)
        keys, content = array("q"), hashlib.sha256()
        rows = column.rows(left_out)
        for row, text, label in progress_bar(
            rows, "Reading", delay=2, mininterval=0.5, file=sys.stdout, disable=not progress
        ):
            labels.add(label, row)
            one = as_one(text)
            keys.append(text_key(one))
            content.update(f"{len(one)} {one}".encode())
            if task == "token-classification":
                content.update(json.dumps(label).encode())
        column.size = len(keys)
        names = [table.columns[i] for i in found.wanted]
        if not keys:
            raise UserError(f"no row has a {' and a '.join(names)}. Add rows: great film,positive")
        numbers, targets = labels.finish(names[-1], checks=like is None)
    groups = np.asarray(keys)
    values = numbers if targets is None else targets
    fingerprint = digest(
        content.digest(), "\0".join(labels.names), values.astype(values.dtype.newbyteorder("<")).tobytes()
    )
    notes = [*table.notes, *found.notes, *([labels.note] if labels.note else [])]
    notes += [f"{len(rows)} {what}, the first: row {rows[0]}" for what, rows in left_out.items()]
    notes += oddities(task, names[-1], labels.names, numbers, targets, groups)
    return Texts(
        column,
        numbers,
        labels.names,
        groups,
        word_labels=WordLabels(column) if task == "token-classification" else None,
        targets=targets,
        columns=dict(zip(("text", "label"), names, strict=False)),
        fingerprint=fingerprint,
        notes=tuple(notes),
    )


class TextColumn:
    """The `size` texts of a table, read again each time they are iterated."""

    def __init__(self, table: Table, columns: Columns, task: str, labels: Labels) -> None:
        self.table, self.columns, self.labels = table, columns, labels
        self.parse = cells.word_list if task == "token-classification" else cells.one_text
        # A cell to the right of what has a name is mostly the end of a text whose quotes were lost.
        self.strays = [i for i, name in enumerate(table.columns) if not name.strip() and i > columns.text]
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        for _, text, _ in self.again():
            yield text

    def again(self) -> Iterator[tuple[int, Any, Any]]:
        """The rows once more; raises UserError when there are not as many as before."""
        size = 0
        with named(self.table.name):
            for row in self.rows(defaultdict(list)):
                size += 1
                yield row
            if size != self.size:
                raise UserError("the table changed while it was being read. Start again")

    def rows(self, left_out: dict[str, list[int]]) -> Iterator[tuple[int, Any, Any]]:
        """(row, text, label) of each usable row, the label None where labels are not used; the numbers of the
        other rows go into `left_out`."""
        wanted = self.columns.wanted
        for row, values in self.table.rows([*wanted, *self.strays]):
            text = self.parse(values[0], row)
            label = self.labels.parse(values[1], row) if text is not None and len(wanted) > 1 else None
            if text is None:
                left_out["blank texts left out"].append(row)
                continue
            if label is None and len(wanted) > 1:
                left_out["texts without a label left out"].append(row)
                continue
            if any(cells.one_text(value, row) for value in values[len(wanted) :]):
                left_out["rows have more in columns without a name, which is not used"].append(row)
            if isinstance(text, list) and label is not None and len(text) != len(label):
                raise UserError(
                    f"row {row} has {len(text)} words and {len(label)} labels: give each word one"
                )
            yield row, text, label


class WordLabels:
    """The numbers of the labels of each text's words, read again each time they are iterated."""

    def __init__(self, column: TextColumn) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def __iter__(self) -> Iterator[list[int]]:
        number_of = {name: i for i, name in enumerate(self.column.labels.names)}
        for _, _, labels in self.column.again():
            yield [number_of[label] for label in labels]
