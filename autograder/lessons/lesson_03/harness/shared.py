"""What several harnesses of lesson 03 have in common: what reaches a model, and what a solution says of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograder.lessons.checking.harness_counting import looking_on, see
from autograder.lessons.checking.harness_shared import as_it_is, numbers


@contextmanager
def watched_calls(model: Any) -> Iterator[list[list[float]]]:
    """Of each call of the model: rows, width, real tokens, and the share of its parts that were in training mode. Told
    to the grader, too, as "call".

    Seen at its first block: it is reached whatever way the model is called.
    """
    found: list[list[float]] = []
    parts = list(model.modules())

    def note(_block: Any, inputs: tuple[torch.Tensor, torch.Tensor], _named: Any) -> None:
        hidden, key_mask = inputs
        mode = sum(part.training for part in parts) / len(parts)
        found.append([*hidden.shape[:2], int(key_mask.sum()), mode])
        see("call", *found[-1])

    with looking_on(model.blocks[0], note):
        yield found


def leave(model: Any, gradient: float | None, *, is_frozen: bool = False) -> None:
    """Gradients as somebody may have left them, None or NaN too, and embeddings that are not to be trained.

    These have their gradients from before they were frozen. A weight of the model belongs to another module as well.
    """
    model.tied = torch.nn.Module()
    model.tied.weight = model.head.weight
    if is_frozen:
        model.token_embedding.requires_grad_(False)
    for parameter in model.parameters():
        if gradient is not None:
            parameter.grad = torch.full_like(parameter, gradient)


def set_mode(model: Any, *, is_training: bool) -> None:
    """The mode in which a model comes; where it is training mode, a part was left in the other by an evaluation."""
    model.train(is_training)
    model.blocks[-1].eval()


class Frozen:
    """Which parameters are frozen, and what they are."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._before, self._asked, self._hooks = self._values(), self._flags(), self._num_hooks()

    def _values(self) -> dict[str, torch.Tensor]:
        return {name: p.detach().clone() for name, p in self._model.named_parameters() if not p.requires_grad}

    def _flags(self) -> dict[str, bool]:
        return {name: p.requires_grad for name, p in self._model.named_parameters()}

    def _num_hooks(self) -> int:
        """Of gradients; what they do they would do in the next call, too."""
        hooks = [(p._backward_hooks, p._post_accumulate_grad_hooks) for p in self._model.parameters()]
        return sum(len(one or ()) for both in hooks for one in both)

    def changed(self) -> list[str]:
        """What is another now; NaN is no value of before."""
        hooks = ["hooks"] * (self._num_hooks() != self._hooks)
        now = dict(self._model.named_parameters())
        are_moved = [not torch.equal(now[name], value) for name, value in self._before.items()]
        return hooks + ["values"] * any(are_moved) + ["flags"] * (self._flags() != self._asked)


class Handed:
    """What is handed in, as it was then."""

    def __init__(self, *handed: Any) -> None:
        self._handed, self._before = handed, as_it_is(handed)

    def is_changed(self) -> bool:
        return bool(as_it_is(self._handed) != self._before)


def told(report: Any) -> dict[str, Any]:
    """The numbers of a report, what kind of thing it is, and what in it is no plain number."""
    if not isinstance(report, dict):
        return {"report": {}, "kind": type(report).__name__, "not_plain": {}}
    not_plain = {name: type(value).__name__ for name, value in report.items() if not is_plain(value)}
    return {"report": numbers(report), "kind": "dict", "not_plain": not_plain}


def is_plain(value: Any) -> bool:
    """A number that JSON can write; NumPy's float64 is one of Python's floats."""
    return isinstance(value, int | float) and not isinstance(value, bool)
