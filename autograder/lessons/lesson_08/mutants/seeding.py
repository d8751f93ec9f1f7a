"""Wrong solutions of 8.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_SEEDING = """
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

def seed_worker(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)

@exercise("8.1")
def seed_everything(seed, dataset, micro_batch_size=32, num_workers=0):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    dataset.rng = np.random.default_rng(seed)
    order = torch.Generator().manual_seed(seed)
    return DataLoader(
        dataset, batch_size=micro_batch_size, shuffle=True, num_workers=num_workers,
        generator=order, worker_init_fn=seed_worker,
    )
"""
_OF_WORKER = "np.random.default_rng(info.seed)"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "8.1": (
        Mutant(
            name="NumPy seed forgotten",
            source=edited(_SEEDING, ("    np.random.seed(seed)\n", "")),
            says="NumPy is not seeded",
        ),
        Mutant(
            name="Python seed forgotten",
            source=edited(_SEEDING, ("    random.seed(seed)\n    np", "    np")),
            says="Python is not seeded",
        ),
        Mutant(
            name="worker seed forgotten",
            source=edited(_SEEDING, ("worker_init_fn=seed_worker,", "")),
            says="worker seed forgotten",
        ),
        Mutant(
            name="workers get the same numbers each epoch",
            source=edited(_SEEDING, (_OF_WORKER, "np.random.default_rng(1000 + worker_id)")),
            says="the same number each epoch",
        ),
        Mutant(
            name="one generator shared by shuffling and dropout",
            source=edited(_SEEDING, ("generator=order, ", "")),
            says="one generator shared by shuffling and dropout",
        ),
        Mutant(
            name="the order is seeded by the system",
            source=edited(
                _SEEDING, ("torch.Generator().manual_seed(seed)", "torch.Generator()\n    order.seed()")
            ),
            says="seeded from the clock or the system",
        ),
        Mutant(
            name="a data set without workers is left alone",
            source=edited(_SEEDING, ("    dataset.rng = np.random.default_rng(seed)\n", "")),
            says="nobody seeds the data set",
        ),
        Mutant(
            name="a seed written into the code",
            source=edited(
                _SEEDING, ("torch.Generator().manual_seed(seed)", "torch.Generator().manual_seed(42)")
            ),
            says="a seed is written into the code",
        ),
    ),
}
