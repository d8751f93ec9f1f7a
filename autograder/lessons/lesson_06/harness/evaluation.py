"""Harness of 6.5: an evaluation over ranks whose shards are uneven."""

from __future__ import annotations

from typing import Any

import torch

from autograder.lessons.checking.harness_shared import learner, numbers, small_model
from autograder.lessons.lesson_06.harness.shared import loss_of, on_ranks, shares


def evaluated(seed: int, rows: list[list[int]]) -> dict[str, Any]:
    """The learner's evaluation on as many ranks as `rows` has; a rank may have no batch at all."""
    return on_ranks("evaluated_rank", len(rows), seed=seed, rows=rows)


def evaluated_rank(rank: int, world_size: int, seed: int, rows: list[list[int]]) -> dict[str, Any]:
    model = small_model(seed, dropout=0.5)
    model.train()
    modes: list[bool] = []
    model.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    report = learner(model, iter(shares(seed, rows)[rank]))
    return {"report": numbers(report), "num_training": sum(modes), "left_training": model.training}


def evaluated_alone(seed: int, rows: list[list[int]]) -> dict[str, Any]:
    """The same over all samples in one process, and what mistakes give."""
    model = small_model(seed, dropout=0.5).eval()
    losses, corrects, sizes = [], [], []
    with torch.no_grad():
        for batches in shares(seed, rows):
            losses.append(sum(float(loss_of(model, batch, "sum")) for batch in batches))
            right = [model(b["input_ids"], b["attention_mask"]).argmax(-1) == b["labels"] for b in batches]
            corrects.append(sum(int(found.sum()) for found in right))
            sizes.append(sum(len(batch["labels"]) for batch in batches))
    means = [loss / size for loss, size in zip(losses, sizes, strict=True) if size]
    return {
        "loss": sum(losses) / sum(sizes),
        "accuracy": sum(corrects) / sum(sizes),
        "num_samples": sum(sizes),
        "mean_of_rank_means": sum(means) / len(means),
        "own": means,
    }
