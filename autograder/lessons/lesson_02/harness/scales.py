"""Harness of 2.2: trainers whose scale is far from where it usually is, or whose options are those of the class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import small_batches
from autograder.lessons.lesson_02.harness.fp16_run import Fp16Run, file_of, loaded


def far_scales(seed: int, batch: dict[str, torch.Tensor], max_norm: float) -> dict[str, list[dict[str, Any]]]:
    """Steps at a small scale, with the usual `max_norm` and another."""
    return {
        "low": _low_steps(seed, batch, {}),
        "short": _low_steps(seed, batch, {"max_norm": max_norm}),
    }


def high_scales(seed: int) -> list[dict[str, Any]]:
    """Steps at a scale that no limit allows."""
    return _high_steps(seed, small_batches(seed, 1)[0])


def overflowing(seed: int) -> dict[str, Any]:
    """Steps whose scale is too large at first and doubles after each good one, so that fp16 itself overflows; then
    one more step, and the same of a trainer that goes on where the first had been.

    The weights stay as good as they are, and so does the largest scale that fits.
    """
    batch, options = small_batches(seed, 1)[0], {"growth_interval": 1, "max_norm": 1e-6}
    first, other = (Fp16Run(seed, options | {"init_scale": scale}) for scale in (3e6, 3e9))
    steps = [first.step(batch, None) for _ in range(24)]
    while len(steps) < 28 and steps[-1]["is_changed"]:  # the next one is good, at half the scale
        steps.append(first.step(batch, None))
    other.load(first.saved())
    return {"steps": steps, "next": [run.step(batch, None) for run in (first, other)]}


def _low_steps(seed: int, batch: dict[str, torch.Tensor], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Two bad steps and a good one, in which the model is sure of a class that few texts have."""
    low = Fp16Run(seed, {"init_scale": 1.5, "growth_interval": 1} | options)
    with torch.no_grad():
        low.model.head.bias[0] += 40.0
    return [low.step(batch, spike) for spike in ((0.5, "inf"), (0.5, "inf"), None)]


def _high_steps(seed: int, batch: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
    """Two good steps from the state of a trainer that has not stepped, so sure of the right class that nothing
    overflows."""
    first = Fp16Run(seed, {"init_scale": 3e12, "growth_interval": 1})
    high = Fp16Run(seed, {"growth_interval": 1})
    high.trainer.load_state_dict(loaded(np.frombuffer(file_of(first.trainer.state_dict()), np.uint8)))
    with torch.no_grad():
        high.model.head.bias[0] += 30.0
    right = batch | {"labels": torch.zeros_like(batch["labels"])}
    return [high.step(right, None) for _ in range(2)]
