"""What the hardware's own readings cost a run, and whether they are of this device."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from course_lib.runs.watching.cost import energy_joules, readings
from tests.benchmarks.gpu.lines import Found, Line, NotHere
from tests.benchmarks.gpu.setting import Setting
from tests.benchmarks.gpu.throughput import ON_CPU, QUICK, SIZES, measure

LOG_STEPS, MAX_SHARE = 50, 0.01
HELD_BYTES = 1_000_000_000


def lines(setting: Setting) -> Iterator[Line]:
    yield Line(
        f"readings and energy at a log, of the {LOG_STEPS} steps of the small model before it",
        f"≤ {MAX_SHARE:.0%}",
        partial(_cost, setting),
    )
    yield Line(
        f"`gpu_memory_bytes` when {HELD_BYTES / 1e9:.0f} GB more is taken",
        "1 GB more, within 10%",
        partial(_is_this_one, setting),
        needs=setting.needs_cuda,
    )


def _read(setting: Setting) -> dict[str, float]:
    found = readings(setting.device)
    if not found:
        raise NotHere("needs nvidia-ml-py, the extra `gpu`" if setting.is_cuda else "needs psutil")
    return found


def _cost(setting: Setting) -> Found:
    found, seconds = _read(setting), []
    for _ in range(20):
        start = time.perf_counter()
        readings(setting.device)
        energy_joules(setting.device)
        seconds.append(time.perf_counter() - start)
    size = QUICK["small"] if setting.is_quick else (SIZES if setting.is_cuda else ON_CPU)["small"]
    step = measure(setting, size, size.rows)["step_time"]
    share = float(np.median(seconds)) / (LOG_STEPS * step)
    text = f"{share:.2%} ({np.median(seconds) * 1e3:.2f} ms)"
    return Found(share <= MAX_SHARE, text, {"seconds": seconds, "step_time": step, "readings": found})


def _is_this_one(setting: Setting) -> Found:
    before = _read(setting)["gpu_memory_bytes"]
    taken = torch.empty(HELD_BYTES, dtype=torch.uint8, device=setting.device)
    torch.cuda.synchronize(setting.device)
    more = _read(setting)["gpu_memory_bytes"] - before
    del taken
    return Found(abs(more / HELD_BYTES - 1) <= 0.1, f"{more / 1e9:.2f} GB more", {"bytes": more})
