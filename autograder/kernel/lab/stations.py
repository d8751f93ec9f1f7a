"""Where the time of a training step goes, station by station."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.training import make_optimizer, to_device

STATIONS = ("load", "batch", "forward", "backward", "step")


def time_stations(
    model: torch.nn.Module,
    samples: Any,
    batches: Sequence[Sequence[int]],
    collate: Callable[[list[Any]], dict[str, torch.Tensor]],
    *,
    num_rounds: int = 3,
) -> dict[str, float]:
    """Milliseconds a step at each station of a plain loop, the median of `num_rounds` passes after one to warm up.

    The stations: fetch the samples, make one batch of them and bring it to the device, forward with the loss,
    backward, the optimizer's step. On a GPU each ends with a wait, which a loop should not have: for a look only.

    Args:
        model: trained in place.
        samples: `samples[i]` gives one sample.
        batches: indices of the samples of each batch.
    """
    device, optimizer = next(model.parameters()).device, make_optimizer(model)
    rounds = []
    for _ in range(num_rounds + 1):
        seconds = dict.fromkeys(STATIONS, 0.0)
        clock = time.perf_counter()

        def lap(name: str, seconds: dict[str, float] = seconds) -> None:
            nonlocal clock
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            now = time.perf_counter()
            seconds[name], clock = seconds[name] + now - clock, now

        for indices in batches:
            chosen = [samples[i] for i in indices]
            lap("load")
            batch = to_device(collate(chosen), device)
            lap("batch")
            loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            lap("forward")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            lap("backward")
            optimizer.step()
            lap("step")
        rounds.append([1000 * seconds[name] / len(batches) for name in STATIONS])
    return dict(zip(STATIONS, np.median(rounds[1:], axis=0).tolist(), strict=True))
