"""Wrong solutions of 6.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_PARALLEL = """
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

@exercise("6.6")
def train_in_parallel(model, batches, optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model.train()
    ddp = DistributedDataParallel(model)
    for batch in batches:
        share = {name: tensor[rank::world_size] for name, tensor in batch.items()}
        logits = ddp(share["input_ids"], share["attention_mask"])
        loss = F.cross_entropy(logits, share["labels"], reduction="sum")
        optimizer.zero_grad()
        (loss * world_size / len(batch["labels"])).backward()
        optimizer.step()
"""

# Right and too slow: it must never pass.
SLOW_RANKS = edited(
    _PARALLEL,
    ("    ddp = DistributedDataParallel(model)\n", ""),
    (
        "        logits = ddp(",
        "        for _ in range(rank):\n            dist.barrier()\n        logits = model(",
    ),
    (
        "        optimizer.step()\n",
        "        for _ in range(world_size - 1 - rank):\n            dist.barrier()\n"
        "        for parameter in model.parameters():\n            dist.all_reduce(parameter.grad)\n"
        "            parameter.grad /= world_size\n"
        "        optimizer.step()\n",
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.6": wrong(
        _PARALLEL,
        {
            "no sampler: every rank computes everything": (
                "every rank computes the whole batch",
                ("tensor[rank::world_size]", "tensor"),
                (" * world_size / ", " / "),
            ),
            "drops what does not divide evenly": (
                "samples are dropped",
                "tensor[rank::world_size]",
                "tensor[: len(tensor) // world_size * world_size][rank::world_size]",
            ),
            "loss not rescaled": (
                "loss not rescaled",
                '* world_size / len(batch["labels"])',
                '/ len(share["labels"])',
            ),
            "gradients stay on their rank": (
                "gradients are not exchanged",
                "ddp = DistributedDataParallel(model)",
                "ddp = model",
            ),
        },
    )
    + wrong(SLOW_RANKS, {"one rank after the other": ("the ranks wait",)}, is_timed=True)
}
