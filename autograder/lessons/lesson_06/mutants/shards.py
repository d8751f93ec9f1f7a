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

_ORDER = "order = np.random.default_rng([self.seed, self.epoch]).permutation(self.num_samples)"
_FILLED = "order = np.resize(order, len(self) * self.world_size)"
_TAKEN = "order[self.rank :: self.world_size].tolist()"

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
                "np.append(order, order[:1].repeat(len(self) * self.world_size - self.num_samples))",
            ),
            "filled up from the end": (
                "the filling is taken from elsewhere",
                _FILLED,
                "order = np.append(order, np.resize(order[::-1], len(self) * self.world_size - len(order)))",
            ),
            "filled up first, shuffled afterwards": (
                "filled up first and shuffled afterwards",
                (_ORDER, "rng = np.random.default_rng([self.seed, self.epoch])"),
                (
                    _FILLED,
                    "order = np.resize(np.arange(self.num_samples), len(self) * self.world_size)\n"
                    "        rng.shuffle(order)",
                ),
            ),
            "an order kept by seed and epoch alone": (
                "by seed and epoch alone",
                ("    def __init__", "    kept = {}\n\n    def __init__"),
                (
                    _ORDER,
                    "key = (self.seed, self.epoch)\n"
                    "        if key not in self.kept:\n"
                    "            self.kept.clear()\n"
                    "            self.kept[key] = np.random.default_rng(key).permutation(self.num_samples)\n"
                    "        order = self.kept[key]",
                ),
            ),
            "filled up by chance": (
                "the filling is taken from elsewhere",
                _FILLED,
                "extra = len(self) * self.world_size - len(order)\n"
                "        again = np.random.default_rng(self.epoch).permutation(self.num_samples)\n"
                "        order = np.append(order, np.resize(again, extra))",
            ),
            "the seed ignored": ("the seed is ignored", "[self.seed, self.epoch]", "self.epoch"),
            "another default seed": ("another default than `seed=0`", "seed=0", "seed=1"),
            "an unseeded generator": (
                "an unseeded generator",
                "default_rng([self.seed, self.epoch])",
                "default_rng()",
            ),
            "one generator for all passes": (
                "or one that carries on",
                (
                    "        self.epoch = 0\n",
                    "        self.epoch = 0\n        self.rng = np.random.default_rng(seed)\n",
                ),
                ("np.random.default_rng([self.seed, self.epoch])", "self.rng"),
            ),
            "one epoch for all samplers": (
                "samplers of one process share",
                ("        self.epoch = 0\n", ""),
                (
                    "    def set_epoch(self, epoch):\n        self.epoch = epoch",
                    "    epoch = 0\n\n    def set_epoch(self, epoch):\n        ShardSampler.epoch = epoch",
                ),
            ),
            "an epoch once set stays": (
                "forgot set_epoch",
                "        self.epoch = epoch",
                "        self.epoch = self.epoch or epoch + 1",
            ),
            "goes on where it was broken off": (
                "a pass that was broken off is not begun anew",
                ("        self.epoch = 0\n", "        self.epoch, self.place = 0, 0\n"),
                (
                    "        yield from order[self.rank :: self.world_size].tolist()\n",
                    "        for index in order[self.rank :: self.world_size].tolist()[self.place :]:\n"
                    "            self.place += 1\n            yield index\n        self.place = 0\n",
                ),
            ),
            "hash() of a text decides": (
                "as `hash()` of a text does",
                "[self.seed, self.epoch]",
                'abs(hash(f"{self.seed}-{self.epoch}"))',
            ),
            "the rank not used": ("the rank is not used", _TAKEN, "order[:: self.world_size].tolist()"),
            "length of all samples": (
                "`__len__` counts all samples",
                ("return math.ceil(self.num_samples / self.world_size)", "return self.num_samples"),
                (
                    _FILLED,
                    "order = np.resize(order, math.ceil(self.num_samples / self.world_size) * self.world_size)",
                ),
            ),
            "length without the filling": (
                "`__len__` counts all samples, or without the filling",
                (
                    "return math.ceil(self.num_samples / self.world_size)",
                    "return self.num_samples // self.world_size",
                ),
                (
                    _FILLED,
                    "order = np.resize(order, math.ceil(self.num_samples / self.world_size) * self.world_size)",
                ),
            ),
            "whole shards change places": (
                "whole shards change places",
                (_ORDER, "order = np.random.default_rng(self.seed).permutation(self.num_samples)"),
                (_TAKEN, "order[(self.rank + self.epoch) % self.world_size :: self.world_size].tolist()"),
            ),
            "numbers that are no index": (
                "another type than int",
                _TAKEN,
                "order.astype(float)[self.rank :: self.world_size].tolist()",
            ),
            "NumPy's numbers": ("another type than int", ".tolist()", ""),
            "shards sorted": (
                "sorted, rotated or kept in blocks",
                _TAKEN,
                "sorted(order[self.rank :: self.world_size].tolist())",
            ),
            "epochs that repeat": ("the epochs repeat", "self.epoch]", "self.epoch % 10]"),
            "epochs up to 255": ("the epochs repeat", "self.epoch]", "self.epoch & 255]"),
            "seeds up to 999": (
                "not all of the seed is used",
                "[self.seed, self.epoch]",
                "[self.seed % 1000, self.epoch]",
            ),
            "another seed in place of 0": (
                "not all of the seed is used",
                "[self.seed, self.epoch]",
                "[self.seed or 42, self.epoch]",
            ),
            "shuffled block by block": (
                "shuffled inside of blocks alone",
                _ORDER,
                "rng = np.random.default_rng([self.seed, self.epoch])\n"
                "        blocks = np.array_split(np.arange(self.num_samples), 8)\n"
                "        order = np.concatenate([rng.permutation(block) for block in blocks])",
            ),
            "two halves that stay apart": (
                "shuffled inside of blocks alone",
                _ORDER,
                "rng = np.random.default_rng([self.seed, self.epoch])\n"
                "        halves = np.array_split(np.arange(self.num_samples), 2)\n"
                "        order = np.concatenate([rng.permutation(half) for half in halves])",
            ),
            "the first sample always first": (
                "a part of the order is not shuffled",
                _ORDER,
                "rng = np.random.default_rng([self.seed, self.epoch])\n"
                "        order = np.append(0, 1 + rng.permutation(self.num_samples - 1))",
            ),
            "drawn on the way from a generator of all": (
                "a generator that belongs to all",
                (
                    _ORDER,
                    "random.seed(self.seed * 10007 + self.epoch)\n"
                    "        order = list(range(self.num_samples))",
                ),
                (_FILLED, "width = self.world_size"),
                (
                    "yield from " + _TAKEN,
                    "for i in range(len(self) * width):\n"
                    "            if i < self.num_samples:\n"
                    "                j = random.randrange(i, self.num_samples)\n"
                    "                order[i], order[j] = order[j], order[i]\n"
                    "            if i % width == self.rank:\n"
                    "                yield order[i % self.num_samples]",
                ),
                ("import math\n", "import math\nimport random\n"),
            ),
            "filled up unevenly": (
                "repeats some samples more often than others",
                (
                    _FILLED,
                    "num_missing = len(self) * self.world_size - len(order)\n"
                    "        again = np.repeat(order[:-1], math.ceil(self.world_size / self.num_samples) - 1)\n"
                    "        again = again if len(again) >= num_missing else order\n"
                    "        order = np.append(order, np.resize(again, num_missing))",
                ),
            ),
            "the length of what is left": (
                "`__len__` counts what is left",
                (
                    "return math.ceil(self.num_samples / self.world_size)",
                    "return math.ceil(self.num_samples / self.world_size) - getattr(self, 'place', 0)",
                ),
                (_FILLED, "self.place = 0\n        " + _FILLED),
                (
                    "yield from " + _TAKEN,
                    "for index in " + _TAKEN + ":\n            self.place += 1\n            yield index",
                ),
            ),
            "passes counted by itself": (
                "the passes are counted by the sampler itself",
                _TAKEN,
                _TAKEN + "\n        self.epoch += 1",
            ),
        },
    )
}
