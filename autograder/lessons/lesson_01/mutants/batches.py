"""Wrong solutions of 1.1 and 1.2, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

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

# Right and too slow: these must never pass.
SLOW_COLLATE = edited(
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
)
SLOW_SAMPLER = edited(
    _SAMPLER,
    (
        "        for batch in batches:\n",
        "        for batch in batches:\n            sum(i * i for i in range(400_000))\n",
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "1.1": wrong(
        _COLLATE,
        {
            "padding to a global maximum": ("global maximum", "max(len(ids) for ids, _ in batch)", "1024"),
            "attention mask ignores padding": (
                "marks padding as real",
                "mask[row, : len(ids)] = True",
                "mask[row] = True",
            ),
            "long samples are cut": (
                "long samples are cut",
                ("max(len(ids) for ids, _ in batch)", "min(len(ids) for ids, _ in batch)"),
                ("input_ids[row, : len(ids)]", "input_ids[row, : min(len(ids), width)]"),
            ),
            "mask of the wrong type": ("another dtype", "dtype=torch.bool", "dtype=torch.int64"),
        },
    ),
    "1.2": wrong(
        _SAMPLER,
        {
            "bucketing that never reshuffles": ("never reshuffles", "[self.seed, self.epoch]", "self.seed"),
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
            "batches from short to long": (
                "curriculum nobody asked for",
                "        rng.shuffle(batches := list(batches))\n",
                "",
            ),
            "random batches": (
                "still mix short and long",
                "np.lexsort((rng.random(len(self.lengths)), self.lengths))",
                "rng.permutation(len(self.lengths))",
            ),
        },
    ),
}
