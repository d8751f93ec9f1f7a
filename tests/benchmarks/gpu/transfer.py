"""Batches on their way to the GPU: what a copy takes, and how much of it `fit` hides behind the step before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import fit, make_optimizer
from course_lib.base import reset_peak_memory
from course_lib.training import to_device
from tests.benchmarks.gpu.lines import Found, Line
from tests.benchmarks.gpu.setting import Setting
from tests.benchmarks.gpu.throughput import Clock
from tests.benchmarks.gpu.traces import interval, merged, on_device, overlap, profiled, total

COPY_BYTES = 256_000_000
MIN_HIDDEN, MAX_RATIO = 0.8, 1.1
WARM_UP = 5


def lines(setting: Setting) -> Iterator[Line]:
    yield Line(
        f"{COPY_BYTES / 1e6:.0f} MB to the GPU: pinned / pageable memory",
        "≥ 1.0 × as fast",
        partial(_bandwidth, setting),
        needs=setting.needs_cuda,
    )
    yield Line(
        "copies of batches in `fit` that run beside kernels",
        f"≥ {MIN_HIDDEN:.0%} of what can",
        partial(_hidden, setting),
        needs=setting.needs_cuda,
    )
    yield Line(
        "a step from batches on the CPU / from batches on the GPU",
        f"≤ {MAX_RATIO}",
        partial(_ratio, setting),
        needs=setting.needs_cuda,
    )


def _bandwidth(setting: Setting) -> Found:
    pageable = torch.ones(COPY_BYTES // 4)
    rates = []
    for source in (pageable, pageable.pin_memory()):
        target, seconds = torch.empty_like(source, device=setting.device), []
        for _ in range(6):
            torch.cuda.synchronize(setting.device)
            start = time.perf_counter()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(setting.device)
            seconds.append(time.perf_counter() - start)
        rates.append(COPY_BYTES / float(np.median(seconds[1:])))
    slow, fast = rates
    text = f"{fast / slow:.1f} × ({fast / 1e9:.1f} and {slow / 1e9:.1f} GB/s)"
    return Found(fast >= slow, text, {"pinned_bytes_per_sec": fast, "pageable_bytes_per_sec": slow})


def images(setting: Setting, num_batches: int) -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    """A convolutional network and its batches on the CPU: much to copy, and a step that takes about as long."""
    rows, pixels = (2, 32) if setting.is_quick else (64, 224)
    torch.manual_seed(0)
    batches = [(torch.randn(rows, 3, pixels, pixels), torch.randint(10, (rows,))) for _ in range(4)]
    model = nn.Sequential(
        *(nn.Conv2d(3, 64, 7, stride=2, padding=3), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU()),
        *(nn.Conv2d(128, 256, 3, stride=2, padding=1), nn.BatchNorm2d(256), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)),
    )
    return model.to(setting.device), [batches[number % 4] for number in range(num_batches)]


def step_time(setting: Setting, *, is_there: bool, num_steps: int = 40) -> tuple[float, int]:
    """Seconds of a step of `fit`, and the most bytes of the GPU that it took. `is_there`: whether batches are on the
    device beforehand."""
    model, batches = images(setting, WARM_UP + num_steps)
    if is_there:
        moved = [to_device(batch, setting.device) for batch in batches[:4]]
        batches = [moved[number % 4] for number in range(len(batches))]
    clock = Clock(WARM_UP, WARM_UP + num_steps)
    before = torch.cuda.memory_allocated(setting.device) if setting.is_cuda else 0
    reset_peak_memory(setting.device)
    fit(
        model,
        batches,
        make_optimizer(model),
        precision=setting.fastest_precision(),
        log_every_steps=len(batches),
        callbacks=[clock],
    )
    peak = torch.cuda.max_memory_allocated(setting.device) if setting.is_cuda else 0
    return clock.seconds / num_steps, peak - before


def _ratio(setting: Setting) -> Found:
    pairs = [[step_time(setting, is_there=there) for there in (False, True)] for _ in range(3)]
    (copied, most), (there, least) = np.median(pairs, axis=0).tolist()
    text = f"{copied / there:.2f} ({copied * 1e3:.2f} and {there * 1e3:.2f} ms)"
    text += f"; batches on their way take {(most - least) / 1e6:,.0f} MB"
    numbers = {"copied_step_time": copied, "there_step_time": there, "bytes_on_their_way": most - least}
    return Found(copied <= MAX_RATIO * there, text, numbers)


def _hidden(setting: Setting) -> Found:
    model, batches = images(setting, 20)
    optimizer, precision = make_optimizer(model), setting.fastest_precision()

    def steps() -> None:
        fit(model, batches, optimizer, precision=precision, log_every_steps=len(batches))

    steps()
    events = on_device(profiled(setting, steps))
    moved = [event for event in events if event.name.startswith("Memcpy HtoD")]
    copies = [interval(event) for event in moved]
    kernels = [interval(event) for event in events if not event.name.startswith(("Memcpy", "Memset"))]
    can = min(total(merged(copies)), total(merged(kernels)))
    share = overlap(copies, kernels) / can if can else 0.0
    names = sorted({event.name for event in moved})
    numbers = {"copies_us": total(merged(copies)), "kernels_us": total(merged(kernels)), "names": names}
    text = f"{share:.0%}, {', '.join(names)}"
    return Found(share >= MIN_HIDDEN, text, {"hidden_share": share, **numbers})
