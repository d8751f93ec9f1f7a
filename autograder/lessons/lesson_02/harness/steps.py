"""Harness of 2.3: a step in bf16, seen from the optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import learner, numbers, switches, weights_of
from autograder.lessons.lesson_02.harness.handed import (
    Watched,
    kinds_of,
    no_such_label,
    rounded_parts,
)
from autograder.lessons.lesson_02.harness.shared import (
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


class _Steps:
    """Steps of the learner's function on one model, and what each of them did."""

    def __init__(self, model: Any, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer, self.found = model, optimizer, list[dict[str, Any]]()
        self.recorder, self.handed = Recorder(model, optimizer), Watched(model, optimizer)
        self.reports: list[tuple[Any, str]] = []
        leave_gradients(model, 0.1)

    def changed_reports(self) -> list[str]:
        now = [(before, repr(numbers(report))) for report, before in self.reports]
        return [f"{after}, where it was {before}" for before, after in now if before != after]

    def step(self, batch: dict[str, torch.Tensor], max_norm: float) -> None:
        before = weights_of(self.model)
        report = self.handed.call(learner, self.model, batch, self.optimizer, max_norm, batches=[batch])
        self.reports.append((report, repr(numbers(report))))
        self.found.append(
            {
                "report": numbers(report),
                "kinds": kinds_of(report),
                "moved": weights_of(self.model).float() - before.float(),
                "is_evaluated": self.handed.is_evaluated,
                "rounded_weights": rounded_parts(self.recorder.parameters),
            }
        )


def bf16_steps(
    seed: int, rows: int, width: int, max_norms: list[float], others: list[tuple[int, int, float]]
) -> dict[str, Any]:
    """Steps of the learner's function on one model, with all that can be counted; then `others` on another model.

    Those are of (rows, width, max_norm) each, with texts of uneven lengths, and nothing of them is counted. Gradients
    are left over from before the first steps, and between the two an error of the model reaches the learner's function.
    In the last of them the model is sure of one class: whoever has another has a loss of 50 and more. At the end a
    weight is NaN.
    """
    rng, set_before = np.random.default_rng(seed), switches()
    model = deep_model(seed)
    first = _Steps(model, torch.optim.SGD(model.parameters(), lr=0.05))
    first.handed.tell_as("the first")
    try:
        with counted(model) as counts:
            for norm in max_norms:
                first.step(full_batch(rng, rows, width), norm)
    except RuntimeError as error:
        if not uncountable(error):
            raise
        return {"uncountable": str(error)}
    other = deep_model(seed + 1, d_model=48, num_blocks=1)
    of_head = [[p for n, p in other.named_parameters() if n.startswith("head") == is_it] for is_it in (0, 1)]
    optimizer = torch.optim.SGD([{"params": some} for some in of_head], lr=0.02, momentum=0.9)
    stumbled = stumble(other, lambda: learner(other, ragged_batch(rng, 3, 8), optimizer, 1.0))
    later = _Steps(other, optimizer)
    later.handed.tell_as("the later")
    for number, (*shape, norm) in enumerate(others):
        if number == len(others) - 1:
            with torch.no_grad():
                other.head.bias[0] += 60.0
        later.step(ragged_batch(rng, *shape), norm)
    recorders = first.recorder, later.recorder
    return {
        "uncountable": "",
        "stumbled": stumbled,
        "set_before": set_before,
        "set_after": switches(),
        "changed": sorted(first.handed.changed | later.handed.changed),
        "changed_reports": first.changed_reports() + later.changed_reports(),
        "steps": first.found + later.found,
        "gradients": [gradients for recorder in recorders for gradients in recorder.gradients],
        "rounded": [names for recorder in recorders for names in recorder.rounded],
        "weights": torch.cat([weights_of(model).float(), weights_of(other).float()]),
        "weight_dtypes": sorted(
            first.recorder.weight_dtypes
            | later.recorder.weight_dtypes
            | set(dtypes_of(model))
            | set(dtypes_of(other))
        ),
        "autocast_in_backward": any(recorder.autocast_in_backward for recorder in recorders),
        "autocast_at_step": any(recorder.autocast_at_step for recorder in recorders),
        "flops": counts.flops,
        "saved_bytes": counts.peak_saved_bytes,
        "unwatched": counts.num_unwatched,
    }


def odd_steps(seed: int) -> dict[str, Any]:
    """What a model computes in after a step, an error of the loss, and the loss of a step whose model has a NaN among
    its weights."""
    model, batch = deep_model(seed, d_model=16, num_blocks=1), full_batch(np.random.default_rng(seed), 3, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner(model, batch, optimizer, 1.0)
    left = _type_of(model, batch)
    no_label = no_such_label(batch, lambda broken: learner(model, broken, optimizer, 1.0))
    with torch.no_grad():
        model.head.bias[0] = float("nan")
    try:
        loss = numbers(learner(model, batch, optimizer, 1.0)).get("loss", 0.0)
    except (RuntimeError, ValueError, ArithmeticError):  # it says it as loudly
        loss = float("nan")
    return {
        "left": left,
        "no_label": no_label,
        "loss_of_nan": loss,
    }


def _type_of(model: Any, batch: dict[str, torch.Tensor]) -> str:
    """The type in which a model computes where no autocast is open."""
    with torch.no_grad():
        return str(model(batch["input_ids"], batch["attention_mask"]).dtype).removeprefix("torch.")


def step_beside_a_gpu(source: str, entry: str, seed: int) -> dict[str, Any]:
    """One step of a model on the CPU, on a machine that seems to have a GPU."""

    def share(step: Any) -> float:
        model = deep_model(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with counted(model) as counts:
            step(model, full_batch(np.random.default_rng(seed), 4, 8), optimizer, 1.0)
        return counts.share_of_flops("bfloat16")

    return beside_a_gpu(source, entry, share)
