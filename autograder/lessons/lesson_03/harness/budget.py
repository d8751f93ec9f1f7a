"""Harness of 3.6: updates of 64 texts in as little time as a byte budget allows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import in_groups, learner, small_model, weights_of
from autograder.lessons.lesson_03.harness.memory import ON_CPU, random_batch
from autograder.lessons.lesson_03.harness.shared import (
    Frozen,
    Handed,
    leave,
    set_mode,
    told,
    watched_calls,
)
from course_lib.measuring import Counts, peak_bytes

TEXTS_PER_UPDATE = 64
LONGEST = 96
ROWS_OF_THE_LONGEST = 12  # that the budget holds
FAR = 2**20  # no id below fits into 16 bits
LENGTHS = (4 + (LONGEST - 4) * (np.arange(TEXTS_PER_UPDATE) / (TEXTS_PER_UPDATE - 1)) ** 3).astype(np.int64)


def budget_model(
    seed: int, *, is_in_groups: bool = False, is_sure: bool = False, is_steep: bool = False
) -> tuple[Any, torch.optim.Optimizer]:
    """A fresh classifier without dropout, and plain SGD: what it learns depends on its gradients alone.

    One that `is_sure` of a class has a loss of 20 where it is another; one that `is_steep` has gradients longer than
    anybody clips.
    """
    model = small_model(seed, d_model=32, max_length=LONGEST)
    with torch.no_grad():
        model.head.weight.mul_(3)  # gradients longer than 1: a loop that clips them shows
        model.head.bias[0] += 25.0 * is_sure
        model.final_norm.weight.mul_(100.0 if is_steep else 1.0)
    return model, torch.optim.SGD(in_groups(model) if is_in_groups else model.parameters(), lr=0.05)


def budget_samples(
    seed: int, lengths: np.ndarray, *, has_twins: bool = False
) -> list[tuple[np.ndarray, int]]:
    """Texts of these lengths; the id of padding comes inside of them, too.

    Where it `has_twins`, some stand in the list twice, as where a rare class is drawn more often.
    """
    rng = np.random.default_rng(seed)
    samples = [(rng.integers(0, 60, size=n), int(rng.integers(5))) for n in lengths]
    if has_twins:
        for at in range(1, len(samples), 2):
            if lengths[at] == lengths[at - 1]:
                samples[at] = samples[at - 1]
    return samples


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


def step_bytes(rows: int, width: int, bend: float = 0.0) -> int:
    """`bend` is the share that grows faster than a line: with the width's square, as where attention keeps its scores,
    and with that of the rows, as where each is compared with all others. Our model has 0.
    """
    fixed, per_position = step_line()
    rise = width / LONGEST + rows / 20
    return round(fixed + per_position * rows * width * (1 + bend * rise))


def budget_once(
    seed: int,
    lengths: list[int],
    global_batch_size: int,
    longest_rows: int,
    bend: float,
    left: float | None,
    is_frozen: bool,
    is_in_groups: bool,
    is_training: bool,
    is_counted: bool,
    is_sure: bool,
    is_steep: bool,
    is_again: bool,
    is_far: bool,
    spare_bytes: int,
) -> dict[str, Any]:
    """One pass over texts of these lengths, with all that can be counted, in a budget of so many of the longest."""
    budget = step_bytes(longest_rows, LONGEST, bend) + spare_bytes
    limits: dict[str, Any] = {
        "global_batch_size": global_batch_size,
        "budget": budget,
        "bend": bend,
        "left": left,
        "is_frozen": is_frozen,
        "has_twins": bend > 0,
        "is_in_groups": is_in_groups,
        "is_training": is_training,
        "is_sure": is_sure,
        "is_steep": is_steep,
        "is_again": is_again,
        "is_far": is_far,
    }
    answer, counts = _trained(seed, np.array(lengths), operators=is_counted, **limits)
    return answer | {"peak": counts.peak_live_bytes, "budget": budget, "line": [*step_line(), bend]}


def _nearer(_model: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Far ids as those that the model has; ids that are no longer far, as of a cast, as id 0."""

    def near(ids: torch.Tensor) -> torch.Tensor:
        return (ids - FAR).clamp(min=0)

    if inputs:
        return (near(inputs[0]), *inputs[1:]), named
    return inputs, named | {"input_ids": near(named["input_ids"])}


def budget_segment(seed: int, num_steps: int, operators: bool = False) -> dict[str, Any]:
    """`num_steps` updates of 64 secret texts each; every update has the same lengths in another order.

    With `operators` its bytes are counted, and it looks to a solution like one that is timed.
    """
    rng = np.random.default_rng(seed)
    lengths = np.concatenate([rng.permutation(LENGTHS) for _ in range(num_steps)])
    return _trained(seed, lengths, operators=operators)[0]


def _trained(
    seed: int,
    lengths: np.ndarray,
    *,
    operators: bool,
    global_batch_size: int = TEXTS_PER_UPDATE,
    budget: int = 0,
    bend: float = 0.0,
    left: float | None = 0.1,
    is_frozen: bool = False,
    has_twins: bool = False,
    is_in_groups: bool = False,
    is_training: bool = True,
    is_sure: bool = False,
    is_steep: bool = False,
    is_again: bool = False,
    is_far: bool = False,
) -> tuple[dict[str, Any], Counts]:
    """One pass of the learner's loop over texts of these lengths: what both comparisons need, and all counts.

    Where it `is_again`, the second one with this model and optimizer; in the first an update took fewer bytes. The ids
    that are `is_far` are those of a vocabulary of a million words, of which the model has the last.
    """
    samples = budget_samples(seed, lengths, has_twins=has_twins)
    model, optimizer = budget_model(seed, is_in_groups=is_in_groups, is_sure=is_sure, is_steep=is_steep)
    for group in optimizer.param_groups:  # where no bytes are counted: its state is of their number
        group |= {"momentum": 0.5 * (bend > 0), "weight_decay": 0.05 * is_frozen}
    if is_far:
        samples = [(ids + FAR, label) for ids, label in samples]
        model.register_forward_pre_hook(_nearer, with_kwargs=True)
    set_mode(model, is_training=is_training)
    leave(model, left, is_frozen=is_frozen)
    frozen, before = Frozen(model), weights_of(model)
    if is_again:
        learner(model, budget_samples(seed + 1, lengths), optimizer, global_batch_size, budget, step_bytes)
    listed, handed = list(samples), Handed(samples)
    spare: list[int] = []  # columns of a micro-batch beside its longest text

    def note(_block: Any, inputs: tuple[torch.Tensor, torch.Tensor]) -> None:
        spare.append(inputs[1].shape[-1] - int(inputs[1].sum(dim=-1).max()))

    model.blocks[0].register_forward_pre_hook(note)
    budget = budget or step_bytes(ROWS_OF_THE_LONGEST, LONGEST)
    with watched_calls(model) as calls, counted(model, operators=operators) as counts:
        bytes_of = functools.partial(step_bytes, bend=bend)
        report = learner(model, samples, optimizer, global_batch_size, budget, bytes_of)
    answer = told(report) | {
        "moved": weights_of(model) - before,
        "frozen": frozen.changed(),
        "steps": counts.num_optimizer_steps,
        "calls": calls,
        "is_changed": handed.is_changed(),
        "is_list_changed": [*map(id, samples)] != [*map(id, listed)],
        "is_too_wide": any(spare),
    }
    return answer, counts
