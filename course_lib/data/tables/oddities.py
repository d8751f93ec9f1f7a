"""What is odd about a table and worth a look before hours of training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from course_lib.data.tables.cells import as_list, is_number
from course_lib.data.tables.table import show

_MANY_LABELS = 20


def oddities(
    task: str,
    column: str,
    names: Sequence[str],
    numbers: np.ndarray,
    targets: np.ndarray | None,
    groups: np.ndarray,
) -> Iterator[str]:
    """One sentence each. `column`: that of the labels; the others as in `Texts`."""
    if task == "classification":
        yield from _of_classes(column, names, numbers)
    if task == "multi-label" and targets is not None:
        counts = np.unpackbits(targets, axis=1).sum(axis=1, dtype=np.int64)
        yield f"{len(names)} labels, {counts.min()} to {counts.max()} a text, {counts.mean():.3g} on average"
    # Of each different text: how many labels it has, and how often it comes.
    pairs = np.unique(np.stack([groups, numbers]), axis=1)
    num_labels = np.unique(pairs[0], return_counts=True)[1]
    if repeats := len(groups) - len(num_labels):
        torn = (num_labels > 1).sum() if task == "classification" else 0
        differing = f", {torn} of them with different labels" if torn else ""
        yield f"{repeats} texts repeat an earlier one (a split keeps equal texts on one side){differing}"


def _of_classes(column: str, names: Sequence[str], numbers: np.ndarray) -> Iterator[str]:
    if all(as_list(name) is not None for name in names):
        yield "labels are lists: is it task=multi-label?"
    counts = np.bincount(numbers, minlength=len(names))
    if len(names) == len(numbers) or len(names) > max(_MANY_LABELS, len(numbers) // 2):
        asks = f"is {column!r} the right column?"
        if all(map(is_number, names)):
            asks += " A number to predict is task=regression"
        yield f"{len(names)} different labels in {len(numbers)} rows: {asks}"
    elif single := [names[i] for i in np.flatnonzero(counts == 1).tolist()]:
        yield f"{len(single)} labels with a single text, not to be validated, the first: {show(single[0])}"
