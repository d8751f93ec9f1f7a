"""Harness of 1.3 and 1.4: one epoch of training, and an evaluation."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import (
    learner,
    numbers,
    small_model,
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


def scaled_model(seed: int, of_head: float, of_hidden: float) -> Any:
    """A small model with gradient norms about 2 for (1, 1), well above for a larger head, and on both sides of 0.75
    for (1, 0.3): clipping shows where some are above the norm to clip at and some below."""
    model = small_model(seed)
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
) -> dict[str, Any]:
    """One epoch of the learner's loop on a small model: final weights, report, and what was counted."""
    model = scaled_model(seed, *scales)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
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


def evaluate_once(seed: int, rows: list[int], training: bool, records: bool) -> dict[str, Any]:
    """The learner's evaluation of a small model with dropout, and the traces that it left."""
    model = small_model(seed, dropout=0.5)
    model.final_norm.weight.requires_grad_(False)  # as in a model of which a part is frozen
    batches = drawn_batches(seed, rows)
    _agree_in_the_last(model, batches)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(
            parameter, 0.3
        )  # gradients that somebody gathers over several batches
    model.train(training)
    modes = _modes_seen(model)
    gradients: list[bool] = []
    model.register_forward_hook(lambda module, _, logits: gradients.append(logits.requires_grad))
    before = _state_of(model)
    with torch.set_grad_enabled(records):
        report = learner(model, iter(batches))
        after = _state_of(model) | {"grad_mode": records == torch.is_grad_enabled()}
    return {
        **_numbers_of(report),
        "eval_mode": not any(any(seen) for seen in modes) and bool(modes),
        "gradients": any(gradients),
        "forwards": len(modes),
        "left": {name: value == before.get(name, True) for name, value in after.items()},
        "weights": weights_of(model),
        "kept_gradients": torch.cat([_gradient_of(p) for p in model.parameters()]),
    }


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
