"""Harness of 6.2: a model whose replicas on all ranks stay equal, by hand."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from numbers import Real
from typing import Any

import torch

from autograder.lessons.checking.harness_shared import as_it_is, learner, small_model, switches
from autograder.lessons.lesson_06.harness.shared import (
    gradients_of,
    loss_of,
    make_loud,
    make_sick,
    on_ranks,
    shares,
    with_no_word,
)
from autograder.lessons.lesson_06.harness.watches import Forwards, ModeWatch, gradients_again
from course_lib.models.transformers import Dropout

STEP_SIZE = 0.5
LOUD = 1  # of the two models of one rank: with large losses, and none at all for a row of the last batch
_OTHER = 1000  # between their seeds


class Scaled(torch.nn.Module):
    """A classifier with buffers of four dtypes, at two depths, one with infinities; its positions are frozen, and what
    its head has belongs to another module as well.

    Not all of it is in the same mode: a frozen part is often left in evaluation mode. A loud one comes in evaluation
    mode, but for that part.
    """

    scale: torch.Tensor

    def __init__(self, seed: int, number: int) -> None:
        super().__init__()
        self.inner = small_model(seed + _OTHER * number)
        if number == LOUD:
            make_loud(self.inner)
            make_sick(self.inner)
        self.inner.position_embedding.weight.requires_grad_(False)  # it has no gradient on any rank
        self.register_buffer("scale", 0.5 + torch.rand(5))
        self.inner.register_buffer("shift", torch.randint(1, 100, (5,)))
        self.inner.register_buffer("num_seen", torch.randint(2**60, 2**61, ()))  # no float holds it
        self.inner.register_buffer("exact", torch.rand(3, dtype=torch.float64))
        for tensor in (self.inner.get_buffer("exact"), self.inner.head.bias.data):
            tensor[0] = -0.0  # no sum with zeros leaves that as it is
        self.register_buffer("flags", torch.rand(40) < 0.5)
        self.register_buffer("causal", torch.rand(3, 3).masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf))
        self.tied = torch.nn.Module()
        self.tied.weight, self.tied.bias = self.inner.head.weight, self.inner.head.bias
        self.train(number != LOUD)
        self.inner.final_norm.train(number == LOUD)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.inner(
            input_ids, attention_mask
        ) * self.scale + 0.01 * self.inner.get_buffer("shift")
        return logits


class Held:
    """The tensors of a model as an optimizer holds them: those that it had before the learner came."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.weights: list[torch.Tensor] = list(model.parameters())
        self.buffers = list(model.buffers())

    def num_replaced(self) -> int:
        now = [*self.model.parameters(), *self.model.buffers()]
        # More of them where what two modules share is no longer one.
        return sum(old is not new for old, new in itertools.zip_longest([*self.weights, *self.buffers], now))

    def values(self) -> dict[str, Any]:
        with torch.no_grad():
            weights = torch.cat([weight.flatten() for weight in self.weights])
            return {
                "weights": weights,
                "buffers": torch.cat([b.flatten().double() for b in self.buffers if b.ndim]),
                "exact_weights": _digest(self.weights),
                "exact_buffers": _digest(self.buffers),
            }

    def parameters(self) -> list[torch.Tensor]:
        return self.weights

    def step(self) -> None:
        with torch.no_grad():
            for weight in self.weights:
                if weight.grad is not None:
                    weight.sub_(STEP_SIZE * weight.grad)
                weight.grad = None


def _digest(tensors: list[torch.Tensor]) -> str:
    return hashlib.sha256(repr(as_it_is(tensors)).encode()).hexdigest()


def hand_made(seed: int, rows: list[list[int]]) -> dict[str, Any]:
    """The learner's class on as many ranks as `rows` has; each begins with other weights and buffers."""
    return on_ranks("hand_made_rank", len(rows), seed=seed, rows=rows)


def hand_made_rank(rank: int, world_size: int, seed: int, rows: list[list[int]]) -> list[dict[str, Any]]:
    """Of two models, side by side in one process: how they begin, and what each batch gives."""
    models = [Held(Scaled(seed + rank, number)) for number in range(2)]
    before, watches = switches(), [ModeWatch(held.model) for held in models]
    replicas = [learner(held.model) for held in models]
    found: list[dict[str, Any]] = [
        {"start": held.values(), "num_replaced": held.num_replaced(), "seen": []} for held in models
    ]
    batches = [_of_ranks(seed, rows, number)[rank] for number in range(2)]
    for both in zip(*batches, strict=True):
        for held, replica, report, batch, watch in zip(models, replicas, found, both, watches, strict=True):
            given, weights_before = as_it_is(batch), _digest(held.weights)
            loss = replica.loss_and_gradients(batch)
            seen: dict[str, Any] = {
                "loss": float("nan"),
                "type": type(loss).__name__,
                "is_number": isinstance(loss, Real),
            }
            with contextlib.suppress(TypeError, ValueError, RuntimeError):
                seen["loss"] = float(loss)
            seen |= {
                "switches": (before, switches()),
                "gradients": gradients_of(held).clone(),
            } | watch.report()
            seen["modes_changed"] |= watch.are_changed(held.model)
            seen["is_changed"] = as_it_is(batch) != given
            seen["weights_moved"] = _digest(held.weights) != weights_before
            frozen = [weight for weight in held.weights if not weight.requires_grad]
            seen["frozen_have_none"] = len(frozen) == 1 and frozen[0].grad is None
            seen["num_foreign"] = watch.num_foreign(batches[models.index(held)])
            report["seen"].append(seen | held.values())
            torch.set_grad_enabled(
                True
            )  # the next call would say less of what this one has left switched off
            held.step()
    for number, (held, replica, report) in enumerate(zip(models, replicas, found, strict=True)):
        batch, twin = _of_ranks(seed, rows, number)[rank][-1], Scaled(seed, number)
        report["by_chance"] = _by_chance(held, replica, batch, twin)
    return found


def _by_chance(
    held: Held, replica: Any, batch: dict[str, torch.Tensor], twin: torch.nn.Module
) -> dict[str, Any]:
    """One more call with dropout: the loss that is returned, and the sum of those whose gradients are taken; the
    gradients that are left, and those of each forward with the numbers that it drew.

    None where what goes through the model are not the rows of the batch, one after the other.
    """
    with torch.no_grad():
        tensors = [*twin.parameters(), *twin.buffers()]
        for tensor, value in zip(tensors, [*held.weights, *held.buffers], strict=True):
            tensor.copy_(value)
    for module in [*held.model.modules(), *twin.modules()]:
        if isinstance(module, Dropout):
            module.p, module.threshold = 0.5, 128
    forwards = Forwards(held.model)
    torch.manual_seed(len(batch["labels"]))
    labels, loss = batch["labels"], float("nan")
    with contextlib.suppress(TypeError):  # of another type than a number: that is told elsewhere
        loss = float(replica.loss_and_gradients(batch))
    forwards.end()
    torch.set_grad_enabled(True)
    found = {
        "loss": loss,
        "own_sum": None,
        "rows": len(labels),
        "gradients": torch.cat(
            [w.grad.flatten() for w in held.weights if w.grad is not None] or [labels[:0]]
        ),
        "of_forwards": gradients_again(twin, forwards.used()),
    }
    rows = [row for forward in forwards.used() for row in forward.ids()]
    if len(rows) == len(labels) and all(map(torch.equal, rows, batch["input_ids"])):
        logits = torch.cat([forward.logits for forward in forwards.used()])
        found["own_sum"] = float(torch.nn.functional.cross_entropy(logits, labels, reduction="sum"))
    return found


def one_process(seed: int, rows: list[list[int]]) -> list[dict[str, Any]]:
    """What all ranks must hold: the gradients of one process on the samples of all; and what mistakes give."""
    return [_alone(Held(Scaled(seed, number)), _of_ranks(seed, rows, number)) for number in range(2)]


def _of_ranks(seed: int, rows: list[list[int]], number: int) -> list[list[dict[str, torch.Tensor]]]:
    """The batches of this one of the two models."""
    of_ranks = shares(seed, rows)
    if number == LOUD:
        of_ranks[-1][-1] = with_no_word(of_ranks[-1][-1])
    return of_ranks


def _alone(held: Held, of_ranks: list[list[dict[str, torch.Tensor]]]) -> dict[str, Any]:
    found: dict[str, Any] = {"start": held.values(), "seen": []}
    for batches in zip(*of_ranks, strict=True):
        sizes = [len(batch["labels"]) for batch in batches]
        losses, own = zip(*[_gradients(held, batch) for batch in batches], strict=True)
        shares_of_all = [size / sum(sizes) for size in sizes]
        right = _sum(shares_of_all, own)
        for weight, gradient in zip(held.weights, _pieces(right, held.weights), strict=True):
            weight.grad = gradient
        seen = {
            "loss": sum(share * loss for share, loss in zip(shares_of_all, losses, strict=True)),
            "gradients": right,
            "mean_of_means": sum(own) / len(own),
            "sum_of_means": sum(own),
            "sum_of_sums": _sum(sizes, own),
            "frozen_have_none": True,
            "own": list(own),
            "own_shares": [share * row for share, row in zip(shares_of_all, own, strict=True)],
        }
        found["seen"].append(seen | held.values())
        held.step()
    return found


def _gradients(held: Held, batch: dict[str, torch.Tensor]) -> tuple[float, torch.Tensor]:
    """Of the mean over one batch."""
    loss = loss_of(held.model, batch)
    loss.backward()
    gradients = gradients_of(held).clone()
    for weight in held.weights:
        weight.grad = None
    return float(loss), gradients


def _sum(factors: list[Any], rows: Any) -> torch.Tensor:
    return torch.stack([factor * row for factor, row in zip(factors, rows, strict=True)]).sum(0)


def _pieces(row: torch.Tensor, like: list[torch.Tensor]) -> list[torch.Tensor]:
    pieces = row.split([tensor.numel() for tensor in like])
    return [piece.view_as(tensor).clone() for piece, tensor in zip(pieces, like, strict=True)]
