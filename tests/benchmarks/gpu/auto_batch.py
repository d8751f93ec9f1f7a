"""The micro-batch that `auto` finds: whether it is the largest that fits, and whether it fits beside another program.

    python -m tests.benchmarks.gpu.auto_batch cuda:0 60000000000

is that program: it takes so many bytes of a GPU, says so, and ends when its standard input does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial

import torch
from torch import nn

from course_lib import make_optimizer, peak_bytes, train_step
from course_lib.training import (
    Precision,
    filling_micro_batch_size,
    largest_micro_batch_size,
    to_device,
)
from tests.benchmarks.gpu.lines import Found, Line
from tests.benchmarks.gpu.setting import Setting, TextBatch, small_model, texts

HELD_BYTES, MAX_HELD = 60e9, 0.75
"""What another program takes: 60 GB, or that share of what is free where it is less."""
MIN_FILLED = 0.5


def lines(setting: Setting) -> Iterator[Line]:
    limit = (4 if setting.is_quick else 64) * 1_000_000
    # The blocks of CUDA's allocator depend on what was freed before: the same step takes a few percent more or less.
    must = (
        "it fits within 10%, and a quarter more does not"
        if setting.is_cuda
        else "it fits, and one more does not"
    )
    yield Line(
        f"the largest micro-batch in {limit / 1e6:.0f} MB",
        must,
        partial(_largest, setting, limit),
    )
    yield Line(
        f"12 layers of 1,024 beside another program's {HELD_BYTES / 1e9:.0f} GB",
        f"two steps of it run, and take {MIN_FILLED:.0%} to 100% of what is free",
        partial(_beside, setting),
        needs=setting.needs_cuda,
    )


def _of_width(width: int) -> Callable[[int], TextBatch]:
    return lambda size: texts(1, size, width, shortest=1.0)[0]


def step_bytes(
    setting: Setting,
    model: nn.Module,
    make_batch: Callable[[int], TextBatch],
    size: int,
    precision: Precision,
) -> int:
    """The most that the first two steps of `model` take beside it."""
    optimizer, batch = make_optimizer(model), to_device(make_batch(size), setting.device)

    def steps() -> None:
        for _ in range(2):
            train_step(model, batch, optimizer, precision=precision)

    return peak_bytes(steps, setting.device)


def _largest(setting: Setting, limit: int) -> Found:
    model, make_batch = small_model(setting.device), _of_width(64)
    precision = setting.fastest_precision()
    size, reason = largest_micro_batch_size(model, make_batch, precision=precision, memory_limit_bytes=limit)
    larger, allowed = (size + size // 4 + 1, 1.1 * limit) if setting.is_cuda else (size + 1, limit)
    found, more = (
        step_bytes(setting, deepcopy(model), make_batch, number, precision) for number in (size, larger)
    )
    text = f"{size} samples take {found / 1e6:.1f} MB, {larger} take {more / 1e6:.1f} MB"
    numbers = {"size": size, "bytes": found, "larger": larger, "larger_bytes": more, "why": reason}
    return Found(found <= allowed and more > limit, text, numbers)


@contextmanager
def held(device: torch.device, num_bytes: int) -> Iterator[None]:
    """Another program has so much of the GPU meanwhile."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu.auto_batch", str(device), str(num_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None and program.stdout is not None
        try:
            said = program.stdout.readline()
            assert said == b"held\n", f"the other program said {said!r}"
            yield
        finally:
            program.stdin.close()


def _beside(setting: Setting) -> Found:
    device, precision = setting.device, setting.fastest_precision()
    free, _ = torch.cuda.mem_get_info(device)
    num_bytes = int(min(HELD_BYTES, MAX_HELD * free))
    with held(device, num_bytes):
        model = small_model(device, d_model=1024, num_layers=12, num_heads=16, max_length=512)
        make_batch = _of_width(512)
        size, reason = largest_micro_batch_size(model, make_batch, precision=precision)
        filling, enough = filling_micro_batch_size(model, make_batch, size, precision=precision)
        torch.cuda.empty_cache()
        left, _ = torch.cuda.mem_get_info(device)
        taken = step_bytes(setting, model, make_batch, size, precision)
    filled = taken / left
    text = f"{size} samples take {taken / 1e9:.1f} of {left / 1e9:.1f} GB beside {num_bytes / 1e9:.0f} ({filled:.0%})"
    numbers = {"size": size, "bytes": taken, "free_bytes": left, "held_bytes": num_bytes, "why": reason}
    numbers |= {"filling": filling, "why_enough": enough}
    text += f"; {filling} fill the GPU"
    return Found(MIN_FILLED <= filled <= 1.0, text, numbers)


def hold(device: str, num_bytes: int) -> None:
    taken = torch.empty(num_bytes, dtype=torch.uint8, device=device)
    if taken.is_cuda:
        torch.cuda.synchronize(taken.device)
    print("held", flush=True)
    sys.stdin.read()
    del taken


if __name__ == "__main__":
    hold(sys.argv[1], int(sys.argv[2]))
