"""What several harnesses of lesson 03 have in common: what reaches a model, and what a solution says of it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import numbers


@contextmanager
def watched_calls(model: Any) -> Iterator[list[list[float]]]:
    """Of each call of the model: rows, width, real tokens, and the share of its parts that were in training mode.

    Seen at its first block: it is reached whatever way the model is called.
    """
    found: list[list[float]] = []
    parts = list(model.modules())

    def note(_block: Any, inputs: tuple[torch.Tensor, torch.Tensor]) -> None:
        hidden, key_mask = inputs
        mode = sum(part.training for part in parts) / len(parts)
        found.append([*hidden.shape[:2], int(key_mask.sum()), mode])

    hook = model.blocks[0].register_forward_pre_hook(note)
    yield found
    hook.remove()


def leave(model: Any, gradient: float | None, *, is_frozen: bool = False) -> None:
    """Gradients as somebody may have left them, None or NaN too, and embeddings that are not to be trained."""
    if is_frozen:
        model.token_embedding.requires_grad_(False)
    for parameter in model.parameters():
        if parameter.requires_grad and gradient is not None:
            parameter.grad = torch.full_like(parameter, gradient)


class Handed:
    """What is handed in, tensors or arrays, as it was then; and the generators of torch, NumPy and Python."""

    def __init__(self, handed: Iterable[torch.Tensor | np.ndarray]) -> None:
        self._handed = [(each, np.array(each)) for each in handed]
        self._drawn = self._generators()

    def changed(self) -> list[str]:
        """What is another now."""
        is_same = all(np.array_equal(np.asarray(each), before) for each, before in self._handed)
        is_drawn = self._drawn != self._generators()
        return ["what was handed in"] * (not is_same) + ["the random generators"] * is_drawn

    @staticmethod
    def _generators() -> tuple[Any, ...]:
        return torch.get_rng_state().numpy().tobytes(), repr(np.random.get_state()), random.getstate()


def told(report: Any) -> dict[str, Any]:
    """The numbers of a report, what kind of thing it is, and what in it is no plain number."""
    if not isinstance(report, dict):
        return {"report": {}, "kind": type(report).__name__, "not_plain": {}}
    not_plain = {name: type(value).__name__ for name, value in report.items() if not _is_plain(value)}
    return {"report": numbers(report), "kind": "dict", "not_plain": not_plain}


def _is_plain(value: Any) -> bool:
    """A number that JSON can write; NumPy's float64 is one of Python's floats."""
    return isinstance(value, int | float) and not isinstance(value, bool)
