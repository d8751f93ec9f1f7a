"""What several harnesses of lesson 03 have in common: what reaches a model, and what a solution says of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import torch

from autograder.lessons.checking.harness_shared import numbers


@contextmanager
def watched_calls(model: Any) -> Iterator[list[list[int]]]:
    """Of each call of the model: rows, width, real tokens, and 1 where it was in training mode.

    Seen at its first block: it is reached whatever way the model is called.
    """
    found: list[list[int]] = []

    def note(block: Any, inputs: tuple[torch.Tensor, torch.Tensor]) -> None:
        hidden, key_mask = inputs
        found.append([*hidden.shape[:2], int(key_mask.sum()), int(block.training)])

    hook = model.blocks[0].register_forward_pre_hook(note)
    yield found
    hook.remove()


def told(report: Any) -> dict[str, Any]:
    """The numbers of a report, what kind of thing it is, and what in it is no plain number."""
    if not isinstance(report, dict):
        return {"report": {}, "kind": type(report).__name__, "not_plain": {}}
    not_plain = {name: type(value).__name__ for name, value in report.items() if not isinstance(value, Real)}
    return {"report": numbers(report), "kind": "dict", "not_plain": not_plain}
