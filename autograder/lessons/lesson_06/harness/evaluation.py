"""Harness of 6.5: an evaluation over ranks whose shards are uneven."""

from __future__ import annotations

from typing import Any

import torch

from autograder.lessons.checking.harness_shared import learner, numbers, small_model, switches
from autograder.lessons.lesson_06.harness.shared import loss_of, on_ranks, shares


def evaluated(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The learner's evaluations, one after the other in the same processes: a list for each rank."""
    return on_ranks("evaluated_rank", len(cases[0]["rows"]), cases=cases)


def evaluated_rank(rank: int, world_size: int, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_evaluated(rank, **case) for case in cases]


def _evaluated(
    rank: int, seed: int, rows: list[list[int]], training: bool, with_gradients: bool
) -> dict[str, Any]:
    """Of as many ranks as `rows` has; a rank may have no batch at all."""
    model = small_model(seed, dropout=0.5)
    batches = _shares_with_hits(model, seed, rows)[rank]
    model.train(training)
    found: dict[str, Any] = {"num_training": 0, "num_recorded": 0, "num_forwards": 0}

    def note(module: torch.nn.Module, _: Any, logits: Any) -> None:
        found["num_forwards"] += 1
        found["num_training"] += module.training
        found["num_recorded"] += isinstance(logits, torch.Tensor) and logits.requires_grad

    model.register_forward_hook(note)
    with torch.set_grad_enabled(with_gradients):
        before = switches()
        report = learner(model, iter(batches))
        found["left_with_gradients"] = torch.is_grad_enabled()
        found["switches"] = (before, switches())
    types = (
        {str(key): type(value).__name__ for key, value in report.items()} if isinstance(report, dict) else {}
    )
    found["left_training"], found["types"] = model.training, types
    return found | {"type": type(report).__name__, "report": numbers(report) if types else {}}


def _shares_with_hits(
    model: torch.nn.Module, seed: int, rows: list[list[int]]
) -> list[list[dict[str, torch.Tensor]]]:
    """Labels of which the model is right about a half, a third and a quarter on ranks 0, 1 and 2."""
    of_ranks = shares(seed, rows)
    model.eval()
    with torch.no_grad():
        for rank, batches in enumerate(of_ranks):
            for batch in batches:
                found = model(batch["input_ids"], batch["attention_mask"]).argmax(-1)
                hits = (torch.arange(len(found)) + rank) % (2 + rank) == 0
                batch["labels"] = torch.where(hits, found, (found + 1) % 5)
    return of_ranks


def evaluated_alone(seed: int, rows: list[list[int]]) -> dict[str, Any]:
    """The same over all samples in one process, and what mistakes give."""
    model = small_model(seed, dropout=0.5).eval()
    losses, corrects, sizes, batch_means = [], [], [], []
    with torch.no_grad():
        for batches in _shares_with_hits(model, seed, rows):
            losses.append(sum(float(loss_of(model, batch, "sum")) for batch in batches))
            batch_means += [float(loss_of(model, batch)) for batch in batches]
            right = [model(b["input_ids"], b["attention_mask"]).argmax(-1) == b["labels"] for b in batches]
            corrects.append(sum(int(found.sum()) for found in right))
            sizes.append(sum(len(batch["labels"]) for batch in batches))
    own = [
        {"loss": loss / size, "accuracy": correct / size, "num_samples": size}
        for loss, correct, size in zip(losses, corrects, sizes, strict=True)
        if size
    ]
    return {
        "right": {
            "loss": sum(losses) / sum(sizes),
            "accuracy": sum(corrects) / sum(sizes),
            "num_samples": sum(sizes),
        },
        "own": own,
        "mean_of_rank_means": {key: sum(one[key] for one in own) / len(own) for key in ("loss", "accuracy")},
        "mean_of_batch_means": {"loss": sum(batch_means) / len(batch_means)},
        "sums": {"loss": sum(losses), "accuracy": sum(corrects)},
    }
