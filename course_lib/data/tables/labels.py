"""Labels as they are read, row by row, and what becomes of them: classes, sets of classes, numbers."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.base import UserError
from course_lib.data.tables import cells
from course_lib.data.tables.table import listed, show

_ROWS_AT_ONCE = 4096
MAX_STRATA, ROWS_PER_STRATUM = 10, 20


def make_labels(task: str, sample: Sequence[Any], names: Sequence[str] | None) -> Labels:
    """`sample`: cells of the column; `names`: the labels that there may be, None for any."""
    if task == "multi-label":
        return SeveralLabels(cells.LabelList(sample), names)
    if task == "regression":
        return Numbers(cells.number, None)
    if task == "token-classification":
        return WordsLabels(cells.word_list, names)
    return OneLabel(cells.one_label, names) if task == "classification" else Labels(cells.one_label, None)


class Labels:
    """Labels that nobody asks for: each text has the number 0.

    Attributes:
        parse: makes of a cell what `add` takes.
        names: the labels in the order of their numbers, once `finish` has been called.
        note: what was found and not named.
    """

    def __init__(self, parse: cells.Parse, known: Sequence[str] | None) -> None:
        self.parse, self.is_open = parse, known is None
        self.number_of = {name: i for i, name in enumerate(known or ())}
        self.names: tuple[str, ...] = ()
        self.note = ""
        self.size = 0

    def add(self, label: Any, row: int) -> None:
        self.size += 1

    def finish(self, column: str, *, checks: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """The labels int64 [n], by which texts are split, and where they are no classes the targets (`Texts`).
        With `checks`, raises UserError when there is nothing to tell apart."""
        return np.zeros(self.size, dtype=np.int64), None

    def number(self, label: str, row: int) -> int:
        """The number of a label, in the order in which they come."""
        if label not in self.number_of:
            if not self.is_open:
                known = listed([*self.number_of])
                raise UserError(
                    f"row {row}: the label {show(label)} is none of the training table's: {known}. "
                    "Correct it, or train on texts that have it"
                )
            self.number_of[label] = len(self.number_of)
        return self.number_of[label]

    def _sort_names(self) -> np.ndarray:
        """Settle `names`; int64 [C]: the final number of each."""
        names = [*self.number_of]
        if self.is_open:
            names.sort()
            with contextlib.suppress(ValueError):
                names.sort(key=int)
        self.names = tuple(names)
        return np.argsort([self.number_of[name] for name in names])

    def _refuse_one_value(self, column: str, value: object, fix: str) -> None:
        raise UserError(
            f"column {column!r} has the one value {show(value)} in all {self.size} usable rows. {fix}"
        )


class OneLabel(Labels):
    """One class a text."""

    def __init__(self, parse: cells.Parse, known: Sequence[str] | None) -> None:
        super().__init__(parse, known)
        self.numbers = array("q")

    def add(self, label: str, row: int) -> None:
        self.size += 1
        self.numbers.append(self.number(label, row))

    def finish(self, column: str, *, checks: bool) -> tuple[np.ndarray, np.ndarray | None]:
        rank = self._sort_names()
        if checks and len(self.names) == 1:
            self._refuse_one_value(
                column, self.names[0], "A classifier needs at least two: add rows of another class"
            )
        return rank[np.asarray(self.numbers)], None


class WordsLabels(Labels):
    """One class a word. They are not kept but read again: there may be many."""

    def add(self, label: list[str], row: int) -> None:
        self.size += 1
        for each in label:
            self.number(each, row)

    def finish(self, column: str, *, checks: bool) -> tuple[np.ndarray, np.ndarray | None]:
        self._sort_names()
        if checks and len(self.names) == 1:
            self._refuse_one_value(column, self.names[0], "A classifier needs at least two: add others")
        return super().finish(column, checks=checks)


class SeveralLabels(Labels):
    """Any number of classes a text."""

    def __init__(self, parse: cells.LabelList, known: Sequence[str] | None) -> None:
        super().__init__(parse, known)
        self.note = parse.note
        self.numbers, self.counts = array("q"), array("q")

    def add(self, label: list[str], row: int) -> None:
        self.size += 1
        self.numbers.extend(self.number(each, row) for each in label)
        self.counts.append(len(label))

    def finish(self, column: str, *, checks: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """The label of a text is the rarest that it has (or one more than there are): a split by it leaves some of
        each on both sides."""
        rank = self._sort_names()
        if checks and not self.names:
            raise UserError(f"column {column!r} holds no label. Add rows with one")
        numbers = rank[np.asarray(self.numbers, dtype=np.int64)]
        num_classes = len(self.names)
        frequency = np.append(np.bincount(numbers, minlength=num_classes), np.iinfo(np.int64).max)
        ends = np.cumsum(np.asarray(self.counts))
        strata, packed = [], []
        for start in range(0, self.size, _ROWS_AT_ONCE):
            counts = np.asarray(self.counts[start : start + _ROWS_AT_ONCE])
            has = np.zeros((len(counts), num_classes + 1), dtype=bool)
            has[:, -1] = True
            first = ends[start] - counts[0]
            chosen = numbers[first : first + counts.sum()]
            has[np.repeat(np.arange(len(counts)), counts), chosen] = True
            strata.append(np.where(has, frequency, np.iinfo(np.int64).max).argmin(axis=1))
            strata[-1][counts == 0] = num_classes
            packed.append(np.packbits(has[:, :-1], axis=1))
        return np.concatenate(strata), np.concatenate(packed)


class Numbers(Labels):
    """A number a text."""

    def __init__(self, parse: cells.Parse, known: Sequence[str] | None) -> None:
        super().__init__(parse, known)
        self.numbers = array("d")

    def add(self, label: float, row: int) -> None:
        self.size += 1
        self.numbers.append(label)

    def finish(self, column: str, *, checks: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """The label of a text is the part of the range its number lies in, of up to ten equally full ones: a split
        by it has low and high ones on both sides."""
        targets = np.asarray(self.numbers)
        if checks and targets.min() == targets.max():
            self._refuse_one_value(column, targets[0], "There is nothing to predict: is it the right column?")
        num_strata = max(1, min(MAX_STRATA, self.size // ROWS_PER_STRATUM))
        edges = np.quantile(targets, np.arange(1, num_strata) / num_strata)
        return np.searchsorted(edges, targets).astype(np.int64), targets
