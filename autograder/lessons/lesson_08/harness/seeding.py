"""Harness of 8.1: two epochs of a loader whose samples draw from every generator there is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_08.harness.shared import scramble


class NoisySamples(torch.utils.data.Dataset):
    """Sample i: i, then a number from its own generator, from NumPy's, Python's and torch's. Float64 [5]."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rng = np.random.default_rng()  # from the system: another one at each start

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> np.ndarray:
        drawn = (
            self.rng.random(),
            np.random.random_sample(),
            random.random(),
            torch.rand((), dtype=torch.float64).item(),
        )
        return np.array([index, *drawn])


def seeded_epochs(seed: int, size: int, num_workers: int, disturbance: int) -> dict[str, Any]:
    """What the process draws after it was seeded, and all samples of two epochs, float64 [size, 5] each.

    `disturbance` decides where the generators stood before, and how much dropout draws beside the loader.
    """
    scramble(disturbance)
    dropout = np.random.default_rng(disturbance)
    loader = learner(seed, NoisySamples(size), 8, num_workers)
    drawn = {
        "Python's": random.random(),
        "NumPy's": np.random.random_sample(),
        "torch's": torch.rand(()).item(),
    }
    epochs = []
    for _ in range(2):
        torch.rand(int(dropout.integers(1, 99)))
        rows = []
        for batch in loader:
            torch.rand(int(dropout.integers(1, 99)))
            rows.append(torch.as_tensor(batch, dtype=torch.float64).reshape(-1, 5).clone())
        epochs.append(torch.cat(rows) if rows else torch.zeros(0, 5, dtype=torch.float64))
    return {"drawn": drawn, "epochs": epochs}
