"""Harness of 1.3: one epoch of training; and what it shares with an evaluation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted, looking_on, see
from autograder.lessons.checking.harness_shared import (
    as_it_is,
    in_groups,
    learner,
    numbers,
    small_model,
    weights_of,
)
from course_lib.data import collate


def drawn_batches(seed: int, rows: list[int]) -> list[dict[str, torch.Tensor]]:
    """Batches of so many random texts; the last one is of one class, so that a mean of means differs.

    The padding id stands inside texts and at their ends, and some batches are wider than their longest text. Their
    tensors come in no order that 1.1 names them in.
    """
    rng = np.random.default_rng(seed)
    batches = []
    for number, size in enumerate(rows, start=1):
        labels = np.full(size, rng.integers(5)) if number == len(rows) else rng.integers(5, size=size)
        texts = [rng.integers(1, 60, size=int(rng.integers(2, 20))) for _ in range(size)]
        for text in texts:
            text[rng.random(len(text)) < 0.2] = 0
        texts[-1][-1] = 0
        width = max(map(len, texts)) + int(rng.integers(3))
        batch = collate([(text, int(label)) for text, label in zip(texts, labels, strict=True)], pad_to=width)
        batches.append({name: batch[name] for name in reversed(batch)})
    return batches


class Unreadable(OSError, IndexError, KeyError, ValueError, TypeError, ArithmeticError, RuntimeError):
    """What storage says of a sample or a batch that it has lost; of so many kinds as storages there are.

    An IndexError too: who takes one for the end of the data swallows it.
    """


def broken_off(batches: list[dict[str, torch.Tensor]], num: int = 2) -> Iterator[dict[str, torch.Tensor]]:
    """So many of them; then the storage fails."""
    yield from batches[:num]
    raise Unreadable("a batch cannot be read")


def tells_of(error: BaseException) -> bool:
    """Whether it is the storage's error, or one that was raised because of it."""
    known: list[BaseException | None] = [error]
    while (last := known[-1]) is not None:
        if isinstance(last, Unreadable) or "cannot be read" in str(last):
            return True
        known.append(last.__cause__ or last.__context__)
    return False


IMPOSSIBLE = 3


def make_impossible(model: Any) -> None:
    """From now on the loss of a sample of this class is infinite, and its gradients are finite all the same."""
    with torch.no_grad():
        model.head.bias[IMPOSSIBLE] = -torch.inf


SICK = 7


def make_sick(model: Any, batches: list[dict[str, torch.Tensor]]) -> None:
    """From now on nothing that comes of one word is a number; one sample has it, in the middle batch of three."""
    for batch in batches:
        batch["input_ids"][batch["input_ids"] == SICK] += 1
    batches[1]["input_ids"][1, 0] = SICK
    with torch.no_grad():
        model.token_embedding.weight[SICK] = torch.nan


def scaled_model(seed: int, of_head: float, of_hidden: float, *, dropout: float = 0.0, **sizes: int) -> Any:
    """A small model with gradient norms about 2 for (1, 1), well above for a larger head, and on both sides of 1 for
    (1, 0.3): clipping shows where some are above the norm to clip at and some below."""
    model = small_model(seed, dropout=dropout, **sizes)
    with torch.no_grad():
        model.head.weight.mul_(of_head)
        model.final_norm.weight.mul_(of_hidden)
    return model


def train_epoch_once(
    seed: int,
    rows: list[int],
    options: dict[str, float],
    scales: list[float],
    training: bool,
    learning_rate: float,
    groups: bool,
    odd: bool,
    sure: bool,
) -> dict[str, Any]:
    """One epoch of the learner's loop on a small model: final weights and report. It is counted.

    `odd`: with dropout, and two epochs after each other, the report of the second.
    `sure`: the model takes every label for right, and the loss is small; and the scheduler can be stepped, no more.
    """
    model = scaled_model(seed, *scales, dropout=0.1 * odd)
    parameters = in_groups(model) if groups else model.parameters()
    optimizer = torch.optim.SGD(parameters, lr=learning_rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step) ** 0.7)
    # Gradients left over from an earlier pass: a loop that never clears them shows.
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.3)
    are_kept = True
    for epoch in range(1 + odd):
        batches = drawn_batches(seed + epoch, rows)
        if sure:
            agree(model, batches)
        model.train(training)
        model.blocks[-1].eval()  # as a part that was evaluated alone
        given = as_it_is(batches)
        torch.manual_seed(seed)
        with tell_modes(model), counted(model):
            report = learner(
                model, iter(batches), optimizer, _Plain(scheduler) if sure else scheduler, **options
            )
        are_kept &= as_it_is(batches) == given
    return {
        "batches_kept": are_kept,
        "weights": weights_of(model),
        **numbers_of(report),
        "scheduler_steps": scheduler.last_epoch,
    }


class _Plain:
    """A scheduler of somebody's own."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def step(self) -> None:
        self._scheduler.step()


class Tiny(torch.nn.Module):
    """A model of few operators, so that many steps of it are quickly counted; two of its parts share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.classes, self.same = torch.nn.Embedding(60, 5), torch.nn.Embedding(60, 5)
        self.same.weight = self.classes.weight

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return (self.classes(input_ids) * attention_mask[..., None]).sum(1)


class _First(Tiny):
    """Reads the first word of a text."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return super().forward(input_ids[:, :1], attention_mask[:, :1])


def many_batches(seed: int, number: int) -> Iterator[dict[str, torch.Tensor]]:
    """So many batches, some alike; a few hold texts longer than any of the corpus."""
    few = drawn_batches(seed, [3, 2, 4])
    times = -(-1100 // few[0]["input_ids"].shape[1])
    wide = {name: tensor.repeat(1, times) if tensor.ndim > 1 else tensor for name, tensor in few[0].items()}
    return (dict(few[step % 3] if step % 30 else wide) for step in range(number))


def train_epoch_long(seed: int, num_steps: int) -> dict[str, Any]:
    """A long epoch of the learner's loop, and all that it did. It is counted."""
    torch.manual_seed(seed)
    model, few = Tiny(), many_batches(seed, num_steps)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
    with tell_modes(model.eval()), counted(model):
        report = learner(model, few, optimizer, scheduler)
    return {
        "scheduler_steps": scheduler.last_epoch,
        "weights": weights_of(model),
        **numbers_of(report),
    }


def train_epoch_vast(seed: int, widths: list[int]) -> dict[str, Any]:
    """The report of an epoch of two texts a batch, so wide that float32 cannot count their tokens; one is half real.

    They take no memory: all ids of a text are one, and the model reads the first.
    """
    torch.manual_seed(seed)
    model = _First()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    batches = [
        {
            "input_ids": torch.tensor([[7], [5]]).expand(2, width),
            "attention_mask": torch.tensor([[True], [number != 1]]).expand(2, width),
            "labels": torch.tensor([1, 3]),
        }
        for number, width in enumerate(widths)
    ]
    return numbers_of(learner(model, iter(batches), optimizer, scheduler))


def train_epoch_broken_off(seed: int, where: str) -> dict[str, bool]:
    """Whether an error reaches the caller of the learner's loop.

    `where`: "batch", which cannot be read; "model", which does not know a word; "memory", which the model lacks.
    """
    model, batches = small_model(seed), drawn_batches(seed, [4, 5, 4])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    if where == "model":
        batches[1]["input_ids"][0, 0] = 10**6
    elif where == "memory":
        model.register_forward_pre_hook(_without_memory)
    try:
        learner(model, broken_off(batches) if where == "batch" else iter(batches), optimizer, scheduler)
    except Exception as error:
        return {"is_told": where != "batch" or tells_of(error)}
    return {"is_told": False}


def _without_memory(_model: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    if len(inputs[0]) > 4:
        raise torch.OutOfMemoryError(f"{len(inputs[0])} rows are too many")


def train_epoch_infinite(seed: int) -> dict[str, Any]:
    """The report of the learner's loop where the loss of a batch in the middle is infinite."""
    model, batches = small_model(seed), drawn_batches(seed, [4, 6, 5])
    for batch in batches:
        batch["labels"][batch["labels"] == IMPOSSIBLE] = 0
    batches[1]["labels"][2] = IMPOSSIBLE
    make_impossible(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    return numbers_of(learner(model, iter(batches), optimizer, scheduler))


def train_epoch_sick(seed: int) -> dict[str, Any]:
    """The report of the learner's loop where a weight is no number; or that it ended with an error, as it may."""
    model, batches = small_model(seed), drawn_batches(seed, [4, 6, 5])
    make_sick(model, batches)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    try:
        return numbers_of(learner(model, iter(batches), optimizer, scheduler))
    except RuntimeError:
        return {"type": "dict", "report": {}}


def agree(model: Any, batches: list[dict[str, torch.Tensor]]) -> None:
    """Make the model right about all of these batches."""
    model.eval()
    with torch.no_grad():
        for batch in batches:
            batch["labels"].copy_(model(batch["input_ids"], batch["attention_mask"]).argmax(-1))


def tell_modes(model: Any) -> contextlib.AbstractContextManager[None]:
    """Of each forward pass, how many modules are in training mode, and how many are not: an attribute may be set
    without its submodules'."""

    def tell_mode(model: Any, *_: Any) -> None:
        modes = [module.training for module in model.modules()]
        see("modes", sum(modes), len(modes) - sum(modes))

    return looking_on(model, tell_mode)


def numbers_of(report: Any) -> dict[str, Any]:
    """A report and its type; what is no number there, as a tensor is none, is left out."""
    if not isinstance(report, dict):
        return {"type": type(report).__name__, "report": {}}
    real = {name: value for name, value in report.items() if isinstance(value, (int, float, np.generic))}
    return {"type": "dict", "report": numbers(real)}
