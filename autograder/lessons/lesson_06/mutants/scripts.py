"""Wrong solutions of 6.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_SCRIPT = """
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise
from course_lib.models.transformers import ModelConfig, TextClassifier

def choose_device(local_rank, num_gpus):
    if num_gpus == 0:
        return torch.device("cpu")
    if local_rank >= num_gpus:
        raise ValueError("one process per GPU")
    return torch.device("cuda", local_rank)

@exercise("6.3")
def main(folder):
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    device = choose_device(local_rank, torch.cuda.device_count())
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")
    job = torch.load(folder / "job.pt", weights_only=True)
    torch.manual_seed(job["seed"])
    model = TextClassifier(ModelConfig(**job["model"])).to(device)
    torch.manual_seed(job["seed"] + 1 + rank)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=job["learning_rate"])
    for batch in job["batches"]:
        share = {name: tensor[rank::world_size].to(device) for name, tensor in batch.items()}
        logits = ddp(share["input_ids"], share["attention_mask"])
        loss = F.cross_entropy(logits, share["labels"], reduction="sum")
        optimizer.zero_grad()
        (loss * world_size / len(batch["labels"])).backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), folder / "last.pt")
    dist.barrier()
    dist.destroy_process_group()
    return model

if "RANK" in os.environ:
    main(Path(sys.argv[1]))
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.3": wrong(
        _SCRIPT,
        {
            "every rank writes the checkpoint": (
                "every rank writes the checkpoint",
                "    if rank == 0:\n",
                "    if True:\n",
            ),
            "every local rank 0 writes the checkpoint": (
                "every rank with *local* rank 0 writes",
                "    if rank == 0:\n",
                "    if local_rank == 0:\n",
            ),
            "barrier in one branch only": (
                "in one branch only",
                "    dist.barrier()\n",
                "    if rank == 0:\n        dist.barrier()\n",
            ),
            "the same seed for dropout": (
                "the seed is equal for dropout too",
                '    torch.manual_seed(job["seed"] + 1 + rank)\n',
                "",
            ),
            "device 0 on every rank": (
                "device 0 on every rank",
                'torch.device("cuda", local_rank)',
                'torch.device("cuda", 0)',
            ),
            "no sampler": (
                "no sampler",
                ("tensor[rank::world_size]", "tensor"),
                (" * world_size / len", " / len"),
            ),
            "mean of rank means": (
                "mean of rank means",
                '* world_size / len(batch["labels"])',
                '/ len(share["labels"])',
            ),
            "shares by local rank": (
                "LOCAL_RANK",
                "tensor[rank::world_size]",
                "tensor[local_rank::world_size]",
            ),
            "no DDP": ("gradients are not exchanged", "ddp = DistributedDataParallel(model)", "ddp = model"),
            "saves the wrapper": (
                "begin with `module.`",
                "torch.save(model.state_dict()",
                "torch.save(ddp.state_dict()",
            ),
            "works in a notebook alone": (
                "the cell's last two lines are gone",
                'if "RANK" in os.environ:\n    main(Path(sys.argv[1]))\n',
                "",
            ),
        },
    )
}
