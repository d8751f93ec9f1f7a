"""Tokens a second and MFU of three sizes of model, as they are and compiled: text classification, padding masked.

MFU: arithmetic that the real tokens needed / the dense peak of the number format that is computed in, by data sheet.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from course_lib import Callback, TrainState, fit, make_optimizer, paired_speedup, train_step
from course_lib.measuring import synchronize
from course_lib.measuring.bench import SpeedupEstimate
from course_lib.runs.watching.cost import flops_per_token, peak_flops
from course_lib.training import compile_model, to_device
from tests.benchmarks.gpu.lines import Found, Line, NotHere
from tests.benchmarks.gpu.setting import Setting, small_model, texts

T = TypeVar("T")
MIN_MFU = 0.30
MIN_GAIN = {"small": 1.2, "medium": 1.0, "large": 1.0}
WARM_UP, NUM_BATCHES = 10, 4


@dataclass(frozen=True)
class Size:
    d_model: int
    num_layers: int
    rows: int
    """Of a micro-batch on a GPU; halved until it fits."""
    width: int
    num_steps: int

    @property
    def options(self) -> dict[str, int]:
        sizes = {"d_model": self.d_model, "num_layers": self.num_layers, "max_length": self.width}
        return sizes | {"num_heads": max(4, self.d_model // 64)}


SIZES = {
    "small": Size(d_model=64, num_layers=2, rows=64, width=64, num_steps=100),
    "medium": Size(d_model=512, num_layers=6, rows=64, width=256, num_steps=50),
    "large": Size(d_model=1024, num_layers=12, rows=64, width=512, num_steps=20),
}
ON_CPU = {"small": Size(d_model=64, num_layers=2, rows=16, width=64, num_steps=20)}
QUICK = {"small": Size(d_model=16, num_layers=1, rows=4, width=16, num_steps=3)}


def lines(setting: Setting) -> Iterator[Line]:
    sizes = QUICK if setting.is_quick else SIZES if setting.is_cuda else ON_CPU
    found: dict[str, float] = {}
    for name, asked in SIZES.items():
        size = sizes.get(name, asked)
        needs = "" if name in sizes else setting.needs_cuda or "left out by --quick"
        model = f"{name}: {size.num_layers} layers of {size.d_model}"
        yield Line(
            f"{model}, as it is",
            "a loss that is a number",
            partial(_eager, setting, size, found, name),
            needs=needs,
        )
        yield Line(
            f"{model}, compiled / as it is, whole steps",
            f"≥ {MIN_GAIN[name]:.1f} × as fast" if setting.is_cuda else "a ratio",
            partial(_compiled, setting, size, found, name),
            needs=needs or ("left out by --quick" if setting.is_quick else ""),
        )
    yield Line(
        "large: the faster of both",
        f"MFU ≥ {MIN_MFU:.0%}",
        partial(_best, setting, found),
        needs=setting.needs_cuda,
    )


class Clock(Callback):
    """Seconds from the end of one step to the end of another, what the device still does included."""

    def __init__(self, first: int, last: int) -> None:
        self.steps, self.readings = (first, last), list[float]()

    def on_step(self, state: TrainState) -> None:
        if state.step in self.steps:
            synchronize()
            self.readings.append(time.perf_counter())

    @property
    def seconds(self) -> float:
        return self.readings[1] - self.readings[0]


def _model(setting: Setting, size: Size) -> nn.Module:
    return small_model(setting.device, dropout=0.1, **size.options)


def measure(setting: Setting, size: Size, rows: int) -> dict[str, Any]:
    """Steps of `fit` from batches on the CPU: their time, tokens, loss and memory."""
    model = _model(setting, size)
    batches = texts(NUM_BATCHES, rows, size.width, shortest=0.9)
    num_steps = WARM_UP + size.num_steps
    clock = Clock(WARM_UP, num_steps)
    if setting.is_cuda:
        torch.cuda.reset_peak_memory_stats(setting.device)
    history = fit(
        model,
        [batches[step % NUM_BATCHES] for step in range(num_steps)],
        make_optimizer(model),
        precision=setting.fastest_precision(),
        log_every_steps=num_steps,
        callbacks=[clock],
    )
    tokens = sum(
        int(batches[step % NUM_BATCHES]["attention_mask"].sum()) for step in range(WARM_UP, num_steps)
    )
    return {
        "rows": rows,
        "width": size.width,
        "step_time": clock.seconds / size.num_steps,
        "tokens_per_sec": tokens / clock.seconds,
        "loss": history[0]["loss"],
        "peak_memory_bytes": torch.cuda.max_memory_allocated(setting.device) if setting.is_cuda else None,
    }


def as_many_as_fit(rows: int, run: Callable[[int], T]) -> tuple[int, T]:
    """What `run` gives with `rows`, or with half of them, and so on, until they fit into the memory of the GPU."""
    while True:
        try:
            return rows, run(rows)
        except torch.OutOfMemoryError:
            if rows == 1:
                raise
        rows //= 2  # outside of the handler: the error holds what the step that failed has made
        gc.collect()
        torch.cuda.empty_cache()


def _eager(setting: Setting, size: Size, best: dict[str, float], name: str) -> Found:
    rows, found = as_many_as_fit(size.rows, partial(measure, setting, size))
    found |= used(setting, size, rows, found["tokens_per_sec"])
    best[name] = max(best.get(name, 0.0), found["peak_share"])
    text = f"{found['tokens_per_sec']:,.0f} tokens/s, {found['step_time'] * 1e3:.2f} ms for {rows} × {size.width}, "
    text += f"{found['peak_share']:.1%} of the peak by {found['peak_source'].partition(':')[0]}"
    if found["peak_memory_bytes"]:
        text += f", {found['peak_memory_bytes'] / 1e9:.1f} GB"
    return Found(bool(np.isfinite(found["loss"])), text, found)


def used(setting: Setting, size: Size, rows: int, tokens_per_sec: float) -> dict[str, Any]:
    """How much of the device's peak so many tokens a second need."""
    lengths = texts(1, rows, size.width, shortest=0.9)[0]["attention_mask"].sum(dim=1).numpy()
    flops = flops_per_token(_model(setting, size), lengths)
    peak, source = peak_flops(setting.device, setting.fastest_precision().dtype)
    share = tokens_per_sec * flops / peak
    return {
        "peak_share": share,
        "flops_per_token": flops,
        "peak_flops_per_sec": peak,
        "peak_source": source.replace("measured:", "measurement:"),
    }


def _compiled(setting: Setting, size: Size, best: dict[str, float], name: str) -> Found:
    rows, (speedup, told) = as_many_as_fit(size.rows, partial(_raced, setting, size))
    batches = texts(NUM_BATCHES, rows, size.width, shortest=0.9)
    tokens = sum(int(batch["attention_mask"].sum()) for batch in batches)
    seconds = [second / block.num_steps for block in speedup.blocks for second in block.candidate_seconds]
    found = used(setting, size, rows, tokens / float(np.median(seconds)))
    best[name] = max(best.get(name, 0.0), found["peak_share"])
    text = f"{speedup.estimate:.2f} × ({speedup.low:.2f} to {speedup.high:.2f}), {rows} × {size.width}, "
    text += f"{found['peak_share']:.1%} of the peak; {told['compile_seconds']:.0f} s to compile"
    numbers = {**speedup.to_dict(), **found, "rows": rows, "report": told}
    return Found(not setting.is_cuda or speedup.estimate >= MIN_GAIN[name], text, numbers)


def _raced(setting: Setting, size: Size, rows: int) -> tuple[SpeedupEstimate, dict[str, Any]]:
    """Both take the same steps in turns, on batches that are on the device."""
    torch.compiler.reset()  # what was compiled for another size is not to be tried first
    precision = setting.fastest_precision()
    batches = texts(NUM_BATCHES, rows, size.width, shortest=0.9)
    batches = [to_device(batch, setting.device) for batch in batches]
    eager = _model(setting, size)
    model, told = compile_model(deepcopy(eager), batches[0], precision=precision, blocks=1, min_seconds=0.0)
    if not told["is_compiled"]:
        raise NotHere(told["reason"])
    steps = []
    for each in (eager, model):
        optimizer = make_optimizer(each)

        def step(model: nn.Module = each, optimizer: torch.optim.Optimizer = optimizer) -> None:
            for batch in batches:
                train_step(model, batch, optimizer, precision=precision)

        steps.append(step)
    return paired_speedup(*steps, blocks=4, min_steps=1), told


def _best(setting: Setting, found: dict[str, float]) -> Found:
    if "large" not in found:
        raise NotHere("needs one of the two lines before")
    _, source = peak_flops(setting.device, setting.fastest_precision().dtype)
    if not source.startswith("data sheet"):
        raise NotHere(f"needs a GPU whose data sheet is known; {found['large']:.1%} of a measured peak")
    return Found(found["large"] >= MIN_MFU, f"{found['large']:.1%}; {source}", {"mfu": found["large"]})
