"""What stands in a cell, for each kind of label: a text, a class, a number, a list; or nothing."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from course_lib.base import UserError
from course_lib.data.tables.table import show

SEPARATORS = ("|", ";", ",", " ")
Parse = Callable[[Any, int], Any]
"""A cell and the number of its row become a value, None for a blank one. Raises UserError naming the row."""


def text(value: Any, row: int) -> str:
    """The cell as text, "" for a missing one. Raises UserError for a list and other things that are none."""
    if isinstance(value, list | tuple | dict | bytes | np.ndarray):
        raise UserError(
            f"row {row}: {show(value)} is neither text nor a number: write it as text "
            "(several labels are task=multi-label, a label for each word is task=token-classification)"
        )
    found = "" if value is None or value != value else str(value)
    _refuse_halves(found, row)
    return found


def one_text(value: Any, row: int) -> str | None:
    found = text(value, row)
    return found if found.strip() else None


def one_label(value: Any, row: int) -> str | None:
    return text(value, row).strip() or None


def number(value: Any, row: int) -> float | None:
    found = text(value, row).strip()
    if not found:
        return None
    if not is_number(found) or isinstance(value, bool):
        raise UserError(f"row {row}: {show(found)} is no number, which task=regression needs: write 3.5")
    return float(found)


def word_list(value: Any, row: int) -> list[str] | None:
    """The words of a text, or their labels: a list of texts or numbers; None for an empty one."""
    found = as_list(value)
    if found is None and text(value, row).strip():
        raise UserError(
            f'row {row}: {show(value)} is no list: task=token-classification takes ["a", "word"] and ["O", "B"]'
        )
    words = [text(each, row) for each in found or ()]
    return words or None


class LabelList:
    """Several labels a cell: a list, or texts with a separator between them."""

    def __init__(self, sample: Iterable[Any]) -> None:
        """`sample`: cells by which the separator is found: that which leaves fewest different labels."""
        cells = [str(value) for value in sample if as_list(value) is None and value is not None]
        parts = {
            sign: {part.strip() for cell in cells for part in cell.split(sign)}
            for sign in SEPARATORS
            if any(sign in cell.strip() for cell in cells)
        }
        if len(parts) > 1:
            parts.pop(" ", None)  # it stands within labels, too
        self.separator = min(parts, key=lambda sign: len(parts[sign])) if parts else None
        self.note = "labels are lists" if not cells else "each text has one label"
        if self.separator is not None:
            self.note = f'labels are separated by "{self.separator}"'

    def __call__(self, value: Any, row: int) -> list[str] | None:
        """The labels, each once; [] for an empty list, None for a blank cell."""
        found = as_list(value)
        if found is None:
            whole = text(value, row).strip()
            if not whole:
                return None
            found = whole.split(self.separator) if self.separator else [whole]
        labels = (text(each, row).strip() for each in found)
        return [*dict.fromkeys(filter(None, labels))]


def as_list(value: Any) -> list[Any] | None:
    """A list, or one that is written out in a cell, as JSON or as Python; None for anything else."""
    if isinstance(value, list | tuple | np.ndarray):
        return [*value]
    if not isinstance(value, str) or not (value.strip().startswith("[") and value.strip().endswith("]")):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, list) else None
    return None


def is_number(value: object) -> bool:
    """Whether it is, or spells, a finite number."""
    try:
        return math.isfinite(float(str(value)))
    except ValueError:
        return False


def _refuse_halves(value: str, row: int) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can hold half of a character
        raise UserError(
            f"row {row}: {show(value.encode(errors='replace').decode())} holds half a character"
        ) from None
