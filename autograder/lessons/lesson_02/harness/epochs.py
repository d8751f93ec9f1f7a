"""Harness of 2.4: an epoch in the precision that is asked for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import in_groups, learner, numbers, switches, weights_of
from autograder.lessons.lesson_02.harness.shared import (
    VOCABULARY,
    DeepClassifier,
    Recorder,
    beside_a_gpu,
    deep_model,
    dtypes_of,
    full_batch,
    leave_gradients,
    ragged_batch,
    stumble,
    uncountable,
)
from course_lib.measuring import count_events

ROWS, WIDTH, D_MODEL = 16, 64, 256  # of a timed step: wide enough for 16-bit units to show


def _uneven_batches(
    model: DeepClassifier, rng: np.random.Generator, rows: list[int]
) -> list[dict[str, torch.Tensor]]:
    """Likely labels, but for a short last batch of unlikely ones: a mean of batch means is 4 % too high or more."""
    batches = [ragged_batch(rng, number, 16) for number in rows]
    for batch in batches:
        with torch.no_grad():
            logits = model(batch["input_ids"], batch["attention_mask"])
        batch["labels"] = logits.argmin(-1) if batch is batches[-1] else logits.argmax(-1)
    return batches


def epochs(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Epochs of the learner's loop in one process, each on a small model of its own."""
    set_before = switches()
    try:
        found = [_epoch_once(**case) for case in cases]
        return {"uncountable": "", "epochs": found, "set_before": set_before, "set_after": switches()}
    except RuntimeError as error:
        if not uncountable(error):
            raise
        return {"uncountable": str(error)}


def _epoch_once(
    seed: int, rows: list[int], precision: str, max_norm: float | None, is_in_groups: bool, is_sure: bool
) -> dict[str, Any]:
    """One epoch: weights before and after, report, and what was counted. Without `max_norm`, that of the signature."""
    rng = np.random.default_rng(seed)
    model = deep_model(seed)
    with torch.no_grad():
        model.head.weight.mul_(3.0)  # else all labels are about as likely
        model.head.bias[0] += 25.0 * is_sure  # another label costs 20 and more
    optimizer = torch.optim.SGD(in_groups(model) if is_in_groups else model.parameters(), lr=0.05)
    recorder = Recorder(model, optimizer)
    batches = _uneven_batches(model, rng, rows)
    leave_gradients(model, 0.1)
    model.eval()  # as an evaluation before it may have left it
    modes: list[bool] = []
    model.register_forward_pre_hook(lambda *_: modes.append(all(part.training for part in model.modules())))
    before = weights_of(model)
    with count_events(model) as counts:
        given = (model, iter(batches), optimizer, precision)
        report = learner(*given) if max_norm is None else learner(*given, max_norm)
    return {
        "before": before,
        "weights": weights_of(model).float(),
        "report": numbers(report),
        "flops": counts.flops,
        "forwards": counts.num_forwards,
        "steps": counts.num_optimizer_steps,
        "syncs": counts.num_syncs,
        "unwatched": counts.num_unwatched,
        "weight_dtypes": sorted(recorder.weight_dtypes | set(dtypes_of(model))),
        "is_open_at_step": recorder.autocast_at_step,
        "train_mode": all(modes),
    }


def broken_epochs(seed: int, rows: list[int], at: int) -> dict[str, Any]:
    """An epoch in which batch `at` has a NaN in one of its words, and one in whose second forward the model raises.

    Who raises an error at the NaN has said it as loudly: then there is no report.
    """
    rng, model = np.random.default_rng(seed), deep_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [ragged_batch(rng, number, 8) for number in rows]
    for number, batch in enumerate(batches):
        batch["input_ids"] = batch["input_ids"].clamp(max=VOCABULARY - 2)
        if number == at:
            batch["input_ids"][0, 0] = VOCABULARY - 1
    stumbled = stumble(
        model,
        lambda: learner(model, iter(batches[:at] + batches[at + 1 :]), optimizer, "bf16-mixed"),
        at=2,
        dtype=torch.float16,
    )
    with torch.no_grad():
        model.embedding.weight[-1] = float("nan")
    try:
        report = learner(model, iter(batches), optimizer, "32-true")
    except (RuntimeError, ValueError, ArithmeticError):
        report = None
    return {"stumbled": stumbled, "report": numbers(report) if report is not None else None}


def long_epoch(seed: int, num_batches: int) -> int:
    """Syncs of an epoch of so many batches of one word, on a model that is hardly one."""
    rng, model = np.random.default_rng(seed), deep_model(seed, d_model=4, num_blocks=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [full_batch(rng, 1, 1) for _ in range(num_batches)]
    with count_events(model) as counts:
        learner(model, iter(batches), optimizer, "32-true")
    return counts.num_syncs


def epoch_beside_a_gpu(source: str, entry: str, seed: int) -> dict[str, Any]:
    """An epoch in bf16 of a model on the CPU, on a machine that seems to have a GPU."""

    def share(train: Any) -> float:
        rng, model = np.random.default_rng(seed), deep_model(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with count_events(model) as counts:
            train(model, iter([full_batch(rng, 4, 8) for _ in range(2)]), optimizer, "bf16-mixed")
        return counts.share_of_flops("bfloat16")

    return beside_a_gpu(source, entry, share)


@functools.cache
def _wide() -> tuple[DeepClassifier, dict[str, torch.Tensor]]:
    """The model of the timed steps, made once, and its first weights."""
    model = deep_model(0, d_model=D_MODEL)
    return model, {name: value.clone() for name, value in model.state_dict().items()}


def epoch_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """An epoch of that many batches in bf16; the baseline takes no notice and computes in fp32."""
    model, first = _wide()
    model.load_state_dict(first)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    batches = [full_batch(rng, ROWS, WIDTH) for _ in range(num_steps)]
    report = learner(model, iter(batches), optimizer, "bf16-mixed", 1.0)
    probe = full_batch(rng, 4, 8)
    with torch.no_grad():
        logits = model(probe["input_ids"], probe["attention_mask"])
    return {"report": numbers(report), "logits": logits}
