"""Wrong solutions of 1.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_SAMPLER = """
import numpy as np

@exercise("1.2")
class BucketBatchSampler:
    def __init__(self, lengths, micro_batch_size, seed=0):
        self.lengths, self.micro_batch_size, self.seed, self.epoch = np.asarray(lengths), micro_batch_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.micro_batch_size)

    def __iter__(self):
        rng = np.random.default_rng([self.seed, self.epoch])
        blur = 0.95 + 0.1 * rng.random(self.lengths.size)
        order = np.lexsort((rng.random(len(self.lengths)), blur * self.lengths))
        batches = [order[i : i + self.micro_batch_size] for i in range(0, len(order), self.micro_batch_size)]
        rng.shuffle(batches := list(batches))
        for batch in batches:
            yield batch.tolist()
"""

# Right and too slow: this must never pass.
SLOW_SAMPLER = edited(
    _SAMPLER,
    (
        "        for batch in batches:\n",
        "        for batch in batches:\n            sum(i * i for i in range(400_000))\n",
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.2": wrong(
        _SAMPLER,
        {
            "bucketing that never reshuffles": ("never reshuffles", "[self.seed, self.epoch]", "self.seed"),
            "pools of at most 1,024": (
                "each bucket ends in a short batch",
                "        batches = [order[i : i + self.micro_batch_size] "
                "for i in range(0, len(order), self.micro_batch_size)]\n",
                "        pool = min(1024, -(-len(self) // 2) * self.micro_batch_size)\n"
                "        pools = [order[i : i + pool] for i in range(0, len(order), pool)]\n"
                "        batches = [p[i : i + self.micro_batch_size]\n"
                "                   for p in pools for i in range(0, len(p), self.micro_batch_size)]\n",
            ),
            "an order that goes on from the epoch before": (
                "carries on from the last epoch",
                ("        self.epoch = epoch\n", "        self.epoch = epoch\n        self.shuffled()\n"),
                (
                    "    def __len__(self):\n",
                    "    def shuffled(self):\n"
                    "        before = getattr(self, 'order', np.arange(len(self.lengths)))\n"
                    "        self.order = np.random.default_rng([self.seed, self.epoch]).permutation(before)\n\n"
                    "    def __len__(self):\n",
                ),
                (
                    "        order = np.lexsort((rng.random(len(self.lengths)), blur * self.lengths))\n",
                    "        order = self.order[np.argsort((blur * self.lengths)[self.order] // 4, kind='stable')]\n",
                ),
            ),
            "drops the tail": (
                "tail is dropped",
                "range(0, len(order), self.micro_batch_size)]",
                "range(0, len(order) - self.micro_batch_size + 1, self.micro_batch_size)]",
            ),
            "repeats the tail": (
                "already used",
                "self.lengths))\n",
                "self.lengths))\n        missing = -len(order) % self.micro_batch_size\n"
                "        order = np.concatenate([order, order[:missing]])\n",
            ),
            "the rest put to the last batch": (
                "a short rest was put to another batch",
                "        rng.shuffle(batches :=",
                "        if len(batches) > 1 and len(batches[-1]) < self.micro_batch_size:\n"
                "            batches[-2:] = [np.concatenate(batches[-2:])]\n        rng.shuffle(batches :=",
            ),
            "an empty batch where batches fit exactly": (
                "a batch without any index",
                "        rng.shuffle(batches :=",
                "        if len(order) % self.micro_batch_size == 0:\n            batches.append(order[:0])\n"
                "        rng.shuffle(batches :=",
            ),
            "a short batch for each bucket": (
                "short batch of its own",
                "        batches = [order[i : i + self.micro_batch_size] for i in "
                "range(0, len(order), self.micro_batch_size)]\n",
                "        batches = []\n        for half in np.split(order, [len(order) // 2]):\n"
                "            batches += [half[i : i + self.micro_batch_size] for i in "
                "range(0, len(half), self.micro_batch_size)]\n",
            ),
            "pools of a round number": (
                "short batch of its own",
                "        batches = [order[i : i + self.micro_batch_size] for i in "
                "range(0, len(order), self.micro_batch_size)]\n",
                "        batches = []\n        for pool in np.split(order, range(800, len(order), 800)):\n"
                "            batches += [pool[i : i + self.micro_batch_size] for i in "
                "range(0, len(pool), self.micro_batch_size)]\n",
            ),
            "always 16 to a batch": (
                "larger than `micro_batch_size`",
                "seed, 0\n",
                "seed, 0\n        self.micro_batch_size = 16\n",
            ),
            "batches from short to long": (
                "curriculum nobody asked for",
                "        rng.shuffle(batches := list(batches))\n",
                "",
            ),
            "long and short by turns": (
                "long and short by turns",
                "        rng.shuffle(batches := list(batches))\n",
                "        some = rng.permutation(len(batches))\n"
                "        low = [i for i in some if i < len(some) // 2]\n"
                "        high = [i for i in some if i >= len(some) // 2]\n"
                "        turns = [i for pair in zip(low, high) for i in pair] + high[len(low) :]\n"
                "        batches = [batches[i] for i in turns]\n",
            ),
            "the same batches in another order": (
                "the same batches in another order",
                "np.lexsort((rng.random(len(self.lengths)), blur * self.lengths))",
                "np.argsort(self.lengths, kind='stable')",
            ),
            "other batches at the same places": (
                "drawn once",
                "        rng.shuffle(batches := list(batches))\n",
                "        np.random.default_rng(self.seed).shuffle(batches := list(batches))\n",
            ),
            "other batches in turned order": (
                "drawn once",
                "        rng.shuffle(batches := list(batches))\n",
                "        np.random.default_rng(7).shuffle(batches := list(batches))\n"
                "        batches = batches[:: -1 if self.epoch % 2 else 1]\n",
            ),
            "the seed is ignored": ("the seed is not used", "[self.seed, self.epoch]", "self.epoch"),
            "the seed for the order alone": (
                "the seed decides only the order",
                (
                    "        blur =",
                    "        rng, of_order = np.random.default_rng(self.epoch), rng\n        blur =",
                ),
                ("rng.shuffle(", "of_order.shuffle("),
            ),
            "only ties are drawn": (
                "the same batches in another order",
                "blur * self.lengths",
                "self.lengths",
            ),
            "another seed by default": ("another default for `seed`", "seed=0):", "seed=1):"),
            "an unseeded generator": (
                "unseeded generator",
                "default_rng([self.seed, self.epoch])",
                "default_rng()",
            ),
            "the global generator": (
                "unseeded generator",
                "rng = np.random.default_rng([self.seed, self.epoch])",
                "rng = np.random",
            ),
            "the hash of a text": (
                "new each time Python starts",
                "default_rng([self.seed, self.epoch])",
                'default_rng(hash(f"{self.seed} {self.epoch}") % 2**32)',
            ),
            "the seed times the epoch": (
                "seed 0 takes the epoch out",
                "default_rng([self.seed, self.epoch])",
                "default_rng(self.seed * (self.epoch + 1))",
            ),
            "a place that is kept": (
                "keeps its place",
                ("seed, 0\n", "seed, 0\n        self.left = []\n"),
                (
                    "        for batch in batches:\n            yield batch.tolist()\n",
                    "        self.left = self.left or batches\n"
                    "        while self.left:\n            yield self.left.pop().tolist()\n",
                ),
            ),
            "the longest batch first": (
                "has its fixed place",
                "        for batch in batches:\n",
                "        batches.sort(key=lambda batch: -(self.lengths.max() in self.lengths[batch]))\n"
                "        for batch in batches:\n",
            ),
            "a generator that is kept": (
                "carries on from the last epoch",
                ("seed, 0\n", "seed, 0\n        self.rng = np.random.default_rng(seed)\n"),
                ("rng = np.random.default_rng([self.seed, self.epoch])", "rng = self.rng"),
            ),
            "set_epoch does nothing": ("never reshuffles", "        self.epoch = epoch", "        pass"),
            "counts samples": (
                "counts samples",
                "-(-len(self.lengths) // self.micro_batch_size)",
                "len(self.lengths)",
            ),
            "rounds down": (
                "rounds down",
                "-(-len(self.lengths) // self.micro_batch_size)",
                "len(self.lengths) // self.micro_batch_size",
            ),
            "one batch more at an exact fit": (
                "where the batches fit exactly",
                "-(-len(self.lengths) // self.micro_batch_size)",
                "len(self.lengths) // self.micro_batch_size + 1",
            ),
            "texts instead of indices": (
                "something else than indices",
                "yield batch.tolist()",
                "yield [str(i) for i in batch]",
            ),
            "arrays of indices": ("`.tolist()` of an array", "yield batch.tolist()", "yield batch"),
            "going through it moves the epoch on": (
                "carries on from the last epoch",
                "        rng = np.random.default_rng([self.seed, self.epoch])",
                "        self.epoch += 1\n        rng = np.random.default_rng([self.seed, self.epoch])",
            ),
            "seeds cut to 256": (
                "cut to a few values",
                "[self.seed, self.epoch]",
                "[self.seed % 256, self.epoch]",
            ),
            "epochs cut to 256": (
                "cut to a few values",
                "[self.seed, self.epoch]",
                "[self.seed, self.epoch % 256]",
            ),
            "seeds cut to 97": (
                "cut to a few values",
                "[self.seed, self.epoch]",
                "[self.seed % 97, self.epoch]",
            ),
            "lists that are kept": (
                "lists that are kept",
                ("seed, 0\n", "seed, 0\n        self.plans = {}\n"),
                (
                    "        for batch in batches:\n            yield batch.tolist()\n",
                    "        yield from self.plans.setdefault(self.epoch, [batch.tolist() for batch in batches])\n",
                ),
            ),
            "one noise for each length": (
                "the same batches in another order",
                "        order = np.lexsort((rng.random(len(self.lengths)), blur * self.lengths))",
                "        values, which = np.unique(self.lengths, return_inverse=True)\n"
                "        order = np.argsort((values * (0.9 + 0.2 * rng.random(len(values))))[which], kind='stable')",
            ),
            "batches kept by seed and epoch alone": (
                "by seed and epoch alone",
                ("    def __iter__", "    kept = {}\n\n    def __iter__"),
                (
                    "        rng.shuffle(batches := list(batches))",
                    "        rng.shuffle(batches := list(batches))\n"
                    "        batches = self.kept.setdefault((self.seed, self.epoch), batches)",
                ),
            ),
            "the longest are not drawn": (
                "put together once and for all",
                "        order = np.lexsort((rng.random(len(self.lengths)), blur * self.lengths))",
                "        long, ties = np.argsort(self.lengths)[-len(blur) // 3 :], rng.random(len(blur))\n"
                "        blur[long], ties[long] = 1.05, 2.0 + long\n"
                "        order = np.lexsort((ties, blur * self.lengths))",
            ),
            "lengths in two bytes": (
                "a type that does not hold large ones",
                "np.asarray(lengths)",
                "np.asarray(lengths).astype(np.uint16)",
            ),
            "at most 32 to a batch": (
                "each bucket ends in a short batch",
                "np.asarray(lengths), micro_batch_size",
                "np.asarray(lengths), min(32, micro_batch_size)",
            ),
            "texts without tokens left out": (
                "the tail is dropped",
                "        batches = [",
                "        order = order[self.lengths[order] > 0]\n        batches = [",
            ),
            "every fourth epoch at random": (
                "mix short and long samples",
                "        batches = [",
                "        if self.epoch in (4, 8) and len(order) > 99:\n            rng.shuffle(order)\n"
                "        batches = [",
            ),
            "one order begun elsewhere": (
                "where one order begins",
                "        rng.shuffle(batches := list(batches))\n",
                "        np.random.default_rng(7).shuffle(batches := list(batches))\n"
                "        turn = rng.integers(len(batches))\n        batches = batches[turn:] + batches[:turn]\n",
            ),
            "random batches": (
                "still mix short and long",
                "np.lexsort((rng.random(len(self.lengths)), blur * self.lengths))",
                "rng.permutation(len(self.lengths))",
            ),
        },
    ),
}
