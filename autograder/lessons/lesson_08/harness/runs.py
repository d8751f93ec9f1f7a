"""Harness of 8.4: runs that are repeated, interrupted and resumed."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, weights_of
from autograder.lessons.lesson_08.harness.shared import scramble
from course_lib.models import ModelConfig, TextClassifier


class _Augmented:
    """Random texts of 5 classes. Reading one draws from NumPy and Python, as augmentation does, and is written down."""

    def __init__(self, size: int) -> None:
        rng = np.random.default_rng(8)
        self.texts = [rng.integers(3, 60, size=rng.integers(4, 12)) for _ in range(size)]
        self.labels = [int(label) for label in rng.integers(5, size=size)]
        self.read: list[int] = []
        self.noise: list[tuple[float, float]] = []

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < len(self.texts):
            raise IndexError(index)
        noise = np.random.random_sample(), random.random()
        self.read.append(int(index))
        self.noise.append(noise)
        ids = self.texts[index].copy()
        ids[int(noise[0] * len(ids))] = 3 + int(noise[1] * 57)  # one word becomes another
        return ids, self.labels[index]


def train_run(
    seed: int, size: int, num_steps: int, stops: list[int], *, dropout: float, disturbance: int
) -> dict[str, Any]:
    """Train for `num_steps` in all. At each of `stops` the run is saved, and goes on in a new one."""
    scramble(disturbance)
    samples = _Augmented(size)

    def make_model() -> TextClassifier:
        sizes: dict[str, Any] = {"max_length": 16, "d_model": 16, "num_layers": 1, "num_heads": 2}
        return TextClassifier(ModelConfig(vocab_size=60, num_classes=5, dropout=dropout, **sizes))

    run = learner(seed, make_model, samples)
    first = weights_of(run.model).clone()
    at = 0
    for number, stop in enumerate([*stops, num_steps]):
        run.train(stop - at)
        at = stop
        if stop < num_steps:
            saved = io.BytesIO()
            torch.save(run.state_dict(), saved)
            saved.seek(0)
            try:
                state = torch.load(saved, weights_only=True)
            except Exception as error:
                return {"unsafe": str(error).partition("\n")[0][:200]}
            scramble(disturbance + 1 + number)
            run = learner(seed, make_model, samples)
            run.load_state_dict(state)
    return {
        "first": first,
        "weights": weights_of(run.model),
        "read": np.array(samples.read, dtype=np.int64),
        "noise": np.array(samples.noise, dtype=np.float64).reshape(-1, 2),
    }
