"""Harness of 1.3 and 1.4: one epoch of training, and an evaluation."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import (
    in_groups,
    learner,
    numbers,
    small_model,
    switches,
    weights_of,
)
from course_lib.data import collate
from course_lib.measuring import count_events


def drawn_batches(seed: int, rows: list[int]) -> list[dict[str, torch.Tensor]]:
    """Batches of so many random texts; the last one is of one class, so that a mean of means differs.

    The padding id stands inside texts and at their ends, and some batches are wider than their longest text.
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
        batches.append(
            collate([(text, int(label)) for text, label in zip(texts, labels, strict=True)], pad_to=width)
        )
    return batches


class Unreadable(OSError, IndexError, RuntimeError):
    """What storage says of a sample or a batch that it has lost; of so many kinds as storages there are.

    An IndexError too: who takes one for the end of the data swallows it.
    """


def _broken_off(batches: list[dict[str, torch.Tensor]]) -> Iterator[dict[str, torch.Tensor]]:
    """All but the last, in whose place the storage fails."""
    yield from batches[:-1]
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


def scaled_model(seed: int, of_head: float, of_hidden: float, **sizes: int) -> Any:
    """A small model with gradient norms about 2 for (1, 1), well above for a larger head, and on both sides of 1 for
    (1, 0.3): clipping shows where some are above the norm to clip at and some below."""
    model = small_model(seed, **sizes)
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
) -> dict[str, Any]:
    """One epoch of the learner's loop on a small model: final weights, report, and what was counted."""
    model = scaled_model(seed, *scales)
    parameters = in_groups(model) if groups else model.parameters()
    optimizer = torch.optim.SGD(parameters, lr=learning_rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step) ** 0.7)
    # Gradients left over from an earlier pass: a loop that never clears them shows.
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.3)
    modes = _modes_seen(model)
    model.train(training)
    batches = drawn_batches(seed, rows)
    with count_events(model) as counts:
        report = learner(model, iter(batches), optimizer, scheduler, **options)
    return {
        "weights": weights_of(model),
        **_numbers_of(report),
        "syncs": counts.num_syncs,
        "unwatched": counts.num_unwatched,
        "optimizer_steps": counts.num_optimizer_steps,
        "scheduler_steps": scheduler.last_epoch,
        "train_mode": all(all(seen) for seen in modes) and bool(modes),
    }


def train_epoch_broken_off(seed: int) -> dict[str, bool]:
    """Whether the error of a batch that cannot be read reaches the caller of the learner's loop."""
    model = small_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    try:
        learner(model, _broken_off(drawn_batches(seed, [4, 4, 4])), optimizer, scheduler)
    except Exception as error:
        return {"is_told": tells_of(error)}
    return {"is_told": False}


def train_epoch_infinite(seed: int) -> dict[str, Any]:
    """The report of the learner's loop where the loss of a batch in the middle is infinite."""
    model, batches = small_model(seed), drawn_batches(seed, [4, 6, 5])
    for batch in batches:
        batch["labels"][batch["labels"] == IMPOSSIBLE] = 0
    batches[1]["labels"][2] = IMPOSSIBLE
    make_impossible(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    return _numbers_of(learner(model, iter(batches), optimizer, scheduler))


def evaluate_broken_off(seed: int, training: bool) -> dict[str, Any]:
    """Whether such an error reaches the caller of the learner's evaluation, and what it leaves."""
    model = small_model(seed, dropout=0.5)
    model.train(training)
    before, is_told = _state_of(model) | {"grad_mode": True}, False
    with torch.enable_grad(), _matmul_precision("high"):
        set_before = switches()
        try:
            learner(model, _broken_off(drawn_batches(seed, [4, 4, 4])))
        except Exception as error:
            is_told = tells_of(error)
        set_after = switches()
        after = _state_of(model) | {"grad_mode": torch.is_grad_enabled()}
    left = {name: value == before[name] for name, value in after.items()}
    return {"is_told": is_told, "left": left, "switches": [set_before, set_after]}


def evaluate_once(
    seed: int, rows: list[int], training: bool, records: bool, matmul: str, infinite: bool
) -> dict[str, Any]:
    """The learner's evaluation of a small model with dropout, and the traces that it left.

    `infinite`: a sample of the first batch is of a class that the model takes for impossible.
    """
    model = small_model(seed, dropout=0.5)
    model.final_norm.weight.requires_grad_(False)  # as in a model of which a part is frozen
    batches = drawn_batches(seed, rows)
    if infinite:
        # No other sample is of it: a batch without losses would have no mean.
        for batch in batches:
            batch["labels"][batch["labels"] == IMPOSSIBLE] = 0
        batches[0]["labels"][0] = IMPOSSIBLE
        make_impossible(model)
    _agree_in_the_last(model, batches)
    given = [{name: tensor.clone() for name, tensor in batch.items()} for batch in batches]
    for parameter in model.parameters():
        parameter.grad = torch.full_like(
            parameter, 0.3
        )  # gradients that somebody gathers over several batches
    model.train(training)
    modes = _modes_seen(model)
    gradients: list[bool] = []
    model.register_forward_hook(lambda module, _, logits: gradients.append(logits.requires_grad))
    before = _state_of(model)
    with torch.set_grad_enabled(records), _matmul_precision(matmul):
        set_before = switches()
        report = learner(model, iter(batches))
        after = _state_of(model) | {"grad_mode": records == torch.is_grad_enabled()}
        set_after = switches()
    return {
        **_numbers_of(report),
        "eval_mode": not any(any(seen) for seen in modes) and bool(modes),
        "partly": not any(all(seen) for seen in modes),
        "switches": [set_before, set_after],
        "batches_kept": all(map(_is_same_batch, given, batches)),
        "gradients": any(gradients),
        "forwards": len(modes),
        "left": {name: value == before.get(name, True) for name, value in after.items()},
        "weights": weights_of(model),
        "kept_gradients": torch.cat([_gradient_of(p) for p in model.parameters()]),
    }


@contextlib.contextmanager
def _matmul_precision(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _is_same_batch(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def _agree_in_the_last(model: Any, batches: list[dict[str, torch.Tensor]]) -> None:
    """Make the model right about the last batch: its accuracy then is far from that of the others."""
    model.eval()
    with torch.no_grad():
        logits = model(batches[-1]["input_ids"], batches[-1]["attention_mask"])
    batches[-1]["labels"].copy_(logits.argmax(-1))


def _modes_seen(model: Any) -> list[list[bool]]:
    """Of each forward pass to come the modes of all modules: an attribute may be set without its submodules'."""
    modes: list[list[bool]] = []
    model.register_forward_pre_hook(lambda model, _: modes.append([m.training for m in model.modules()]))
    return modes


def _state_of(model: Any) -> dict[str, Any]:
    """All that an evaluation could leave otherwise, but for weights and gradients; compared here, as it is large."""
    modules = list(model.modules())
    return {
        "training": [module.training for module in modules],
        "frozen": [p.requires_grad for p in model.parameters()],
        "hooks": sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules),
        "generators": (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()),
    }


def _gradient_of(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros(parameter.numel()) if parameter.grad is None else parameter.grad.flatten()


def _numbers_of(report: Any) -> dict[str, Any]:
    if not isinstance(report, dict):
        return {"type": type(report).__name__, "report": {}}
    return {"type": "dict", "report": numbers(report)}
