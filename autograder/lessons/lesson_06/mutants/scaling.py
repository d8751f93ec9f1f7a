"""Wrong solutions of 6.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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

_TURNS = edited(
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
    "6.6": (
        Mutant(
            name="no sampler: every rank computes everything",
            source=edited(_PARALLEL, ("tensor[rank::world_size]", "tensor"), (" * world_size / ", " / ")),
            says="every rank computes the whole batch",
        ),
        Mutant(
            name="drops what does not divide evenly",
            source=edited(
                _PARALLEL,
                (
                    "tensor[rank::world_size]",
                    "tensor[: len(tensor) // world_size * world_size][rank::world_size]",
                ),
            ),
            says="samples are dropped",
        ),
        Mutant(
            name="loss not rescaled",
            source=edited(_PARALLEL, ('* world_size / len(batch["labels"])', '/ len(share["labels"])')),
            says="loss not rescaled",
        ),
        Mutant(
            name="gradients stay on their rank",
            source=edited(_PARALLEL, ("ddp = DistributedDataParallel(model)", "ddp = model")),
            says="gradients are not exchanged",
        ),
        Mutant(
            name="one rank after the other",
            source=_TURNS,
            says="the ranks wait",
            is_timed=True,
        ),
    ),
}

# Right and too slow: these must never pass.
SLOW: dict[str, str] = {"6.6": _TURNS}
