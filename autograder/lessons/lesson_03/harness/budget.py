"""Harness of 3.6: updates of 64 texts in as little time as a byte budget allows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, numbers, small_model, weights_of
from autograder.lessons.lesson_03.harness.memory import ON_CPU, random_batch
from course_lib.measuring import Counts, count_events, peak_bytes

TEXTS_PER_UPDATE = 64
LONGEST = 96
ROWS_OF_THE_LONGEST = 12  # that the budget holds
LENGTHS = (4 + (LONGEST - 4) * (np.arange(TEXTS_PER_UPDATE) / (TEXTS_PER_UPDATE - 1)) ** 3).astype(np.int64)


def budget_model(seed: int) -> tuple[Any, torch.optim.Optimizer]:
    """A fresh classifier without dropout, and plain SGD: what it learns depends on its gradients alone."""
    model = small_model(seed, d_model=32, max_length=LONGEST)
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def budget_samples(seed: int, lengths: np.ndarray) -> list[tuple[np.ndarray, int]]:
    rng = np.random.default_rng(seed)
    return [(rng.integers(3, 60, size=n), int(rng.integers(5))) for n in lengths]


@functools.cache
def step_line() -> tuple[int, float]:
    """Bytes of an update that do not grow with its micro-batches, and bytes for each of their positions."""

    def peak(rows: int) -> int:
        model, optimizer = budget_model(0)
        batch = random_batch(0, rows, LONGEST)

        def update() -> None:
            optimizer.zero_grad(set_to_none=True)
            for _ in range(2):  # the second meets the gradients of the first
                logits = model(batch["input_ids"], batch["attention_mask"])
                (F.cross_entropy(logits, batch["labels"]) / 2).backward()
            optimizer.step()

        return peak_bytes(update, ON_CPU)

    few, many = peak(4), peak(16)
    per_position = (many - few) / (12 * LONGEST)
    return round(few - 4 * LONGEST * per_position), per_position


def step_bytes(rows: int, width: int) -> int:
    fixed, per_position = step_line()
    return round(fixed + per_position * rows * width)


def budget_once(seed: int, num_extra: int) -> dict[str, Any]:
    """One pass over an update of the longest texts, one of mixed ones and a rest, with all that can be counted."""
    mixed = np.random.default_rng(seed).permutation(LENGTHS)
    lengths = np.concatenate([np.full(TEXTS_PER_UPDATE, LONGEST), mixed, mixed[:num_extra]])
    answer, counts = _trained(seed, lengths)
    return answer | {
        "forwards": counts.num_forwards,
        "rows": counts.num_rows,
        "expected_rows": len(lengths),
        "expected_tokens": int(lengths.sum()),
        "peak": counts.peak_live_bytes,
        "budget": step_bytes(ROWS_OF_THE_LONGEST, LONGEST),
    }


def budget_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """`num_steps` updates of 64 secret texts each; every update has the same lengths in another order."""
    rng = np.random.default_rng(seed)
    lengths = np.concatenate([rng.permutation(LENGTHS) for _ in range(num_steps)])
    return _trained(seed, lengths, operators=False)[0]


def _trained(seed: int, lengths: np.ndarray, *, operators: bool = True) -> tuple[dict[str, Any], Counts]:
    """One pass of the learner's loop over texts of these lengths: what both comparisons need, and all counts."""
    samples = budget_samples(seed, lengths)
    model, optimizer = budget_model(seed)
    budget = step_bytes(ROWS_OF_THE_LONGEST, LONGEST)
    found: list[int] = []  # rows × width of each batch that the model is called with

    def note(_model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        found.append(tensors[0].numel())

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    with count_events(model, operators=operators) as counts:
        report = learner(model, samples, optimizer, TEXTS_PER_UPDATE, budget, step_bytes)
    hook.remove()
    answer = {
        "weights": weights_of(model),
        "report": numbers(report),
        "steps": counts.num_optimizer_steps,
        "tokens": counts.num_tokens,
        "positions": max(found, default=0),
    }
    return answer, counts
