"""An asynchronous save: what it takes of memory, how long the loop waits for it, and that it holds the right moment."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib import Checkpointer, TrainState, capture, load_checkpoint, make_optimizer, train_step
from course_lib.base import leaves, reset_peak_memory
from course_lib.measuring import synchronize
from course_lib.training import to_device, weights_sha256
from tests.benchmarks.gpu.lines import Found, Line, NotHere
from tests.benchmarks.gpu.setting import Setting, small_model, texts
from tests.benchmarks.peers_worker import memory_line

MAX_EXTRA = 1.05
"""Of the bytes saved: one copy of them, and nothing else."""


def lines(setting: Setting) -> Iterator[Line]:
    yield Line(
        "weights of an asynchronous save, while training goes on",
        "those of its step, bit for bit",
        partial(_moment, setting),
    )
    yield Line(
        "more memory during an asynchronous save / bytes saved",
        f"≤ {MAX_EXTRA}, all of it given back"
        if setting.is_cuda
        else "≤ 1.5 of this process, which imports, too",
        partial(_extra, setting),
    )
    yield Line(
        "the loop waits: asynchronous / synchronous save", f"≤ {_most(setting)}", partial(_waits, setting)
    )


class Trained:
    """A model after one step, so that its optimizer has averages, and what saves both."""

    def __init__(self, setting: Setting) -> None:
        sizes = {"d_model": 64, "num_layers": 1} if setting.is_quick else {"d_model": 512, "num_layers": 8}
        self.model: nn.Module = small_model(setting.device, num_heads=8, **sizes)
        self.optimizer = make_optimizer(self.model)
        self.state = TrainState()
        self.batch = to_device(texts(1, rows=4, width=16)[0], setting.device)
        self.step()

    def step(self) -> None:
        train_step(self.model, self.batch, self.optimizer)
        self.state.step += 1

    def checkpoint(self, _is_best: bool) -> dict[str, Any]:
        return capture(state=self.state, model=self.model, optimizer=self.optimizer)

    @property
    def num_bytes(self) -> int:
        saved = (leaf for leaf in leaves(self.checkpoint(False)) if isinstance(leaf, Tensor))
        return sum(tensor.nbytes for tensor in saved)

    @contextmanager
    def checkpointer(self, *, is_async: bool) -> Iterator[Checkpointer]:
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder) / "last.pt", Path(folder) / "best.pt"
            made = Checkpointer(*paths, self.checkpoint, every_steps=1, is_async=is_async)
            try:
                yield made
            finally:
                made.wait()


def _moment(setting: Setting) -> Found:
    trained = Trained(setting)
    right = weights_sha256(trained.model)
    with trained.checkpointer(is_async=True) as checkpointer:
        checkpointer.save_last(trained.state)
        for _ in range(5):
            trained.step()
        checkpointer.wait()
        saved = weights_sha256(load_checkpoint(checkpointer.last_path)["model"])
    has_moved = weights_sha256(trained.model) != right
    return Found(saved == right and has_moved, "those" if saved == right else "others")


def memory(setting: Setting) -> tuple[int, int]:
    """Bytes that this process has on the device, now and at most since `reset_peak_memory`. Raises NotHere on a CPU
    whose system does not tell."""
    if setting.is_cuda:
        device = setting.device
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    if sys.platform != "linux":
        raise NotHere("needs CUDA, or Linux")
    return memory_line("VmRSS"), memory_line("VmHWM")


def _extra(setting: Setting) -> Found:
    trained = Trained(setting)
    with trained.checkpointer(is_async=True) as checkpointer:
        reset_peak_memory(setting.device)
        before, _ = memory(setting)
        checkpointer.save_last(trained.state)
        checkpointer.wait()
        after, peak = memory(setting)
    saved = trained.num_bytes
    extra, kept = (peak - before) / saved, (after - before) / saved
    text = f"{extra:.2f} of {saved / 1e6:.0f} MB; {kept:.2f} afterwards"
    passed = extra <= (MAX_EXTRA if setting.is_cuda else 1.5) and (kept <= 0.01 or not setting.is_cuda)
    return Found(
        passed, text, {"saved_bytes": saved, "extra_bytes": peak - before, "kept_bytes": after - before}
    )


def _most(setting: Setting) -> float:
    """A copy in a GPU's memory is quick beside a file; one in main memory takes about as long as a cached file."""
    return 0.5 if setting.is_cuda else 1.0


def _waits(setting: Setting) -> Found:
    trained, seconds = Trained(setting), []
    for is_async in (True, False):
        with trained.checkpointer(is_async=is_async) as checkpointer:
            taken = []
            for _ in range(3):
                trained.step()
                synchronize()
                start = time.perf_counter()
                checkpointer.save_last(trained.state)
                synchronize()
                taken.append(time.perf_counter() - start)
                checkpointer.wait()
            seconds.append(min(taken))
    ratio = seconds[0] / seconds[1]
    text = f"{ratio:.2f} ({seconds[0] * 1e3:.0f} and {seconds[1] * 1e3:.0f} ms)"
    return Found(ratio <= _most(setting), text, {"async_seconds": seconds[0], "sync_seconds": seconds[1]})
