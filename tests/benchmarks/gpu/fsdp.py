"""FSDP2 on a mesh of one process: all of its machinery, and losses that can be compared with those of a plain run."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed as dist
from torch import nn

from course_lib import fit, make_optimizer, resolve_precision
from course_lib.distributed import shard
from course_lib.distributed.fsdp import load_sharded, save_sharded
from tests.benchmarks.gpu.lines import Found, Line
from tests.benchmarks.gpu.setting import Setting, small_model, texts

NUM_STEPS = 10
CASES: dict[str, dict[str, Any]] = {
    "32-true": {},
    "32-true, offloaded": {"cpu_offload": True},
    "bf16-mixed": {"precision": "bf16-mixed"},
}
"""What is given to `shard`."""
TOLERANCES = {"32-true": 1e-4, "bf16-mixed": 0.02}
"""How far from those of a plain run the losses may be, relative to the first one."""


def lines(setting: Setting) -> Iterator[Line]:
    for case in CASES:
        tolerance = TOLERANCES[case.partition(",")[0]]
        yield Line(
            f"{NUM_STEPS} steps in {case}, against a plain run",
            f"losses within {tolerance:g} of the first one",
            partial(_as_plain, setting, CASES[case], tolerance),
        )
    for case in ("32-true", "32-true, offloaded"):
        yield Line(
            f"saved after {NUM_STEPS // 2} steps in {case}, loaded by a new model, {NUM_STEPS - NUM_STEPS // 2} more",
            f"losses of a plain run, within {TOLERANCES['32-true']:g} of the first one",
            partial(_resumed, setting, CASES[case]),
        )
    yield Line(
        "memory of the GPU between steps, offloaded / not",
        "≤ 0.25",
        partial(_memory, setting),
        needs=setting.needs_cuda,
    )


@contextmanager
def mesh_of_one(setting: Setting) -> Iterator[None]:
    """A group of this process alone, with the backends that `course_lib.distributed.setup` takes."""
    backend = "cpu:gloo,cuda:nccl" if setting.is_cuda else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _train(
    setting: Setting, model: nn.Module, optimizer: torch.optim.Optimizer, start: int, end: int, name: str
) -> list[float]:
    """Steps `start` to `end` in precision `name`; their losses."""
    batches = texts(NUM_STEPS, rows=8, width=32)[start:end]
    precision = resolve_precision(name, setting.device)
    history = fit(model, batches, optimizer, precision=precision, log_every_steps=1)
    return [record["loss"] for record in history if record["kind"] == "train"]


def _sharded(setting: Setting, options: dict[str, Any]) -> nn.Module:
    model = shard(small_model(setting.device), **options)
    parameters = list(model.parameters())
    assert all(hasattr(parameter, "full_tensor") for parameter in parameters), "nothing was split"
    if options.get("cpu_offload"):
        assert all(parameter.device.type == "cpu" for parameter in parameters), "parameters stay on the GPU"
    return model


def _plain(setting: Setting, name: str) -> list[float]:
    model = small_model(setting.device)
    return _train(setting, model, make_optimizer(model), 0, NUM_STEPS, name)


def _as_plain(setting: Setting, options: dict[str, Any], tolerance: float) -> Found:
    name = options.get("precision", "32-true")
    plain = _plain(setting, name)
    with mesh_of_one(setting):
        split = _sharded(setting, options)
        found = _train(setting, split, make_optimizer(split), 0, NUM_STEPS, name)
    return _compared(found, plain, tolerance)


def _resumed(setting: Setting, options: dict[str, Any]) -> Found:
    plain = _plain(setting, "32-true")
    with mesh_of_one(setting), tempfile.TemporaryDirectory() as folder:
        model = _sharded(setting, options)
        optimizer = make_optimizer(model)
        found = _train(setting, model, optimizer, 0, NUM_STEPS // 2, "32-true")
        save_sharded(Path(folder) / "parts", model, optimizer)
        model = _sharded(setting, options)
        optimizer = make_optimizer(model)
        load_sharded(Path(folder) / "parts", model, optimizer)
        found += _train(setting, model, optimizer, NUM_STEPS // 2, NUM_STEPS, "32-true")
    return _compared(found, plain, TOLERANCES["32-true"])


def _compared(found: list[float], plain: list[float], tolerance: float) -> Found:
    off = float(np.max(np.abs(np.subtract(found, plain)))) / plain[0]
    return Found(off <= tolerance, f"{off:.1e}", {"largest": off, "plain": plain, "sharded": found})


def _memory(setting: Setting) -> Found:
    taken = []
    for is_offloaded in (False, True):
        gc.collect()  # FSDP's modules and their hooks are in cycles
        before = torch.cuda.memory_allocated(setting.device)
        with mesh_of_one(setting):
            model = shard(
                small_model(setting.device, d_model=512, num_heads=8, num_layers=4), cpu_offload=is_offloaded
            )
            optimizer = make_optimizer(model)
            _train(setting, model, optimizer, 0, 2, "32-true")
            optimizer.zero_grad()
            taken.append(torch.cuda.memory_allocated(setting.device) - before)
            del model, optimizer
    text = f"{taken[1] / taken[0]:.2f} ({taken[1] / 1e6:.0f} of {taken[0] / 1e6:.0f} MB)"
    return Found(taken[1] <= 0.25 * taken[0], text, {"plain_bytes": taken[0], "offloaded_bytes": taken[1]})
