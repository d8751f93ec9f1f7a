"""The largest micro-batch that fits in memory, found by running steps, and without driving the machine into swap."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from course_lib.base import UserError
from course_lib.measuring import peak_bytes
from course_lib.training.loop import train_step
from course_lib.training.losses import Loss
from course_lib.training.optim import make_optimizer
from course_lib.training.precision import FULL_PRECISION, Precision
from course_lib.training.window import Batch, to_device

SAFETY = 0.5
"""Share of the free memory that a step may take: resident memory was seen up to 1.75 × the live bytes."""
# The last is what oneDNN says when the allocator refuses it.
_NO_MEMORY = "MemoryError|you tried to allocate|bad_alloc|could not create a primitive"


def largest_micro_batch_size(
    model: nn.Module,
    make_batch: Callable[[int], Batch],
    *,
    loss: Loss | None = None,
    optimizer: str = "adamw",
    precision: Precision = FULL_PRECISION,
    max_size: int = 512,
    memory_limit_bytes: int | None = None,
) -> tuple[int, str]:
    """Most samples per micro-batch for a training step of `model` with `optimizer`, and why.

    `make_batch(size)` gives a batch of `size` samples of the greatest length that can come; `loss` is as in
    `train_step`. Steps run on a copy of the model (its weights are in memory twice meanwhile) and the random state
    is put back, so training afterwards is the same as without the search. Wrap or compile the model after it.
    Raises UserError when 1 does not fit.
    """
    device = next(model.parameters()).device
    trial = copy.deepcopy(model).train()
    precision = replace(precision, scaler=None)  # nothing is learnt here, and the run's scale must not move

    def try_step(size: int) -> int:
        trial.zero_grad(set_to_none=True)
        batch, update = to_device(make_batch(size), device), make_optimizer(trial, optimizer)

        def steps() -> None:
            for _ in range(2):  # the second meets the state that the optimizer made in the first
                train_step(trial, batch, update, loss=loss, precision=precision)

        return peak_bytes(steps, device)

    # Processes of one machine share its memory; each GPU has its own.
    num_sharing = 1 if device.type == "cuda" else int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    limit = memory_limit_bytes or int(SAFETY * available_memory_bytes(device) / num_sharing)
    with torch.random.fork_rng():
        return find_executable_micro_batch_size(try_step, max_size=max_size, memory_limit_bytes=limit)


def find_executable_micro_batch_size(
    try_step: Callable[[int], int], *, max_size: int, memory_limit_bytes: int
) -> tuple[int, str]:
    """The largest size up to `max_size` whose step stays within the limit, and why (the idea is accelerate's).

    `try_step(size)` runs a step and returns its peak of additional bytes, or fails for want of memory. Sizes are
    doubled from 1 until one does not fit, then bisected. Memory grows along a line with the size, so a size is
    run only if the line through the two largest sizes that fitted stays within the limit.
    Raises UserError when nothing fits.
    """
    peaks: dict[int, int] = {}
    good, bad, size, why = 0, max_size + 1, 1, "no larger one was asked for"
    while good + 1 < bad:
        needs = 0.0
        if len(peaks) >= 2:
            (small, low), (large, high) = list(peaks.items())[-2:]
            needs = high + (high - low) * (size - large) / (large - small)
        try:
            needs = needs if needs > memory_limit_bytes else try_step(size)
        except (MemoryError, RuntimeError) as error:
            if not re.search(_NO_MEMORY, repr(error)):
                raise
            needs = float("inf")
        if needs <= memory_limit_bytes:
            good, peaks[size] = size, int(needs)
        else:
            bad, why = size, f"{size} needs {needs / 1e6:,.1f} MB"
        size = min(2 * good, max_size) if bad > max_size else (good + bad) // 2
    limit = f"{memory_limit_bytes / 1e6:,.1f} MB"
    if not good:
        raise UserError(f"no micro-batch fits in {limit}: {why}; take a lower max_length or a smaller model")
    return good, f"auto: {good} samples took {peaks[good] / 1e6:,.1f} of {limit}; {why}"


def available_memory_bytes(device: torch.device) -> int:
    """Bytes that can still be taken: the free ones on CUDA, else the least of what the machine, the container
    (cgroup) and the process's own limit (`ulimit -v`) leave."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    import psutil

    process, group = psutil.Process(), Path("/sys/fs/cgroup")
    found = [psutil.virtual_memory().available]
    if hasattr(process, "rlimit") and (limit := process.rlimit(psutil.RLIMIT_AS)[0]) >= 0:
        found.append(limit - process.memory_info().vms)
    with suppress(OSError, ValueError):  # no such file, or "max"
        limit = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        cached = re.findall(r"^file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
        found.append(limit + sum(map(int, cached)))
    return max(1, min(found))
