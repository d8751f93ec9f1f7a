"""The largest micro-batch that fits in memory, found by running steps, and without driving the machine into swap."""

from __future__ import annotations

import copy
import gc
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from course_lib.base import UserError, on_device, require, reset_peak_memory
from course_lib.distributed import device_of, gather_objects, rehearsal, unwrap, wrap_ddp
from course_lib.measuring import peak_bytes
from course_lib.training.loop import train_step
from course_lib.training.losses import Loss
from course_lib.training.optim import make_optimizer
from course_lib.training.precision import FULL_PRECISION, Precision
from course_lib.training.reproducibility import kept_rng_state
from course_lib.training.window import Batch, MicroBatches, to_device

SAFETY = 0.5
"""Share of the free memory that a step may take: resident memory was seen up to 1.75 × the live bytes."""
CUDA_SAFETY = 0.9
"""There the allocator itself counts. The rest is for what it does not: its gaps, workspaces, NCCL's buffers."""
_NO_MEMORY = re.compile(
    "|".join(
        [
            r"MemoryError|bad_alloc|tried to allocate|(?:can't|cannot) allocate memory",  # CPUs
            r"could not create a primitive",  # what oneDNN says when the allocator refuses it
            r"out of memory|OutOfMemory",  # the allocators of CUDA and MPS, CUDA's driver, Metal's queue
            r"STATUS_ALLOC_FAILED",  # cuBLAS, cuDNN, cuSOLVER, cuSPARSE
            r"CUBLAS_STATUS_NOT_INITIALIZED",  # cuBLAS has no room for its handle
            r"Invalid buffer size|Insufficient Memory",  # Metal: one tensor, all of them
        ]
    ),
    re.IGNORECASE,
)


def largest_micro_batch_size(
    model: nn.Module,
    make_batch: Callable[[int], Batch],
    *,
    loss: Loss | None = None,
    optimizer: str = "adamw",
    precision: Precision = FULL_PRECISION,
    grad_accum_steps: int = 1,
    place: Callable[[nn.Module], nn.Module] | None = None,
    max_size: int = 512,
    memory_limit_bytes: int | None = None,
) -> tuple[int, str]:
    """Most samples per micro-batch for a training step of `model` with `optimizer`, and why.

    `make_batch(size)` gives a batch of `size` samples of the greatest length that can come; `loss` is as in
    `train_step`. `place(model)` brings a copy that is on the CPU to where the run will have it and wraps it, such as
    `shard` with `device=`; None: `wrap_ddp`, on the device of `model`. With `grad_accum_steps` above 1 gradients are
    there while the next micro-batch is computed.

    Of several processes each searches by itself (`rehearsal`), and all get the smallest answer. Steps run on copies
    of the model, which waits on the CPU meanwhile; the random state is put back and the device's peak of memory
    forgotten, so training afterwards is the same as without the search. Wrap or compile the model after it.
    Raises UserError, on all processes, when 1 does not fit on one.
    """
    home = next(model.parameters()).device
    place = place or (lambda copied: wrap_ddp(copied.to(home)))
    precision = replace(precision, scaler=None)  # nothing is learnt here, and the run's scale must not move

    def try_step(size: int) -> int:
        give_back_memory()
        trial = place(copy.deepcopy(model)).train()  # a new one: a step that failed leaves FSDP in its middle
        device, update = device_of(trial), make_optimizer(unwrap(trial), optimizer)
        batch = MicroBatches([to_device(make_batch(size), device)] * min(2, grad_accum_steps))

        def steps() -> None:
            for _ in range(2):  # the second meets the state that the optimizer made in the first
                train_step(trial, batch, update, loss=loss, precision=precision)

        return peak_bytes(steps, device)

    model.cpu()
    try:
        with rehearsal(), kept_rng_state():
            trial = place(copy.deepcopy(model))
            device = device_of(trial)
            limit = memory_limit_bytes or _limit(device)
            del trial
            with on_device(device):
                found = _found(try_step, max_size=max_size, memory_limit_bytes=limit)
    finally:
        give_back_memory()
        model.to(home)
    reset_peak_memory(device)
    every = gather_objects(found)
    size, reason = min(every)
    if not size:
        raise UserError(reason)
    return size, reason if len(every) == 1 else f"{reason}; the least of {len(every)} processes"


def _found(try_step: Callable[[int], int], **limits: int) -> tuple[int, str]:
    """With size 0 where none fits: the other processes must hear of it."""
    try:
        return find_executable_micro_batch_size(try_step, **limits)
    except UserError as error:
        return 0, str(error)


def _limit(device: torch.device) -> int:
    if device.type == "cuda":
        return int(CUDA_SAFETY * available_memory_bytes(device))
    num_sharing = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # processes share the memory of their machine
    return int(SAFETY * available_memory_bytes(device) / num_sharing)


def is_no_memory(error: BaseException) -> bool:
    """Whether an operator failed for want of memory, of whatever library."""
    return _NO_MEMORY.search(repr(error)) is not None


def give_back_memory() -> None:
    """To the device, what torch keeps unused."""
    gc.collect()  # a wrapped model is in a cycle
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


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
            if not is_no_memory(error):
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
    """Bytes that can still be taken: on CUDA the free ones and those that torch holds unused, else the least of what
    the machine, the container (cgroup) and the process's own limit (`ulimit -v`) leave."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    psutil = require("psutil")
    process, group = psutil.Process(), Path("/sys/fs/cgroup")
    found = [psutil.virtual_memory().available]
    if hasattr(process, "rlimit") and (limit := process.rlimit(psutil.RLIMIT_AS)[0]) >= 0:
        found.append(limit - process.memory_info().vms)
    with suppress(OSError, ValueError):  # no such file, or "max"
        limit = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        cached = re.findall(r"^file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
        found.append(limit + sum(map(int, cached)))
    return max(1, min(found))
