"""Which column holds the texts, and which their labels: as named, or as found and said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from course_lib.base import UserError
from course_lib.data.tables.cells import as_list, is_number
from course_lib.data.tables.table import Row, Table, listed

TEXT_NAMES = (
    *("text", "sentence", "review", "message", "content", "document", "tweet", "comment", "utterance"),
    *("query", "question", "body", "tokens", "words"),
)
LABEL_NAMES = (
    *("label", "labels", "category", "class", "target", "sentiment", "intent", "topic", "tag", "tags"),
    *("ner_tags", "score", "rating", "stars", "y"),
)
_MANY = 0.5
"""A column of classes has fewer different values than this share of its rows."""


class Columns(NamedTuple):
    """Positions in the table; `label` is None where labels are not used."""

    text: int
    label: int | None
    notes: tuple[str, ...]

    @property
    def wanted(self) -> list[int]:
        return [self.text] if self.label is None else [self.text, self.label]


def find_columns(
    table: Table,
    sample: Sequence[Row],
    *,
    task: str = "classification",
    text_column: str | None = None,
    label_column: str | None = None,
) -> Columns:
    """The columns of `table` by the names given, else `text` and `label`, else what `sample` (its first rows) tells.

    Raises UserError where a name is missing or doubled, or where more than one column could be meant.
    """
    cells = [
        [v for v in (values[i] for _, values in sample) if v is not None and str(v).strip()]
        for i in range(len(table.columns))
    ]
    if task == "token-classification":  # a list a row; elsewhere none
        fit = [i for i, values in enumerate(cells) if values and as_list(values[0]) is not None]
    else:
        fit = [i for i, values in enumerate(cells) if values and table.columns[i]]
    text = -1 if text_column is None else _named(table.columns, text_column, "text_column")
    named = None if label_column is None else _named(table.columns, label_column, "label_column")
    notes = []
    if text_column is None:
        text, why = _text(table.columns, cells, [i for i in fit if i != named])
        notes += [f'text = "{table.columns[text]}": {why}'] if why else []
    label = None
    if task != "language-modelling":
        label = named
        if named is None:
            may_be = [i for i in fit if i != text and not _counts_rows(cells[i])]
            label, why = _label(table.columns, cells, may_be, task)
            notes += [f'label = "{table.columns[label]}": {why}'] if why else []
    if text == label:
        raise UserError(f"column {table.columns[text]!r} cannot be text and label at once: name two columns")
    others = [table.columns[i] for i in fit if i not in (text, label)]
    if others and task != "language-modelling":
        notes.append(f"not used: {listed(others)}")
    return Columns(text, label, tuple(notes))


def _counts_rows(values: Sequence[object]) -> bool:
    """0, 1, 2 …: a number of the row, as spreadsheets and pandas write it."""
    if len(values) < 3 or not all(map(is_number, values)):
        return False
    numbers = [float(str(value)) for value in values]
    return all(after == before + 1 for before, after in pairwise(numbers))


def _positions(names: Sequence[str], wanted: str) -> list[int]:
    """Those that bear the name as it is; else those that do but for case and spaces around it."""
    exact = [i for i, name in enumerate(names) if name == wanted]
    folded = [i for i, name in enumerate(names) if name.strip().casefold() == wanted.strip().casefold()]
    return exact if len(exact) == 1 else folded


def _named(names: Sequence[str], wanted: str, key: str) -> int:
    found = _positions(names, wanted)
    if len(found) != 1:
        raise UserError(f"{key}={wanted}: there must be one such column, found: {listed(names)}")
    return found[0]


def _usual(
    names: Sequence[str], wanted: str, known: Sequence[str], fit: Sequence[int]
) -> tuple[list[int], str]:
    """The column `wanted`, or those with another known name that have what is looked for."""
    found = _positions(names, wanted)
    if len(found) > 1:
        raise UserError(f"there must be one column {wanted!r}, found: {listed(names)}. Rename the others")
    if found:
        return found, ""
    return [i for i in fit if names[i].strip().casefold() in known], "a usual name"


def _text(names: Sequence[str], cells: Sequence[Sequence[object]], fit: Sequence[int]) -> tuple[int, str]:
    found, why = _usual(names, "text", TEXT_NAMES, fit)
    if len(found) == 1:
        return found[0], why
    if len(fit) == 1 and _positions(names, "label") != [*fit]:
        return fit[0], "the only column of its kind"
    lengths = {i: sum(len(str(value)) for value in cells[i]) / len(cells[i]) for i in fit}
    longest = sorted(fit, key=lambda i: -lengths[i])[:2]
    if len(longest) == 2 and lengths[longest[0]] >= 2 * lengths[longest[1]]:
        return longest[0], "its cells are the longest"
    raise UserError(
        f"no one column 'text', found: {listed(names)}. Name the one with the texts: text_column=…"
    )


def _label(
    names: Sequence[str], cells: Sequence[Sequence[object]], fit: Sequence[int], task: str
) -> tuple[int, str]:
    found, why = _usual(names, "label", LABEL_NAMES, fit)
    if len(fit) == 1 and why:
        return fit[0], "the only other column"
    if len(found) == 1:
        return found[0], why
    if task == "classification":
        few = [i for i in fit if 1 < len({*map(str, cells[i])}) < _MANY * len(cells[i])]
        if len(few) == 1:
            return few[0], "the only other column whose values come again and again"
    if task == "regression":
        numbers = [i for i in fit if all(map(is_number, cells[i]))]
        if len(numbers) == 1:
            return numbers[0], "the only other column of numbers"
    raise UserError(
        f"no one column 'label', found: {listed(names)}. Name the one with the labels: label_column=…"
    )
