"""Wrong solutions of 6.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "6.3": (
        Mutant(
            name="every rank writes the checkpoint",
            source=edited(_SCRIPT, ("    if rank == 0:\n", "    if True:\n")),
            says="every rank writes the checkpoint",
        ),
        Mutant(
            name="every local rank 0 writes the checkpoint",
            source=edited(_SCRIPT, ("    if rank == 0:\n", "    if local_rank == 0:\n")),
            says="every rank with *local* rank 0 writes",
        ),
        Mutant(
            name="barrier in one branch only",
            source=edited(_SCRIPT, ("    dist.barrier()\n", "    if rank == 0:\n        dist.barrier()\n")),
            says="in one branch only",
        ),
        Mutant(
            name="the same seed for dropout",
            source=edited(_SCRIPT, ('    torch.manual_seed(job["seed"] + 1 + rank)\n', "")),
            says="the seed is equal for dropout too",
        ),
        Mutant(
            name="device 0 on every rank",
            source=edited(_SCRIPT, ('torch.device("cuda", local_rank)', 'torch.device("cuda", 0)')),
            says="device 0 on every rank",
        ),
        Mutant(
            name="no sampler",
            source=edited(_SCRIPT, ("tensor[rank::world_size]", "tensor"), (" * world_size / len", " / len")),
            says="no sampler",
        ),
        Mutant(
            name="mean of rank means",
            source=edited(_SCRIPT, ('* world_size / len(batch["labels"])', '/ len(share["labels"])')),
            says="mean of rank means",
        ),
        Mutant(
            name="shares by local rank",
            source=edited(_SCRIPT, ("tensor[rank::world_size]", "tensor[local_rank::world_size]")),
            says="LOCAL_RANK",
        ),
        Mutant(
            name="no DDP",
            source=edited(_SCRIPT, ("ddp = DistributedDataParallel(model)", "ddp = model")),
            says="gradients are not exchanged",
        ),
        Mutant(
            name="saves the wrapper",
            source=edited(_SCRIPT, ("torch.save(model.state_dict()", "torch.save(ddp.state_dict()")),
            says="begin with `module.`",
        ),
        Mutant(
            name="works in a notebook alone",
            source=edited(_SCRIPT, ('if "RANK" in os.environ:\n    main(Path(sys.argv[1]))\n', "")),
            says="the cell's last two lines are gone",
        ),
    ),
}
