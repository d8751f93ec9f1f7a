"""What every kind of table is to the others: names of columns, and rows that can be read again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from course_lib.base import UserError

Row = tuple[int, list[Any]]
"""Its number (the header of a CSV is row 1; a frame counts from 0, as `iloc` does) and its values."""

SAMPLE_ROWS = 1000
"""Rows that are looked at to find out what a column holds."""


@dataclass(frozen=True)
class Table:
    """A table that is read again each time it is iterated, and never held.

    Attributes:
        name: for messages: the path, or `the frame`.
        columns: the names, as they stand there, in their order; `column 1`, `column 2` … without a header.
        read: the rows anew; of the columns at the positions given, or all.
        notes: what was found and not named: encoding, delimiter, header.
    """

    name: str
    columns: list[str]
    read: Callable[[Sequence[int] | None], Iterator[Row]]
    notes: tuple[str, ...] = ()

    def rows(self, columns: Sequence[int] | None = None) -> Iterator[Row]:
        """Each row in its order. Raises UserError naming the row that cannot be read."""
        with named(self.name):
            yield from self.read(columns)

    def sample(self) -> list[Row]:
        return [*islice(self.rows(), SAMPLE_ROWS)]


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """What goes wrong inside is told as a UserError that begins with the table's name."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError) as error:  # a UserError is a ValueError
        message = str(getattr(error, "strerror", None) or error)
        raise UserError(message if message.startswith(f"{name}: ") else f"{name}: {message}") from None


def show(value: object) -> str:
    """A value from the table, quoted and short enough for a one-line message."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:39] + "…")


def listed(names: Sequence[object]) -> str:
    """`'a', 'b'`: the first ten."""
    shown = ", ".join(map(show, names[:10])) or "nothing"
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
