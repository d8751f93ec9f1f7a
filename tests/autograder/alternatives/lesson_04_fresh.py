"""Right solutions of lesson 04 by people who knew the notebook alone."""

# %%
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise

DTYPES = {str(d): d for d in vars(torch).values() if isinstance(d, torch.dtype)}


class Packer:
    """Turns nested plain values and tensors into JSON; tensors go aside as bytes."""

    def __init__(self):
        self.blobs = []

    def pack(self, value):
        if isinstance(value, torch.Tensor):
            flat = value.detach().to("cpu").contiguous().reshape(-1)
            self.blobs.append(flat.view(torch.uint8).numpy().tobytes())
            return {"t": [len(self.blobs) - 1, str(value.dtype), list(value.shape)]}
        if isinstance(value, dict):  # pairs: keys may be ints, and JSON would make them strings
            return {"d": [[self.pack(k), self.pack(v)] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            return {"l" if isinstance(value, list) else "u": [self.pack(v) for v in value]}
        if value is None or isinstance(value, (int, str)):
            return {"v": value}
        if isinstance(value, float):
            return {"f": value.hex()}  # exact, inf and nan too
        raise TypeError(f"cannot save a {type(value).__name__}")


def unpack(node, blob):
    ((tag, content),) = node.items()
    if tag == "v":
        return content
    if tag == "f":
        return float.fromhex(content)
    if tag == "l":
        return [unpack(v, blob) for v in content]
    if tag == "u":
        return tuple(unpack(v, blob) for v in content)
    if tag == "d":
        return {unpack(k, blob): unpack(v, blob) for k, v in content}
    if tag == "t":
        number, dtype, shape = content
        return torch.frombuffer(bytearray(blob(number)), dtype=torch.uint8).view(DTYPES[dtype]).reshape(shape)
    raise ValueError(f"unknown tag {tag!r}")


@exercise("4.1")
class RunCheckpoint:
    """No pickle at all: a zip of raw bytes of tensors and a tree in JSON, so that nothing could run."""

    def __init__(self, *, model: Any, optimizer: Any, scheduler: Any, scaler: Any, sampler: Any) -> None:
        self.parts = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "sampler": sampler,
        }

    def save(self, path: Path, step: int) -> None:
        name, keys, pos, has_gauss, gauss = np.random.get_state()
        packer = Packer()
        tree = packer.pack(
            {
                "step": step,
                "parts": {k: dict(part.state_dict()) for k, part in self.parts.items()},
                "random": random.getstate(),
                "numpy": (name, keys.tolist(), pos, has_gauss, gauss),
                "torch": torch.get_rng_state(),
            }
        )
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tree.json", json.dumps(tree))
            for number, blob in enumerate(packer.blobs):
                archive.writestr(f"tensors/{number}", blob)

    def load(self, path: Path) -> int:
        with zipfile.ZipFile(path) as archive:
            tree = json.loads(archive.read("tree.json"))
            found = unpack(tree, lambda number: archive.read(f"tensors/{number}"))
        for name, part in self.parts.items():
            part.load_state_dict(found["parts"][name])
        random.setstate(found["random"])
        np.random.set_state(found["numpy"])
        torch.set_rng_state(found["torch"])
        return found["step"]


# %%
import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch

from autograder import exercise


@contextlib.contextmanager
def published(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into that becomes `path` if the block ends well, and vanishes if not."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    with contextlib.ExitStack() as undo:
        file = undo.enter_context(draft.open("xb+"))
        undo.callback(draft.unlink)
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        torch.load(file, map_location="meta", weights_only=True)  # would the next run read it?
        draft.rename(path)
        undo.pop_all()  # nothing to undo any more
    file.close()


@exercise("4.2")
def save_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """A context manager with an ExitStack of what to undo; the draft is read back before it gets the name."""
    with published(path) as file:
        torch.save(checkpoint, file)


# %%
import math
from typing import Any, NamedTuple

from autograder import exercise


class Progress(NamedTuple):
    best: float | None = None
    best_step: int | None = None
    num_bad: int = 0


def advance(old: Progress, value: float, step: int, sign: float, min_delta: float) -> Progress:
    """The progress after one more validation. sign: +1 where higher is better, -1 where lower is."""
    if math.isnan(value):
        improves = False
    elif old.best is None:
        improves = True
    else:
        improves = sign * (value - old.best) > min_delta  # inf - inf is NaN: not more than anything
    return Progress(value, step, 0) if improves else old._replace(num_bad=old.num_bad + 1)


@exercise("4.3")
class EarlyStopping:
    """An immutable NamedTuple of progress, a pure function from one to the next, and properties."""

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "min",
        patience: int = 3,
        min_delta: float = 0.0,
    ) -> None:
        self.monitor = monitor
        self.mode = mode
        self.patience = patience
        self.min_delta = min_delta
        self._progress = Progress()

    best = property(lambda self: self._progress.best)
    best_step = property(lambda self: self._progress.best_step)
    num_bad = property(lambda self: self._progress.num_bad)

    def update(self, metrics: dict[str, float], step: int) -> bool:
        sign = {"min": -1.0, "max": 1.0}[self.mode]
        value = float(metrics[self.monitor])
        self._progress = advance(self._progress, value, step, sign, self.min_delta)
        return self.num_bad >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return self._progress._asdict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._progress = Progress(**state)


# %%
import copy
import math
from typing import Any

from autograder import exercise

EVERY, WAIT = 10, 6


def losses_of(history: list) -> list[float]:
    """NaN is no lower than anything."""
    return [math.inf if math.isnan(found["loss"]) else found["loss"] for found in history]


def has_turned(history: list, at: int) -> bool:
    """Whether the lowest is long ago, and the run has only learned by heart since."""
    return len(history) - at > WAIT and history[-1]["train_loss"] < history[at]["train_loss"]


@exercise("4.4")
def train_with_early_stopping(run: Any) -> dict[str, float]:
    """Stops on the gap: the validation loss has not been lower for long, the training loss is."""
    history, snapshots = [], {}
    while (left := run.max_steps - run.num_steps) > 0:
        run.train(min(EVERY, left))
        found = run.validate()
        history.append(found)
        at = min(range(len(history)), key=losses_of(history).__getitem__)
        if at == len(history) - 1:
            snapshots = {at: copy.deepcopy(run.model).state_dict()}  # one copy at a time
        elif has_turned(history, at):
            break
    run.model.load_state_dict(snapshots[at])
    return {"best_step": history[at]["step"], "loss": history[at]["loss"]}


# %%
from collections.abc import Callable

from autograder import exercise


@exercise("4.5")
class Cadence:
    """Looks one step ahead: due already when another step as long as this one would pass the limit."""

    __slots__ = ("_rest", "_saved_at", "_stepped_at", "clock", "max_lost_seconds", "max_overhead")

    def __init__(self, max_lost_seconds: float, max_overhead: float, clock: Callable[[], float]) -> None:
        self.max_lost_seconds = max_lost_seconds
        self.max_overhead = max_overhead
        self.clock = clock
        self._saved_at = self._stepped_at = clock()
        self._rest = 0.0  # seconds without a save that the overhead asks for

    def saved(self, seconds: float) -> None:
        self._rest = seconds / self.max_overhead - seconds
        if self._rest > self.max_lost_seconds:
            self._rest *= 1.25  # the overhead rules: stay clear of it
        self._saved_at = self._stepped_at = self.clock()

    def is_due(self) -> bool:
        now = self.clock()
        step, self._stepped_at = now - self._stepped_at, now
        at_risk = now - self._saved_at
        return at_risk >= self._rest and at_risk + step > self.max_lost_seconds
