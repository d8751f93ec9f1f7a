"""What every judge of answers does: keeps what is counted, finds the costliest errors, cuts into slices."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

NUM_ERRORS = 20
"""Costliest errors that are kept."""
MOST_VALUES = 50
"""Slices by a column: the rest of its values count together."""
EXCERPT = 400


@dataclass(frozen=True)
class LabelledRow:
    """A row to be judged by: its number in the table, its text, its label as the column has it (a name, names, a
    number; for token classification one name per word) and its values in the columns of the slices."""

    number: int
    text: Any
    label: Any
    slices: tuple[str, ...] = ()


class Judge(Protocol):
    """Is told each row and what the model said of it; sums up."""

    def add(self, row: LabelledRow, num_tokens: int, said: Any) -> None: ...
    def sections(self, slices: Sequence[str]) -> dict[str, Any]:
        """The sections of an evaluation, in JSON values; `slices` names the columns of the rows' values."""


@dataclass
class Costliest:
    """The errors that cost most, with what is to be shown of them."""

    kept: list[tuple[float, int, dict[str, Any]]] = field(default_factory=list)
    seen: int = 0

    def offer(self, loss: float, row: LabelledRow, **shown: Any) -> None:
        self.seen += 1
        if len(self.kept) < NUM_ERRORS or loss > self.kept[0][0]:
            text = row.text if isinstance(row.text, str) else " ".join(row.text)
            shown = {"row": row.number, "loss": loss, **shown, "text": excerpt(text)}
            # Of two that cost the same the earlier one stays.
            push = heapq.heappush if len(self.kept) < NUM_ERRORS else heapq.heappushpop
            push(self.kept, (loss, -self.seen, shown))

    def listed(self) -> list[dict[str, Any]]:
        return [shown for _, _, shown in sorted(self.kept, key=lambda each: each[:2], reverse=True)]


class Column:
    """Numbers that come few at a time, and are one array in the end."""

    def __init__(self, code: str) -> None:
        self.values = array(code)

    def add(self, values: Any) -> None:
        self.values.extend(np.atleast_1d(values).tolist())

    def array(self) -> np.ndarray:
        return np.array(self.values)


def excerpt(text: str, size: int = EXCERPT) -> str:
    """The text in one line, cut."""
    line = " ".join(text[: 4 * size].split())
    return line if len(line) <= size else line[: size - 1] + "…"


def sliced(
    lengths: np.ndarray, columns: dict[str, np.ndarray], score: Callable[[np.ndarray], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """`score` of the items of each slice: by length in tokens, and by the values of columns; all arrays [N].

    A row each: the slice's name, `num_items`, and what `score(is_inside)`, given bool [N], says.
    """
    parts = {"length": [*_quarters(lengths)]}
    parts |= {name: [*_values(values)] for name, values in columns.items()}
    return {
        name: [{"slice": part, "num_items": int(inside.sum())} | score(inside) for part, inside in found]
        for name, found in parts.items()
    }


def _quarters(lengths: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    edges = np.unique(np.quantile(lengths, (0.25, 0.5, 0.75), method="lower"))
    quarter = np.searchsorted(edges, lengths)
    for k in np.unique(quarter):
        inside = quarter == k
        low, high = lengths[inside].min(), lengths[inside].max()
        yield f"{low:,}–{high:,}", inside


def _values(values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The most frequent first."""
    names, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    for k in order[:MOST_VALUES]:
        yield str(names[k]) or "(blank)", number == k
    if len(order) > MOST_VALUES:
        yield f"{len(order) - MOST_VALUES} others", np.isin(number, order[MOST_VALUES:])
