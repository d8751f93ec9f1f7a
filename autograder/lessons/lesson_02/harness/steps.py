"""Harness of 2.3: a step in bf16, seen from the optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, numbers, switches, weights_of
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
from course_lib.measuring import count_events


def bf16_steps(
    seed: int, rows: int, width: int, max_norms: list[float], others: list[tuple[int, int, float]]
) -> dict[str, Any]:
    """Steps of the learner's function on one model, with all that can be counted; then `others` on another model.

    Those are of (rows, width, max_norm) each, with texts of uneven lengths, and nothing of them is counted. Gradients
    are left over from before the first steps, and between the two an error of the model reaches the learner's function.
    In the last of them the model is sure of one class: whoever has another has a loss of 50 and more.
    """
    rng, set_before = np.random.default_rng(seed), switches()
    model = deep_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    recorder = Recorder(model, optimizer)
    leave_gradients(model, 0.1)
    try:
        with count_events(model) as counts:
            reports = [learner(model, full_batch(rng, rows, width), optimizer, norm) for norm in max_norms]
    except RuntimeError as error:
        if not uncountable(error):
            raise
        return {"uncountable": str(error)}
    other = deep_model(seed + 1, d_model=48, num_blocks=1)
    of_head = [[p for n, p in other.named_parameters() if n.startswith("head") == is_it] for is_it in (0, 1)]
    optimizer = torch.optim.SGD([{"params": some} for some in of_head], lr=0.02, momentum=0.9)
    stumbled = stumble(
        other, lambda: learner(other, ragged_batch(rng, 3, 8), optimizer, 1.0), dtype=torch.float16
    )
    later = Recorder(other, optimizer)
    leave_gradients(other, 0.1)
    for number, (*shape, norm) in enumerate(others):
        if number == len(others) - 1:
            with torch.no_grad():
                other.head.bias[0] += 60.0
        reports.append(learner(other, ragged_batch(rng, *shape), optimizer, norm))
    return {
        "uncountable": "",
        "stumbled": stumbled,
        "set_before": set_before,
        "set_after": switches(),
        "reports": [numbers(report) for report in reports],
        "kinds": [_kinds(report) for report in reports],
        "gradients": recorder.gradients + later.gradients,
        "weights": torch.cat([weights_of(model).float(), weights_of(other).float()]),
        "weight_dtypes": sorted(
            recorder.weight_dtypes | later.weight_dtypes | set(dtypes_of(model)) | set(dtypes_of(other))
        ),
        "autocast_in_backward": recorder.autocast_in_backward or later.autocast_in_backward,
        "autocast_at_step": recorder.autocast_at_step or later.autocast_at_step,
        "flops": counts.flops,
        "saved_bytes": counts.peak_saved_bytes,
        "unwatched": counts.num_unwatched,
    }


def step_beside_a_gpu(source: str, entry: str, seed: int) -> dict[str, Any]:
    """One step of a model on the CPU, on a machine that seems to have a GPU."""

    def share(step: Any) -> float:
        model = deep_model(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with count_events(model) as counts:
            step(model, full_batch(np.random.default_rng(seed), 4, 8), optimizer, 1.0)
        return counts.share_of_flops("bfloat16")

    return beside_a_gpu(source, entry, share)


def _kinds(report: dict[str, Any]) -> dict[str, str]:
    """What each value is, such as "0-d float32"."""
    return {
        str(key): f"{value.ndim}-d {str(value.dtype).removeprefix('torch.')}"
        if isinstance(value, torch.Tensor)
        else type(value).__name__
        for key, value in report.items()
    }
