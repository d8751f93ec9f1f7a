"""Harness of 6.6: the same training on one process and on two, which stay between the segments."""

from __future__ import annotations

from operator import ne
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import (
    as_it_is,
    in_groups,
    learner,
    small,
    switches,
    weights_of,
)
from autograder.lessons.lesson_06.harness.shared import (
    PAD_ID,
    Crew,
    Parted,
    Watch,
    loss_without_large,
    make_loud,
    make_sick,
    padded_left,
    wider,
    with_no_word,
)
from course_lib.data import collate
from course_lib.models import ModelConfig, TextClassifier

GLOBAL_BATCH_SIZE = 48
_crews: dict[int, Crew] = {}


def parallel_segment(
    seed: int, num_steps: int, processes: int = 0, last_rows: int = 0, kind: str = ""
) -> dict[str, Any]:
    """`num_steps` updates on secret batches. The baseline names its one process; solutions get two.

    A `kind` of training is "loud", with losses of 50; "Adam", with another optimizer than SGD; or "sick": in the last
    batch the model has no loss for one row.
    """
    processes = processes or min(2, int(getattr(learner, "num_processes", 2)))
    if processes not in _crews:
        _crews[processes] = Crew(processes)
    try:
        ranks = _crews[processes].call(
            "parallel_rank", seed=seed, num_steps=num_steps, last_rows=last_rows, kind=kind
        )
    except Parted as error:
        _crews.pop(processes).close()
        return {"parted": str(error)}
    first = ranks[0]["weights"]
    return {
        "parted": "",
        "weights": first,
        "start": ranks[0]["start"],
        "largest_difference": max(float(np.abs(rank["weights"] - first).max()) for rank in ranks),
        "share_that_differs": _share_that_differs(ranks[0]["parameters"], ranks[-1]["parameters"]),
        "is_nan": [rank["is_nan"] for rank in ranks],
        "batches_changed": max(rank["batches_changed"] for rank in ranks),
        "switches": [rank["switches"] for rank in ranks],
        "has_evaluated": any(rank["has_evaluated"] for rank in ranks),
        "is_from_ids": all(rank["is_from_ids"] for rank in ranks),
        "num_words": sum(rank["num_words"] for rank in ranks),
    }


def parallel_rank(
    rank: int, world_size: int, seed: int, num_steps: int, last_rows: int, kind: str
) -> dict[str, Any]:
    model, batches, optimizer = _parallel_task(seed, num_steps, last_rows, kind)
    weights, start = list(model.parameters()), weights_of(model).clone()  # the tensors that must be trained
    given, before = [as_it_is(batch) for batch in batches], switches()
    watch = Watch(model)
    # As in two epochs, where no clock runs: whatever the first call leaves behind, the second one meets.
    parts = [batches[:1], batches[1:]] if kind and num_steps > 1 else [batches]
    after: dict[str, str] = {}
    with counted(model, operators=False, of=f"rank {rank}"):
        for part in parts:
            learner(model, part, optimizer)
            after = after or switches()
            torch.set_grad_enabled(
                True
            )  # the next call would say less of what this one has left switched off
    batches = [batch for part in parts for batch in part]
    return {
        "start": start,
        "is_nan": bool(model.head.bias.isnan().all()),
        "batches_changed": sum(map(ne, given, [*map(as_it_is, batches), *[None] * num_steps])),
        "switches": (before, after),
        **watch.report(),
        "weights": torch.cat([weight.detach().flatten() for weight in weights]),
        "parameters": [weight.detach() for weight in weights] if kind else [],
    }


def _share_that_differs(some: list[np.ndarray], others: list[np.ndarray]) -> float:
    """How many of the parameters, as a share, two ranks hold in other values; 1.0 where none is looked at."""
    different = [not np.array_equal(one, other) for one, other in zip(some, others, strict=True)]
    return float(np.mean(different)) if different else 1.0


def parallel_alone(seed: int, num_steps: int, last_rows: int, mistake: str, kind: str) -> torch.Tensor:
    """The weights of one process that makes a mistake which two would make."""
    model, batches, optimizer = _parallel_task(seed, num_steps, last_rows, kind)
    if mistake not in ("old gradients", "gradients from before"):
        optimizer.zero_grad()
    for batch in batches:
        rows = len(batch["labels"])
        weigh = {
            "mean of rank means": _rank_means(rows, [slice(0, None, 2), slice(1, None, 2)]),
            "mean of rank means of halves": _rank_means(
                rows, [slice(0, (rows + 1) // 2), slice((rows + 1) // 2, rows)]
            ),
            "mean of rank means of smaller halves": _rank_means(
                rows, [slice(0, rows // 2), slice(rows // 2, rows)]
            ),
            "sum of rank means": 2 * _rank_means(rows, [slice(0, None, 2), slice(1, None, 2)]),
            "divided twice": torch.full((rows,), 0.5 / rows),
            "multiplied twice": torch.full((rows,), 2.0 / rows),
            "a sum": torch.ones(rows),
            "a sum by ranks": torch.full((rows,), 0.5),
        }.get(mistake, torch.full((rows,), 1.0 / rows))
        logits = model(batch["input_ids"], batch["attention_mask"])
        losses = torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="none")
        if mistake == "large losses left out":
            loss_without_large(model, batch).backward()
        else:
            (losses * weigh).sum().backward()
        optimizer.step()
        if mistake != "old gradients":
            optimizer.zero_grad()
    return weights_of(model)


def _rank_means(rows: int, parts: list[slice]) -> torch.Tensor:
    """What each row's loss weighs where each rank takes a mean over its part."""
    weights = torch.zeros(rows)
    for part in parts:
        weights[part] = 1 / len(parts) / len(weights[part])
    return weights


def _parallel_task(
    seed: int, num_steps: int, last_rows: int, kind: str
) -> tuple[TextClassifier, list[dict[str, torch.Tensor]], torch.optim.Optimizer]:
    """Under the clock texts of much the same length: what is measured is the work of two, not how well it is dealt out.

    The model has gradients already, equal on all ranks, as from an earlier pass; the optimizer has two groups.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(small(seed))
    sizes = ModelConfig(
        vocab_size=400, num_classes=5, max_length=48, d_model=64, num_layers=2, num_heads=2, dropout=0.0
    )
    # Odd, unless somebody says another number.
    all_rows = [GLOBAL_BATCH_SIZE] * (num_steps - 1) + [last_rows or GLOBAL_BATCH_SIZE - 1]
    batches: list[dict[str, torch.Tensor]] = []
    for rows in all_rows:
        ids = rng.integers(3, 400, size=(rows, 48))
        ids[:, int(rng.integers(40))] = PAD_ID
        lengths, labels = rng.integers(3 if kind else 40, 47, size=rows), rng.integers(5, size=rows)
        batch = collate([(ids[i, : lengths[i]], int(labels[i])) for i in range(rows)])
        batch = wider(batch, 48 - batch["input_ids"].shape[1])
        batches.append(padded_left(batch) if len(batches) % 2 else batch)
    model = TextClassifier(sizes)
    if kind == "loud":
        make_loud(model)
    elif kind == "sick":
        make_sick(model)
        batches[-1] = with_no_word(batches[-1])
    settings: dict[str, Any] = {
        "lr": rng.uniform(0.04, 0.08),
        "momentum": rng.uniform(0.3, 0.9),
        "weight_decay": 0.01,
    }
    groups = in_groups(model)
    groups[1]["lr"] = 2 * settings["lr"]
    optimizer: torch.optim.Optimizer = torch.optim.SGD(groups, **settings)
    if kind == "Adam":  # with an epsilon that keeps rounding from being blown up
        groups[1]["lr"] = settings["lr"] / 5
        optimizer = torch.optim.Adam(groups, lr=settings["lr"] / 10, eps=0.01, weight_decay=0.01)
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight) / weight.numel() ** 0.5
    return model, batches, optimizer
