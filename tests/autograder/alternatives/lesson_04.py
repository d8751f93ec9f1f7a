"""Another right solution of each exercise of lesson 04: other calls, other shapes than the lesson's own."""

# %%
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise


@exercise("4.1")
class RunCheckpoint:
    """Each part and each generator is a blob of bytes or a line of JSON; nothing is nested in the file."""

    def __init__(self, *, model: Any, optimizer: Any, scheduler: Any, scaler: Any, sampler: Any) -> None:
        self.parts = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "sampler": sampler,
        }

    @staticmethod
    def _packed(state: Any) -> torch.Tensor:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)

    @staticmethod
    def _unpacked(blob: torch.Tensor) -> Any:
        return torch.load(io.BytesIO(blob.numpy().tobytes()), weights_only=True)

    def save(self, path: Path, step: int) -> None:
        numbers = np.random.get_state(legacy=False)
        numbers["state"]["key"] = numbers["state"]["key"].tolist()
        content = {f"part {name}": self._packed(p.state_dict()) for name, p in self.parts.items()}
        content["torch"] = torch.get_rng_state()
        content["plain"] = json.dumps([int(step), random.getstate(), numbers])
        path.write_bytes(self._packed(content).numpy().tobytes())

    def load(self, path: Path) -> int:
        content = torch.load(str(path), map_location="cpu", weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(self._unpacked(content[f"part {name}"]))
        step, (version, inner, gauss), numbers = json.loads(content["plain"])
        numbers["state"]["key"] = np.array(numbers["state"]["key"], dtype=np.uint32)
        np.random.set_state(numbers)
        random.setstate((version, tuple(inner), gauss))
        torch.set_rng_state(content["torch"])
        return step


# %%
import contextlib
import io
import os
import uuid
from pathlib import Path
from typing import Any

import torch

from autograder import exercise


@exercise("4.2")
def save_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """Serialise in memory, then bare system calls: open, write, fsync, rename, fsync of the folder."""
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    hidden = path.with_name(f".{uuid.uuid4().hex}")
    with contextlib.ExitStack() as undo:
        handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        undo.callback(hidden.unlink)
        with contextlib.closing(os.fdopen(handle, "wb", buffering=0, closefd=True)):
            left = buffer.getbuffer()
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        hidden.rename(path)
        undo.pop_all()  # nothing to undo: the name is gone
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# %%
import operator
from dataclasses import dataclass
from typing import Any, ClassVar

from autograder import exercise


@exercise("4.3")
@dataclass
class EarlyStopping:
    """A dataclass; the state is its fields, and the margin is a difference, not a moved bar."""

    monitor: str = "loss"
    mode: str = "min"
    patience: int = 3
    min_delta: float = 0.0
    best: float | None = None
    best_step: int | None = None
    num_bad: int = 0

    changing: ClassVar[tuple[str, ...]] = ("best", "best_step", "num_bad")

    def _gain(self, value: float) -> float:
        return value - self.best if self.mode == "max" else self.best - value

    def update(self, metrics: dict[str, float], step: int) -> bool:
        value = metrics[self.monitor]
        match value == value, self.best:  # a NaN is not equal to itself
            case True, None:
                improves = True
            case True, _:
                improves = self._gain(value) > self.min_delta
            case _:
                improves = False
        if improves:
            self.best, self.best_step, self.num_bad = value, step, 0
        else:
            self.num_bad = self.num_bad + 1
        return self.num_bad >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return dict(zip(self.changing, operator.attrgetter(*self.changing)(self), strict=True))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


# %%
import io
from collections.abc import Iterator
from typing import Any

import torch

from autograder import exercise


@exercise("4.4")
def train_with_early_stopping(run: Any) -> dict[str, float]:
    """A generator of validations; patience is counted in steps; the best lies in a file in memory."""
    every, wait = 10, 50

    def validations() -> Iterator[dict[str, float]]:
        while run.num_steps < run.max_steps:
            run.train(min(every, run.max_steps - run.num_steps))
            yield run.validate()

    kept, best = io.BytesIO(), {"step": 0, "loss": float("inf")}
    for found in validations():
        if found["loss"] < best["loss"]:
            best = found
            kept.seek(0)
            kept.truncate()
            torch.save(run.model.state_dict(), kept)
        elif found["step"] - best["step"] >= wait:
            break
    kept.seek(0)
    run.model.load_state_dict(torch.load(kept, weights_only=True))
    return {"best_step": best["step"], "loss": best["loss"]}


# %%
from collections.abc import Callable

from autograder import exercise


@exercise("4.5")
class Cadence:
    """An account: saves are paid from the share of all the time so far, and the next date is fixed at a save."""

    def __init__(self, max_lost_seconds: float, max_overhead: float, clock: Callable[[], float]) -> None:
        self.max_lost_seconds = max_lost_seconds
        self.max_overhead = max_overhead
        self.clock = clock
        self.began: float | None = None
        self.paid = 0.0
        self.next_at = float("-inf")

    def saved(self, seconds: float) -> None:
        now = self.clock()
        if self.began is None:
            self.began = now - seconds
        self.paid += seconds
        next_cost = 1.3 * seconds  # it may have become slower
        affordable = self.began + (self.paid + next_cost) / self.max_overhead - next_cost
        self.next_at = max(now + self.max_lost_seconds, affordable)

    def is_due(self) -> bool:
        return self.clock() >= self.next_at
