"""Whether a GPU learns what the CPU learns, goes on where it was stopped, and skips a step that overflows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import (
    Batches,
    BucketBatchSampler,
    TrainState,
    capture,
    fit,
    load_checkpoint,
    make_optimizer,
    make_schedule,
    resolve_precision,
    restore,
    seed_everything,
    train_step,
)
from course_lib.training import MicroBatches, to_device, weights_sha256
from course_lib.training.checkpoint import save_checkpoint
from tests.benchmarks.gpu.lines import Found, Line
from tests.benchmarks.gpu.setting import SEED, Setting, TextBatch, small_model, texts

NUM_STEPS = 20
CPU = torch.device("cpu")
TOLERANCES = {"sgd": 1e-4, "adamw": 1e-3}
"""Of the losses, relative. AdamW divides a gradient by its own size, which carries the rounding of the smallest ones
over to the weights."""
MIXED_TOLERANCE = 0.02
DTYPES = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


def lines(setting: Setting) -> Iterator[Line]:
    # cuBLAS reads this when it starts: before the first line.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for name, tolerance in TOLERANCES.items():
        yield Line(
            f"{NUM_STEPS} steps in fp32 with {name}, CPU against CUDA",
            f"losses within {tolerance:g}, relative",
            partial(_same_on_both, setting, name),
            needs=setting.needs_cuda,
        )
    for name in DTYPES:
        yield Line(
            f"{setting.steps(NUM_STEPS)} steps in {name}, against fp32",
            f"losses within {MIXED_TOLERANCE:g} of the first one",
            partial(_mixed, setting, name),
        )
    for name in ("32-true", *DTYPES):
        yield Line(
            f"resume in {name}, deterministic: two runs, and one that was stopped half-way",
            "all three end with the same weights, bit for bit",
            partial(_resumed, setting, name),
        )
    for own in (False, True):
        yield Line(
            f"uneven micro-batches of an update against one batch, {'loss=' if own else 'default loss'}",
            "gradients within 1e-5 of their norm",
            partial(_accumulated, setting, own),
        )
    yield Line(
        "a gradient that overflows in 16-mixed",
        "weights and averages stay, the scale halves until it fits, then it learns on",
        partial(_overflow, setting),
    )


def losses(device: torch.device, precision: str, optimizer: str, num_steps: int = NUM_STEPS) -> list[float]:
    """Of each step, of the same model on the same texts wherever it runs."""
    model, resolved = small_model(device), resolve_precision(precision, device)
    if (
        resolved.scaler is not None
    ):  # a lower one than its own, under which no gradient overflows: no step is skipped
        resolved = replace(resolved, scaler=torch.amp.GradScaler(device.type, init_scale=2.0**8))
    history = fit(
        model,
        texts(num_steps, rows=8, width=32),
        make_optimizer(model, optimizer, learning_rate=1e-3 if optimizer == "adamw" else 1e-2),
        precision=resolved,
        log_every_steps=1,
    )
    return [record["loss"] for record in history if record["kind"] == "train"]


def _same_on_both(setting: Setting, optimizer: str) -> Found:
    was = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # TF32 would be another arithmetic
    try:
        here, there = (losses(device, "32-true", optimizer) for device in (CPU, setting.device))
    finally:
        torch.set_float32_matmul_precision(was)
    off = float(np.max(np.abs(np.subtract(there, here)) / np.abs(here)))
    return Found(
        off <= TOLERANCES[optimizer], f"{off:.1e}", {"largest_relative": off, "cpu": here, "cuda": there}
    )


def _mixed(setting: Setting, name: str) -> Found:
    full, mixed = (
        losses(setting.device, precision, "adamw", setting.steps(NUM_STEPS))
        for precision in ("32-true", name)
    )
    off = float(np.max(np.abs(np.subtract(mixed, full)))) / full[0]
    return Found(off <= MIXED_TOLERANCE, f"{off:.1e}", {"largest": off, "full": full, "mixed": mixed})


class Samples(list[tuple[np.ndarray, int]]):
    """Texts one by one, for a sampler."""

    def __init__(self, num_samples: int) -> None:
        batch = texts(1, num_samples, 32, shortest=0.1)[0]
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        rows = zip(batch["input_ids"], lengths, batch["labels"].tolist(), strict=True)
        super().__init__((ids[:length].numpy(), label) for ids, length, label in rows)
        self.lengths = np.array(lengths)


def _run(
    setting: Setting, precision: str, path: Path, *, from_step: int, to_step: int
) -> tuple[str, list[float]]:
    """Train on from the checkpoint, if `from_step` is not 0, and save one; the hash of the weights and the losses."""
    # A run that goes on has another seed: all that it draws must come from the checkpoint.
    seed_everything(SEED + from_step, deterministic=True)
    device, samples = setting.device, Samples(60)
    model = small_model(device, dropout=0.1)
    seed_everything(SEED + from_step, deterministic=True)
    found, optimizer = resolve_precision(precision, device), make_optimizer(model, learning_rate=1e-3)
    parts: dict[str, Any] = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": make_schedule(optimizer, "cosine", max_steps=NUM_STEPS, warmup_steps=4),
        "sampler": BucketBatchSampler(samples.lengths, 8, seed=SEED),
    }
    if found.scaler is not None:
        parts["scaler"] = found.scaler
    state = restore(load_checkpoint(path), **parts) if from_step else TrainState()
    batches = Batches(samples, parts["sampler"], width_multiple=found.width_multiple)
    history = fit(
        model,
        batches,
        optimizer,
        scheduler=parts["scheduler"],
        validation_batches=texts(2, rows=8, width=32),
        validate_every_steps=3,
        max_epochs=100,
        max_steps=to_step,
        precision=found,
        log_every_steps=5,
        state=state,
    )
    saved = capture(state=state, **parts)
    saved["sampler"] |= {"position": state.step_in_epoch}  # what was trained on, were more handed out
    save_checkpoint(path, saved)
    return weights_sha256(model), [record["loss"] for record in history if record["kind"] == "train"]


def _resumed(setting: Setting, precision: str) -> Found:
    was = torch.are_deterministic_algorithms_enabled()
    end = setting.steps(NUM_STEPS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "last.pt"
        try:
            whole, again = (_run(setting, precision, path, from_step=0, to_step=end) for _ in range(2))
            _run(setting, precision, path, from_step=0, to_step=end // 2)
            stopped = _run(setting, precision, path, from_step=end // 2, to_step=end)
        finally:
            torch.use_deterministic_algorithms(was)
    repeats, resumes = again[0] == whole[0], stopped[0] == whole[0]
    text = f"again: {_same(repeats)}; stopped: {_same(resumes)}"
    numbers = {"whole": whole, "again": again, "stopped": stopped}
    return Found(repeats and resumes, text, numbers)


def _same(is_same: bool) -> str:
    return "the same" if is_same else "others"


def mean_over_rows(model: nn.Module, batch: TextBatch) -> tuple[Tensor, int]:
    """A loss as somebody would give it to `fit`."""
    logits = model(batch["input_ids"], batch["attention_mask"])
    return nn.functional.cross_entropy(logits, batch["labels"], reduction="sum"), len(batch["labels"])


def _accumulated(setting: Setting, own: bool) -> Found:
    whole = to_device(texts(1, rows=12, width=32)[0], setting.device)
    pieces = [
        {name: part[start:end] for name, part in whole.items()} for start, end in ((0, 5), (5, 9), (9, 12))
    ]
    gradients = []
    for batch in (MicroBatches([whole]), MicroBatches(pieces)):
        model = small_model(setting.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        train_step(model, batch, optimizer, loss=mean_over_rows if own else None, max_norm=float("inf"))
        found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        gradients.append(torch.cat([gradient.reshape(-1) for gradient in found]))
    off = float((gradients[1] - gradients[0]).norm() / gradients[0].norm())
    return Found(off <= 1e-5, f"{off:.1e}", {"relative": off})


def _overflow(setting: Setting) -> Found:
    model, precision = small_model(setting.device), resolve_precision("16-mixed", setting.device)
    assert precision.scaler is not None
    optimizer = make_optimizer(model)
    batches = texts(setting.steps(40), rows=8, width=32)
    first, *others = [to_device(batch, setting.device) for batch in batches]
    train_step(model, first, optimizer, precision=precision)  # now there are averages, too
    raised = 18 if setting.is_quick else 40
    precision.scaler.update(2.0**raised)  # no fp16 gradient fits under 2^40, and not all do under 2^18
    before = _weights_and_averages(model, optimizer)
    train_step(model, others[0], optimizer, precision=precision)
    stays = all(map(torch.equal, before, _weights_and_averages(model, optimizer)))
    halves = precision.scaler.get_scale() == 2.0 ** (raised - 1)
    history = fit(model, others, optimizer, precision=precision, log_every_steps=len(others))
    record = next(record for record in history if record["kind"] == "train")
    learns = not all(map(torch.equal, before, _weights_and_averages(model, optimizer)))
    skipped, is_finite = int(record["num_nonfinite"]), bool(np.isfinite(record["loss"]))
    text = (
        f"stays: {stays}, halves: {halves}, {skipped} of {len(others)} steps skipped, "
        f"then the scale is 2^{np.log2(precision.scaler.get_scale()):.0f}, learns: {learns}"
    )
    passed = stays and halves and 0 < skipped < len(others) and learns and is_finite
    return Found(passed, text, {"num_nonfinite": skipped, "scale": precision.scaler.get_scale()})


def _weights_and_averages(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    states = [value for state in optimizer.state.values() for value in state.values()]
    kept = [*model.state_dict().values(), *(value for value in states if isinstance(value, Tensor))]
    return [tensor.detach().clone() for tensor in kept]
