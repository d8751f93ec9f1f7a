"""Harness of 8.4: runs that are repeated, interrupted and resumed."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, same_everywhere
from autograder.lessons.lesson_08.harness.shared import scramble

WORDS, CLASSES, WIDTH, LONGEST = 60, 5, 6, 12


class _Augmented:
    """Random texts. Reading one draws from NumPy and Python, as augmentation does, and is written down; of what lies
    behind nothing is a cell's to take."""

    def __init__(self, size: int) -> None:
        rng = np.random.default_rng(8)
        self._texts = [rng.integers(3, WORDS, size=rng.integers(4, LONGEST)) for _ in range(size)]
        self._labels = [int(label) for label in rng.integers(CLASSES, size=size)]
        self._read: list[list[int]] = []
        self._noise: list[list[float]] = []

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < len(self._texts):
            raise IndexError(index)
        noise = [
            np.random.random_sample(),
            np.random.standard_normal(),
            random.random(),
            random.gauss(0.0, 1.0),
        ]
        ids = self._texts[index].copy()
        ids[int(noise[0] * len(ids))] = 3 + int(noise[2] * (WORDS - 3))  # one word becomes another
        self._read.append([int(index), self._labels[index], *ids.tolist(), *[-1] * (LONGEST - len(ids))])
        self._noise.append(noise)
        return ids, self._labels[index]


class _MeanOfWords(torch.nn.Module):
    """Logits of the mean of a text's words: so few numbers that its training can be followed by hand. In float64.

    `loud`: what the logits are multiplied by, so that gradients may be large or small.
    `seen` is a buffer that training moves, as a batch norm's are. `ahead`: the most samples that were read, and had
    not come to it yet, when a batch came.
    """

    def __init__(self, dropout: float, draws: int, loud: float, read: list[list[int]]) -> None:
        super().__init__()
        self.loud = loud
        self._read, self.num_read, self.num_come, self.ahead = read, len(read), 0, 0
        torch.rand(draws)
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.dropout = torch.nn.Dropout(dropout)
        self.classify = torch.nn.Linear(WIDTH, CLASSES)
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(WIDTH))
        self.modes: list[bool] = []
        self.double()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        self.modes.append(self.training)
        mask = attention_mask.unsqueeze(-1).double()
        mean = (self.embedding(input_ids) * mask).sum(1) / mask.sum(1)
        if self.training:
            self.ahead = max(self.ahead, len(self._read) - self.num_read - self.num_come)
            self.num_come += len(input_ids)
            with torch.no_grad():
                self.seen.lerp_(mean.mean(0), 0.1)
        logits: torch.Tensor = self.loud * self.classify(self.dropout(mean))
        return logits


class _Unsafe(Exception):
    """A state that cannot be read without running what stands in it."""


def train_run(
    seed: int,
    size: int,
    num_steps: int,
    *,
    dropout: float,
    disturbance: int,
    stops: list[int] | None = None,
    looks: list[int] | None = None,
    draws: int = 1,
    loud: float = 1.0,
    begun: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train until `num_steps` are done in all.

    At each of `stops` the run is saved, and goes on in a new one; the last file comes back under "file". At each of
    `looks` somebody saves it too, and evaluates the model. `begun`, with "file" and "at", is a run of another process
    to go on from. `draws`: numbers that building the model draws beside its weights. `loud`: see `_MeanOfWords`.
    """
    scramble(disturbance)
    samples = _Augmented(size)

    def new_run() -> Any:
        return learner(seed, lambda: _MeanOfWords(dropout, draws, loud, samples._read), samples)

    run, at, file = new_run(), 0, b""
    stops, looks = stops or [], looks or []
    found: dict[str, Any] = {"first": _numbers(run.model), "kept": [], "loaded": [], "loading": []}
    found["begin"] = _parameters(run.model)
    if begun:
        at, file = begun["at"], begun["file"].tobytes()
        run.load_state_dict(_loaded(file))
        found["loading"] = [len(run.model.modes)]
    modes: list[bool] = []
    for number, stop in enumerate(sorted({*stops, *looks, num_steps})):
        run.train(stop - at)
        at = stop
        modes += run.model.modes
        if number == 0:
            found["once"] = _parameters(run.model)
        if stop in looks:
            run.state_dict()
            run.model.eval()
        if stop in stops:
            try:
                file = _saved(run)
                state = _loaded(file)
            except _Unsafe as error:
                return {"unsafe": str(error)}
            found["kept"].append(_numbers(run.model))
            scramble(disturbance + 1 + number)
            run = new_run()
            run.load_state_dict(state)
            found["loading"].append(len(run.model.modes))
            found["loaded"].append(_numbers(run.model))
    return found | {
        "weights": _numbers(run.model),
        "parameters": _parameters(run.model),
        "read": np.array(samples._read, dtype=np.int64).reshape(-1, 2 + LONGEST),
        "noise": np.array(samples._noise, dtype=np.float64).reshape(-1, 4),
        "is_training": all(modes),
        "ahead": run.model.ahead,
        "file": np.frombuffer(file, dtype=np.uint8),
    }


def _saved(run: Any) -> bytes:
    file = io.BytesIO()
    torch.save(run.state_dict(), file)
    return file.getvalue()


def _loaded(file: bytes) -> Any:
    try:
        return torch.load(io.BytesIO(file), weights_only=True)
    except Exception as error:
        raise _Unsafe(str(error).partition("\n")[0][:200]) from None


def _numbers(model: torch.nn.Module) -> np.ndarray:
    """All parameters and buffers in one row."""
    return torch.cat([value.detach().flatten() for value in model.state_dict().values()]).numpy().copy()


def _parameters(model: Any) -> dict[str, np.ndarray]:
    parts = {
        "embedding": model.embedding.weight,
        "weight": model.classify.weight,
        "bias": model.classify.bias,
    }
    return {name: part.detach().numpy().copy() for name, part in parts.items()}


_ORDER = """
import random, numpy, torch
torch.set_num_threads(1)
class Samples:
    read = []
    def __len__(self):
        return 18
    def __getitem__(self, index):
        if not 0 <= index < 18:
            raise IndexError(index)
        self.read.append([int(index), torch.rand(()).item(), numpy.random.random_sample(), random.random()])
        return numpy.array([3, 4, 5]), int(index) % 3
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(6, 3)
    def forward(self, input_ids, attention_mask):
        return self.words(input_ids).mean(dim=1)
samples = Samples()
run = learner(request, Model, samples)
first = run.model.words.weight[0].tolist()
run.train(12)
say([first, samples.read])
"""


def run_elsewhere(source: str, entry: str, seed: int) -> dict[str, Any]:
    """Whether a seed gives the same first weights, order and noise in two fresh interpreters."""
    return same_everywhere(_ORDER, source, entry, seed)
