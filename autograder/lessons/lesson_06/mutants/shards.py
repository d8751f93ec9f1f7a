"""Wrong solutions of 6.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_SAMPLER = """
import math
import numpy as np

@exercise("6.1")
class ShardSampler:
    def __init__(self, num_samples, rank, world_size, seed=0):
        self.num_samples, self.rank, self.world_size, self.seed = num_samples, rank, world_size, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return math.ceil(self.num_samples / self.world_size)

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.num_samples)
        order = np.resize(order, len(self) * self.world_size)
        yield from order[self.rank :: self.world_size].tolist()
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.1": wrong(
        _SAMPLER,
        {
            "no sampler": (
                "no sampler",
                ("order[self.rank :: self.world_size]", "order[: self.num_samples]"),
                ("return math.ceil(self.num_samples / self.world_size)", "return self.num_samples"),
                ("len(self) * self.world_size", "self.num_samples"),
            ),
            "forgot set_epoch": ("forgot set_epoch", "[self.seed, self.epoch]", "self.seed"),
            "each rank shuffles for itself": (
                "each rank shuffles for itself",
                "[self.seed, self.epoch]",
                "[self.seed, self.epoch, self.rank]",
            ),
            "drops the tail": (
                "the tail is dropped",
                "math.ceil(self.num_samples / self.world_size)",
                "self.num_samples // self.world_size",
            ),
            "uneven shards": (
                "different numbers of samples",
                "        order = np.resize(order, len(self) * self.world_size)\n",
                "",
            ),
            "fills up once only": (
                "the filling ends too early",
                "order = np.resize(order, len(self) * self.world_size)",
                "order = np.concatenate([order, order[: len(self) * self.world_size - len(order)]])",
            ),
            "divided first, shuffled inside": (
                "shuffled inside each shard",
                (
                    "order = np.random.default_rng([self.seed, self.epoch]).permutation(self.num_samples)",
                    "order = np.arange(self.num_samples)",
                ),
                (
                    "yield from order[self.rank :: self.world_size].tolist()",
                    "rng = np.random.default_rng([self.seed, self.epoch])\n"
                    "        yield from rng.permutation(order[self.rank :: self.world_size]).tolist()",
                ),
            ),
            "filled up with one sample": (
                "one sample over and over",
                "np.resize(order, len(self) * self.world_size)",
                "np.append(order, [order[0]] * (len(self) * self.world_size - self.num_samples))",
            ),
        },
    )
}
