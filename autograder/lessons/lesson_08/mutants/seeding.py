"""Wrong solutions of 8.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    "8.1": wrong(
        _SEEDING,
        {
            "NumPy seed forgotten": ("NumPy is not seeded", "    np.random.seed(seed)\n", ""),
            "Python seed forgotten": ("Python is not seeded", "    random.seed(seed)\n    np", "    np"),
            "worker seed forgotten": ("worker seed forgotten", "worker_init_fn=seed_worker,", ""),
            "workers get the same numbers each epoch": (
                "the same number each epoch",
                _OF_WORKER,
                "np.random.default_rng(1000 + worker_id)",
            ),
            "one generator shared by shuffling and dropout": (
                "one generator shared by shuffling and dropout",
                "generator=order, ",
                "",
            ),
            "the order is seeded by the system": (
                "seeded from the clock or the system",
                "torch.Generator().manual_seed(seed)",
                "torch.Generator()\n    order.seed()",
            ),
            "a data set without workers is left alone": (
                "nobody seeds the data set",
                "    dataset.rng = np.random.default_rng(seed)\n",
                "",
            ),
            "a seed written into the code": (
                "a seed is written into the code",
                "torch.Generator().manual_seed(seed)",
                "torch.Generator().manual_seed(42)",
            ),
        },
    )
}
