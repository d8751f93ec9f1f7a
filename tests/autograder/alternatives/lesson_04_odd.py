"""Right solutions of lesson 04 by unusual roads."""

# %%
import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import exercise

MAGIC = b"RUNFILE1"


class _Writer:
    """Turns nested plain values and tensors into a JSON tree and one block of bytes."""

    def __init__(self) -> None:
        self.blob = bytearray()

    def _put(self, raw: bytes) -> list[int]:
        start = len(self.blob)
        self.blob += raw
        return [start, len(self.blob)]

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return ["value", value]
        if isinstance(value, torch.Tensor):
            flat = value.detach().cpu().reshape(-1)
            raw = flat.contiguous().view(torch.uint8).numpy().tobytes() if flat.numel() else b""
            name = str(value.dtype).removeprefix("torch.")
            return ["tensor", name, list(value.shape), *self._put(raw)]
        if isinstance(value, bytes):
            return ["bytes", *self._put(value)]
        if isinstance(value, dict):
            return ["dict", [[self.encode(k), self.encode(v)] for k, v in value.items()]]
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return [kind, [self.encode(v) for v in value]]
        raise TypeError(f"neither a tensor nor a plain value: {type(value).__name__}")


def _decode(node: Any, blob: bytes) -> Any:
    kind, *rest = node
    if kind == "value":
        return rest[0]
    if kind == "tensor":
        name, shape, start, end = rest
        dtype = getattr(torch, name, None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"no such dtype: {name!r}")
        if start == end:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(bytearray(blob[start:end]), dtype=dtype).reshape(shape)
    if kind == "bytes":
        return bytes(blob[rest[0] : rest[1]])
    if kind == "dict":
        return {_decode(k, blob): _decode(v, blob) for k, v in rest[0]}
    if kind == "list":
        return [_decode(v, blob) for v in rest[0]]
    if kind == "tuple":
        return tuple(_decode(v, blob) for v in rest[0])
    raise ValueError(f"no such kind: {kind!r}")


@exercise("4.1")
class RunCheckpoint:
    """A file format of its own without any pickle: a JSON tree that points into raw bytes."""

    def __init__(self, *, model: Any, optimizer: Any, scheduler: Any, scaler: Any, sampler: Any) -> None:
        self.parts = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "sampler": sampler,
        }

    def save(self, path: Path, step: int) -> None:
        name, words, position, has_gauss, gauss = np.random.get_state()
        writer = _Writer()
        tree = writer.encode(
            {
                "step": int(step),
                "parts": {key: part.state_dict() for key, part in self.parts.items()},
                "python": random.getstate(),
                "numpy": (name, words.tolist(), int(position), int(has_gauss), float(gauss)),
                "torch": torch.get_rng_state(),
            }
        )
        header = json.dumps(tree).encode()
        with path.open("wb") as file:
            file.write(MAGIC + struct.pack("<Q", len(header)))
            file.write(header)
            file.write(writer.blob)

    def load(self, path: Path) -> int:
        content = Path(path).read_bytes()
        start = len(MAGIC) + 8
        if len(content) < start or not content.startswith(MAGIC):
            raise ValueError(f"{path} is not a file that RunCheckpoint wrote")
        (length,) = struct.unpack("<Q", content[len(MAGIC) : start])
        found = _decode(json.loads(content[start : start + length]), content[start + length :])
        for key, part in self.parts.items():
            part.load_state_dict(found["parts"][key])
        random.setstate(found["python"])
        name, words, position, has_gauss, gauss = found["numpy"]
        np.random.set_state((name, np.array(words, dtype=np.uint32), position, has_gauss, gauss))
        torch.set_rng_state(found["torch"])
        return found["step"]


# %%
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from autograder import exercise


@exercise("4.2")
def save_atomically(checkpoint: dict[str, Any], path: Path) -> None:
    """Written in a temporary folder beside the file, which goes away with all that is in it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = Path(folder) / "new"
        torch.save(checkpoint, written)
        handle = os.open(written, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        written.replace(path)


# %%
from typing import Any

from autograder import exercise


@exercise("4.3")
class EarlyStopping:
    """The state is all attributes; what is compared is always to be maximised."""

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
        self.best: float | None = None
        self.best_step: int | None = None
        self.num_bad = 0

    def update(self, metrics: dict[str, float], step: int) -> bool:
        value = float(metrics[self.monitor])
        is_number = value == value
        up = value if self.mode == "max" else -value
        if is_number and (self.best is None or up > self._bar()):
            self.best, self.best_step, self.num_bad = value, step, 0
            return False
        self.num_bad += 1
        return not self.num_bad < self.patience

    def _bar(self) -> float:
        assert self.best is not None
        return (self.best if self.mode == "max" else -self.best) + self.min_delta

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
