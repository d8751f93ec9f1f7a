"""Wrong solutions of 1.1 and 1.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_COLLATE = """
import torch

@exercise("1.1")
def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    input_ids = torch.zeros(len(batch), width, dtype=torch.int64)
    mask = torch.zeros(len(batch), width, dtype=torch.bool)
    for row, (ids, _) in enumerate(batch):
        input_ids[row, : len(ids)] = torch.as_tensor(ids)[:width]
        mask[row, : len(ids)] = True
    labels = torch.tensor([label for _, label in batch])
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}
"""

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
        order = np.lexsort((rng.random(len(self.lengths)), self.lengths))
        batches = [order[i : i + self.micro_batch_size] for i in range(0, len(order), self.micro_batch_size)]
        rng.shuffle(batches := list(batches))
        for batch in batches:
            yield batch.tolist()
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.1": (
        Mutant(
            name="padding to a global maximum",
            source=edited(_COLLATE, ("max(len(ids) for ids, _ in batch)", "1024")),
            says="global maximum",
        ),
        Mutant(
            name="attention mask ignores padding",
            source=edited(_COLLATE, ("mask[row, : len(ids)] = True", "mask[row] = True")),
            says="marks padding as real",
        ),
        Mutant(
            name="long samples are cut",
            source=edited(
                _COLLATE,
                ("max(len(ids) for ids, _ in batch)", "min(len(ids) for ids, _ in batch)"),
                ("input_ids[row, : len(ids)]", "input_ids[row, : min(len(ids), width)]"),
            ),
            says="long samples are cut",
        ),
        Mutant(
            name="mask of the wrong type",
            source=edited(_COLLATE, ("dtype=torch.bool", "dtype=torch.int64")),
            says="another dtype",
        ),
    ),
    "1.2": (
        Mutant(
            name="bucketing that never reshuffles",
            source=edited(_SAMPLER, ("[self.seed, self.epoch]", "self.seed")),
            says="never reshuffles",
        ),
        Mutant(
            name="drops the tail",
            source=edited(
                _SAMPLER,
                (
                    "range(0, len(order), self.micro_batch_size)]",
                    "range(0, len(order) - self.micro_batch_size + 1, self.micro_batch_size)]",
                ),
            ),
            says="tail is dropped",
        ),
        Mutant(
            name="repeats the tail",
            source=edited(
                _SAMPLER,
                (
                    "self.lengths))\n",
                    "self.lengths))\n        missing = -len(order) % self.micro_batch_size\n"
                    "        order = np.concatenate([order, order[:missing]])\n",
                ),
            ),
            says="already used",
        ),
        Mutant(
            name="batches from short to long",
            source=edited(_SAMPLER, ("        rng.shuffle(batches := list(batches))\n", "")),
            says="curriculum nobody asked for",
        ),
        Mutant(
            name="random batches",
            source=edited(
                _SAMPLER,
                (
                    "np.lexsort((rng.random(len(self.lengths)), self.lengths))",
                    "rng.permutation(len(self.lengths))",
                ),
            ),
            says="still mix short and long",
        ),
    ),
}

# Right and too slow: these must never pass.
SLOW: dict[str, str] = {
    "1.1": edited(
        _COLLATE,
        ("torch.zeros(len(batch), width, ", "torch.zeros(len(batch), 1024, "),
        (
            "        input_ids[row, : len(ids)] = torch.as_tensor(ids)[:width]\n        mask[row, : len(ids)] = True\n",
            "        for column in range(1024):\n"
            "            mask[row, column] = column < len(ids)\n"
            "            if mask[row, column]:\n"
            "                input_ids[row, column] = int(ids[column])\n",
        ),
        (
            '"input_ids": input_ids, "attention_mask": mask',
            '"input_ids": input_ids[:, :width], "attention_mask": mask[:, :width]',
        ),
    ),
    "1.2": edited(
        _SAMPLER,
        (
            "        for batch in batches:\n",
            "        for batch in batches:\n            sum(i * i for i in range(400_000))\n",
        ),
    ),
}
