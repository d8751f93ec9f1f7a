"""Harness of 6.2 and 6.4: gradients that are averaged over ranks, by hand and by DDP with accumulation."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from autograder.lessons.checking.harness_shared import learner, small_model, weights_of
from autograder.lessons.lesson_06.harness.shared import gradients_of, loss_of, on_ranks, shares
from course_lib.measuring import count_events


def hand_made(seed: int, rows: list[list[int]]) -> dict[str, Any]:
    """The learner's class on as many ranks as `rows` has; each begins with other weights."""
    return on_ranks("hand_made_rank", len(rows), seed=seed, rows=rows)


def hand_made_rank(rank: int, world_size: int, seed: int, rows: list[list[int]]) -> dict[str, Any]:
    model = _partly_frozen(seed + rank)
    replica = learner(model)
    start = weights_of(model).clone()
    seen = []
    for batch in shares(seed, rows)[rank]:
        model.zero_grad(set_to_none=True)
        loss = replica.loss_and_gradients(batch)
        seen.append({"loss": float(loss), "gradients": gradients_of(model).clone()})
    return {"start": start, "seen": seen}


def one_process(seed: int, rows: list[list[int]]) -> dict[str, Any]:
    """What all ranks must hold: the gradients of one process on the samples of all; and what mistakes give."""
    model = _partly_frozen(seed)
    found: dict[str, Any] = {"start": weights_of(model), "seen": []}
    for number in range(len(rows[0])):
        parts = [(batches[number], len(batches[number]["labels"])) for batches in shares(seed, rows)]
        num_samples = sum(size for _, size in parts)
        whole = [_gradients(model, batch, size / num_samples) for batch, size in parts]
        means = [_gradients(model, batch, 1 / len(parts)) for batch, _ in parts]
        own = [_gradients(model, batch, 1.0) for batch, _ in parts]
        found["seen"].append(
            {
                "loss": sum(loss for loss, _ in whole),
                "gradients": sum(gradients for _, gradients in whole),
                "mean_of_means": sum(gradients for _, gradients in means),
                "sum_of_means": sum(gradients for _, gradients in own),
                "own": [gradients for _, gradients in own],
            }
        )
    return found


def _gradients(model: Any, batch: dict[str, torch.Tensor], weight: float) -> tuple[float, torch.Tensor]:
    model.zero_grad(set_to_none=True)
    loss = weight * loss_of(model, batch)
    loss.backward()
    return float(loss), gradients_of(model).clone()


def _partly_frozen(seed: int) -> Any:
    model = small_model(seed)
    model.position_embedding.weight.requires_grad_(False)  # as in fine-tuning: it has no gradient on any rank
    return model


def accumulated(seed: int, rows: list[list[list[int]]]) -> dict[str, Any]:
    """The learner's steps on ranks whose model is wrapped in DDP: rows[step][rank][micro-batch]."""
    return on_ranks("accumulated_rank", len(rows[0]), seed=seed, rows=rows)


def accumulated_rank(rank: int, world_size: int, seed: int, rows: list[list[list[int]]]) -> dict[str, Any]:
    steps = [shares(seed + number, step)[rank] for number, step in enumerate(rows)]
    model = small_model(seed, num_layers=2)
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.01)
    for _ in range(
        2
    ):  # the first backward finds the order in which gradients come, and cuts the buckets anew
        with count_events(ddp, operators=False) as one:
            loss_of(ddp, steps[0][0]).backward()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.5
    )  # gradients are left over, as from an earlier pass
    found: dict[str, Any] = {"num_buckets": one.num_gradient_all_reduces}
    with count_events(ddp) as counts:
        for micro_batches in steps:
            learner(ddp, micro_batches, optimizer)
    found["gradient_all_reduces"] = counts.num_gradient_all_reduces
    found["all_reduces"] = max(counts.num_all_reduces, counts.num_gradient_all_reduces)
    found["optimizer_steps"], found["rows"] = counts.num_optimizer_steps, counts.num_rows
    found["weights"] = weights_of(model).clone()
    return found | _after_an_error(ddp, steps[0], optimizer)


def _after_an_error(ddp: Any, micro_batches: list[dict[str, torch.Tensor]], optimizer: Any) -> dict[str, Any]:
    """A micro-batch that cannot be computed, and what the next step does."""
    broken = dict(micro_batches[1], input_ids=torch.full_like(micro_batches[1]["input_ids"], 10**6))
    raised = False
    with contextlib.suppress(IndexError):
        raised = True
        learner(ddp, [micro_batches[0], broken, *micro_batches[2:]], optimizer)
        raised = False
    is_open = not ddp.require_backward_grad_sync
    with count_events(ddp) as counts:
        learner(ddp, micro_batches, optimizer)
    found = {"raised": raised, "left_open": is_open, "weights_after": weights_of(ddp.module)}
    return found | {"all_reduces_after": max(counts.num_all_reduces, counts.num_gradient_all_reduces)}


def accumulated_alone(seed: int, rows: list[list[list[int]]], mistake: str = "none") -> torch.Tensor:
    """The weights of one process that takes all micro-batches of all ranks as one batch."""
    model = small_model(seed, num_layers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for number, step in enumerate(rows):
        optimizer.zero_grad()
        parts = shares(seed + number, step)
        num_samples = sum(size for sizes in step for size in sizes)
        for batches in parts:
            for batch in batches:
                num_own, num_micro = sum(len(b["labels"]) for b in batches), len(batches)
                share = {
                    "none": len(batch["labels"]) / num_samples,
                    "not divided by the ranks": len(batch["labels"]) / num_samples / len(parts),
                    "mean of micro-batch means": 1 / num_micro / len(parts),
                    "mean of rank means": len(batch["labels"]) / num_own / len(parts),
                    "sum of micro-batch means": 1 / len(parts),
                }[mistake]
                (share * loss_of(model, batch)).backward()
        optimizer.step()
    return weights_of(model)
