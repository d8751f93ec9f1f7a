"""Harness of 8.1: epochs of a loader whose samples draw from every generator there is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, same_everywhere
from autograder.lessons.lesson_08.harness.shared import scramble


class NoisySamples(torch.utils.data.Dataset):
    """Sample i: i; its worker, or -1; a number from its own generator, NumPy's, Python's and torch's.

    Last, whether its own is NumPy's `Generator`: others have `random` too, and lack what augmentation asks for.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.rng = np.random.default_rng()  # from the system: another one at each start

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> np.ndarray:
        worker = torch.utils.data.get_worker_info()
        drawn = (
            self.rng.random(),
            np.random.random_sample(),
            random.random(),
            torch.rand((), dtype=torch.float64).item(),
        )
        is_generator = isinstance(self.rng, np.random.Generator)
        return np.array([index, -1 if worker is None else worker.id, *drawn, is_generator])


def seeded_epochs(
    seed: int,
    size: int,
    settings: dict[str, int],
    num_epochs: int,
    disturbance: int,
    beside: bool = False,
    was_used: bool = False,
    breaks_off: bool = False,
) -> dict[str, Any]:
    """What the process draws after it was seeded, and the samples of each epoch, float64 [size, 7], with batch sizes.

    `settings` are the learner's, in the order of the signature. `disturbance` decides where the generators stood
    before, and how much dropout draws beside the loader. `beside`: another data set gets a loader of another seed, and
    is read meanwhile. `was_used`: this one had a loader of another seed before. `breaks_off`: an epoch that ends after
    its first batch comes before the others.
    """
    scramble(disturbance)
    dropout = np.random.default_rng(disturbance)
    samples = NoisySamples(size)
    if was_used:
        learner(seed + 34, samples, *settings.values())
    loader = learner(seed, samples, *settings.values())
    drawn = {
        "Python's": [random.random(), random.gauss(0.0, 1.0)],
        "NumPy's": [np.random.random_sample(), np.random.standard_normal()],
        "torch's": [torch.rand(()).item()],
    }
    other = learner(seed + 17, NoisySamples(9), **settings) if beside else []
    epochs, sizes = [], []
    if breaks_off:
        next(iter(loader))
    for _ in range(num_epochs):
        torch.rand(int(dropout.integers(1, 99)))
        rows = [torch.zeros(0, 7, dtype=torch.float64)]
        for batch in loader:
            torch.rand(int(dropout.integers(1, 99)))
            rows.append(torch.as_tensor(batch, dtype=torch.float64).reshape(-1, 7).clone())
        list(other)
        other = []
        epochs.append(torch.cat(rows))
        sizes.append([len(some) for some in rows[1:]])
    return {"drawn": drawn, "epochs": epochs, "sizes": sizes}


_DRAWS = """
import random
import numpy, torch
class Places(torch.utils.data.Dataset):
    rng = numpy.random.default_rng()
    def __len__(self):
        return 40
    def __getitem__(self, index):
        return index
seed, places = request, Places()
loader = learner(seed, places, micro_batch_size=4)
drawn = [random.random(), numpy.random.random_sample(), torch.rand(()).item(), places.rng.random()]
say([drawn, [int(place) for batch in loader for place in batch]])
"""


def seeded_elsewhere(source: str, entry: str, seed: int) -> dict[str, Any]:
    """Whether a seed gives the same draws and order in two fresh interpreters."""
    return same_everywhere(_DRAWS, source, entry, seed)
