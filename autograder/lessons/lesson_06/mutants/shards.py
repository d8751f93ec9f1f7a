"""Wrong solutions of 6.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "6.1": (
        Mutant(
            name="no sampler",
            source=edited(
                _SAMPLER,
                ("order[self.rank :: self.world_size]", "order[: self.num_samples]"),
                ("return math.ceil(self.num_samples / self.world_size)", "return self.num_samples"),
                ("len(self) * self.world_size", "self.num_samples"),
            ),
            says="no sampler",
        ),
        Mutant(
            name="forgot set_epoch",
            source=edited(_SAMPLER, ("[self.seed, self.epoch]", "self.seed")),
            says="forgot set_epoch",
        ),
        Mutant(
            name="each rank shuffles for itself",
            source=edited(_SAMPLER, ("[self.seed, self.epoch]", "[self.seed, self.epoch, self.rank]")),
            says="each rank shuffles for itself",
        ),
        Mutant(
            name="drops the tail",
            source=edited(
                _SAMPLER,
                ("math.ceil(self.num_samples / self.world_size)", "self.num_samples // self.world_size"),
            ),
            says="the tail is dropped",
        ),
        Mutant(
            name="uneven shards",
            source=edited(_SAMPLER, ("        order = np.resize(order, len(self) * self.world_size)\n", "")),
            says="different numbers of samples",
        ),
        Mutant(
            name="fills up once only",
            source=edited(
                _SAMPLER,
                (
                    "order = np.resize(order, len(self) * self.world_size)",
                    "order = np.concatenate([order, order[: len(self) * self.world_size - len(order)]])",
                ),
            ),
            says="the filling ends too early",
        ),
        Mutant(
            name="divided first, shuffled inside",
            source=edited(
                _SAMPLER,
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
            says="shuffled inside each shard",
        ),
        Mutant(
            name="filled up with one sample",
            source=edited(
                _SAMPLER,
                (
                    "np.resize(order, len(self) * self.world_size)",
                    "np.append(order, [order[0]] * (len(self) * self.world_size - self.num_samples))",
                ),
            ),
            says="one sample over and over",
        ),
    ),
}
