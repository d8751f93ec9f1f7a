"""Harness of 1.3 and 1.4: one epoch of training, and an evaluation."""

from __future__ import annotations

from typing import Any

import torch

from autograder.lessons.checking.harness_shared import (
    learner,
    numbers,
    small_batches,
    small_model,
    weights_of,
)
from course_lib.measuring import count_events


def train_epoch_once(seed: int, num_batches: int, max_norm: float, gradient_scale: float) -> dict[str, Any]:
    """One epoch of the learner's loop on a small model: final weights, report, and what was counted."""
    model = small_model(seed)
    # A head this large makes gradient norms well above and below `max_norm`, so that clipping shows.
    with torch.no_grad():
        model.head.weight.mul_(gradient_scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step) ** 0.7)
    # Gradients left over from an earlier pass: a loop that never clears them shows.
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.3)
    modes: list[bool] = []
    model.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    model.eval()  # as an evaluation before it may have left it
    batches = small_batches(seed, num_batches)
    with count_events(model) as counts:
        report = learner(model, iter(batches), optimizer, scheduler, max_norm)
    return {
        "weights": weights_of(model),
        "report": numbers(report),
        "syncs": counts.num_syncs,
        "unwatched": counts.num_unwatched,
        "optimizer_steps": counts.num_optimizer_steps,
        "scheduler_steps": scheduler.last_epoch,
        "train_mode": all(modes) and bool(modes),
    }


def evaluate_once(seed: int, num_batches: int, training: bool) -> dict[str, Any]:
    """The learner's evaluation of a small model with dropout, and the traces that it left."""
    model = small_model(seed, dropout=0.5)
    model.train(training)
    modes: list[bool] = []
    gradients: list[bool] = []
    model.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    model.register_forward_hook(lambda module, _, logits: gradients.append(logits.requires_grad))
    report = learner(model, iter(small_batches(seed, num_batches)))
    return {
        "report": numbers(report),
        "eval_mode": not any(modes) and bool(modes),
        "gradients": any(gradients),
        "forwards": len(modes),
        "left_training": model.training,
        "left_frozen": not all(p.requires_grad for p in model.parameters()),
        "weights": weights_of(model),
    }
