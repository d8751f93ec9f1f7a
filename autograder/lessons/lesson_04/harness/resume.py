"""Harness of 4.1: a small run that reads every kind of state, saved in one process and resumed in another."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, small_model, weights_of
from course_lib.data import collate

FP16_MAX = 65504.0


class _Order:
    """Batches of indices in an order that is new each epoch, and the place in it."""

    def __init__(self, size: int, rows: int, seed: int) -> None:
        self.size, self.rows, self.seed = size, rows, seed
        self.epoch = self.position = 0

    def next_batch(self) -> list[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.size)
        start = self.position * self.rows
        self.position += 1
        if self.position * self.rows >= self.size:
            self.epoch, self.position = self.epoch + 1, 0
        return [int(index) for index in order[start : start + self.rows]]

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.position = int(state["epoch"]), int(state["position"])


class _SmallRun:
    """A run whose next step depends on weights, moments, schedule, scale, place, and three random generators."""

    def __init__(self, data_seed: int, own_seed: int) -> None:
        rng = np.random.default_rng(data_seed)
        self.samples = [
            (rng.integers(3, 60, size=rng.integers(4, 20)), int(rng.integers(5))) for _ in range(44)
        ]
        self.model = small_model(own_seed, dropout=0.2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: (1 + step) ** -0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=3)
        self.sampler = _Order(len(self.samples), 8, data_seed % 1000)
        random.seed(own_seed)
        np.random.seed(own_seed % 2**32)
        torch.manual_seed(own_seed)

    def parts(self) -> dict[str, Any]:
        names = ("model", "optimizer", "scheduler", "scaler", "sampler")
        return {name: getattr(self, name) for name in names}

    def train(self, num_steps: int) -> list[float]:
        return [self._step() for _ in range(num_steps)]

    def _step(self) -> float:
        rows = []
        for index in self.sampler.next_batch():
            ids, label = self.samples[index]
            ids = np.where(np.random.random(len(ids)) < 0.15, 2, ids)  # words masked, by NumPy's generator
            rows.append((ids[::-1].copy() if random.random() < 0.5 else ids, label))  # by Python's
        batch = collate(rows)
        loss = F.cross_entropy(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        for parameter in self.model.parameters():  # what fp16 could not hold, as a GPU would see it
            if parameter.grad is not None:
                parameter.grad[parameter.grad.abs() > FP16_MAX] = float("inf")
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        return float(loss.detach())

    def facts(self) -> dict[str, Any]:
        """Where the run is, in numbers that can be compared to the bit. Draws from no generator."""
        moments = [
            self.optimizer.state[p][name].detach().flatten()
            if self.optimizer.state.get(p)
            else torch.zeros(1)
            for p in self.model.parameters()
            for name in ("exp_avg", "exp_avg_sq")
        ]
        return {
            "weights": weights_of(self.model),
            "moments": torch.cat(moments),
            "schedule": [float(self.scheduler.last_epoch), float(self.optimizer.param_groups[0]["lr"])],
            "scale": [float(self.scaler.get_scale()), float(self.scaler._get_growth_tracker())],
            "place": [self.sampler.epoch, self.sampler.position],
            "training": self.model.training,
        }


def _draws() -> dict[str, float]:
    """The next number of each generator."""
    drawn = float(torch.rand((), dtype=torch.float64))
    return {"python": random.random(), "numpy": float(np.random.random()), "torch": drawn}


def straight(seed: int, num_steps: int) -> dict[str, Any]:
    """The run without any checkpoint, and where it is after so many steps."""
    run = _SmallRun(seed, seed)
    losses = run.train(num_steps)
    return {"losses": losses, **run.facts(), "draws": _draws()}


def save_and_go_on(seed: int, num_before: int, num_after: int) -> dict[str, Any]:
    """The same run, saved on the way by the learner's class: the file, and where the run ends."""
    run, path = _SmallRun(seed, seed), Path("run.pt")
    losses = run.train(num_before)
    learner(**run.parts()).save(path, num_before)
    file = path.read_bytes() if path.is_file() else b""
    losses += run.train(num_after)
    return {"file": np.frombuffer(file, np.uint8), "losses": losses, **run.facts(), "draws": _draws()}


def resume(seed: int, own_seed: int, file: np.ndarray, num_after: int) -> dict[str, Any]:
    """Another process, other random weights, other seeds; then the file, and so many steps more."""
    run, path = _SmallRun(seed, own_seed), Path("resumed.pt")
    path.write_bytes(file.tobytes())
    step = learner(**run.parts()).load(path)
    losses = run.train(num_after)
    kept = {"step": step if isinstance(step, int) else -1}
    return kept | {"losses": losses, **run.facts(), "draws": _draws()}


class _Poison:
    """An object whose pickle makes a folder when it is read: it stands for any code at all."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("poison-was-run",)


def load_poison(seed: int) -> bool:
    """Whether loading a file that somebody else has made runs what stands in it."""
    run, path = _SmallRun(seed, seed), Path("foreign.pt")
    poisoned = {name: _Poison() for name in (*run.parts(), "step", "rng", "python", "numpy", "torch")}
    for write in (lambda: torch.save(poisoned, path), lambda: path.write_bytes(pickle.dumps(_Poison()))):
        write()
        with contextlib.suppress(Exception):  # a refusal is what we hope for
            learner(**run.parts()).load(path)
    return Path("poison-was-run").exists()


def reads_safely(file: np.ndarray) -> bool:
    """In a worker of ours: whether `torch.load(weights_only=True)` reads the file, or it is no pickle at all."""
    path = Path("looked-at.pt")
    path.write_bytes(file.tobytes())
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return False
    except Exception:  # another format: nothing to unpickle
        return True
    return True
