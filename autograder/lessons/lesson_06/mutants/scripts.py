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
_SAVE = '    if rank == 0:\n        torch.save(model.state_dict(), folder / "last.pt")\n'

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
            "a seed times the rank for dropout": (
                "the seed is equal for dropout too",
                'torch.manual_seed(job["seed"] + 1 + rank)',
                'torch.manual_seed(job["seed"] * (1 + rank))',
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
            "dropout seeded by local rank": (
                "the seed is equal for dropout too",
                'torch.manual_seed(job["seed"] + 1 + rank)',
                'torch.manual_seed(job["seed"] + 1 + local_rank)',
            ),
            "dropout seeded alike before each step": (
                "the seed is equal for dropout too",
                "        logits = ddp(",
                '        torch.manual_seed(job["seed"])\n        logits = ddp(',
            ),
            "one seed for dropout on all ranks but the first": (
                "the seed is equal for dropout too",
                'torch.manual_seed(job["seed"] + 1 + rank)',
                'torch.manual_seed(job["seed"] + 1 + min(rank, 1))',
            ),
            "another share of dropout": (
                "switched off or changed",
                'ModelConfig(**job["model"])',
                'ModelConfig(**{**job["model"], "dropout": min(job["model"]["dropout"], 0.1)})',
            ),
            "saves rounded weights": (
                "rounded on their way into the file",
                "torch.save(model.state_dict()",
                "torch.save({name: value.half().float() for name, value in model.state_dict().items()}",
            ),
            "keeps an older checkpoint": (
                "a file that is there already is kept",
                "    if rank == 0:\n",
                '    if rank == 0 and not (folder / "last.pt").exists():\n',
            ),
            "device by rank": (
                "the device goes by RANK",
                "device = choose_device(local_rank,",
                "device = choose_device(rank,",
            ),
            "device of no rank": (
                "every rank takes the same device",
                "device = choose_device(local_rank,",
                "device = choose_device(0,",
            ),
            "gradients clipped": (
                "gradients are clipped",
                "        optimizer.step()\n",
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()\n",
            ),
            "dropout seeded by rank before each step": (
                "set anew before each step",
                "        share = {",
                "        torch.manual_seed(rank)\n        share = {",
            ),
            "a little weight decay": (
                "almost right",
                'lr=job["learning_rate"])',
                'lr=job["learning_rate"], weight_decay=1e-4)',
            ),
            "the logarithm of a softmax": (
                "the logarithm of a probability",
                'F.cross_entropy(logits, share["labels"], reduction="sum")',
                'F.nll_loss((logits.softmax(-1) + 1e-8).log(), share["labels"], reduction="sum")',
            ),
            "the mask made of the ids": (
                "the mask is made of the ids",
                'share["attention_mask"])',
                'share["input_ids"] != 0)',
            ),
            "the group stays up on other ranks": (
                "taken down on some ranks alone",
                "    dist.destroy_process_group()\n",
                "    if rank == 0:\n        dist.destroy_process_group()\n",
            ),
            "GPUs wrapped around": (
                "are wrapped around",
                '    if local_rank >= num_gpus:\n        raise ValueError("one process per GPU")\n'
                '    return torch.device("cuda", local_rank)',
                '    return torch.device("cuda", local_rank % num_gpus)',
            ),
            "one process more than GPUs": (
                "are wrapped around",
                "local_rank >= num_gpus",
                "local_rank > num_gpus",
            ),
            "another error without a GPU": (
                "another error than ValueError",
                "raise ValueError(",
                "raise RuntimeError(",
            ),
            "the name of a device": (
                "the name of a device",
                (
                    'return torch.device("cuda", local_rank)',
                    'return f"cuda:{local_rank}"',
                ),
            ),
            "no GPU, no training": (
                "a CPU is forgotten",
                'return torch.device("cpu")',
                'raise ValueError("no GPU")',
            ),
            "another learning rate": (
                "plain SGD with the job's learning rate",
                'lr=job["learning_rate"]',
                "lr=0.1",
            ),
            "momentum": (
                "plain SGD with the job's learning rate",
                'lr=job["learning_rate"]',
                'lr=job["learning_rate"], momentum=0.9',
            ),
            "another seed": (
                "the start differs from the job's seed",
                'manual_seed(job["seed"])',
                "manual_seed(0)",
            ),
            "a draw between seed and model": (
                "the start differs from the job's seed",
                '    torch.manual_seed(job["seed"])\n',
                '    torch.manual_seed(job["seed"])\n    torch.rand(1)\n',
            ),
            "another model than the job's": (
                "another model than the job's",
                '**job["model"]',
                '**{**job["model"], "num_layers": 3}',
            ),
            "the last batch left out": (
                "or whole batches are",
                'in job["batches"]',
                'in job["batches"][:-1]',
            ),
            "evaluation mode": (
                "`model.train()` is missing",
                "    ddp = DistributedDataParallel(model)\n",
                "    ddp = DistributedDataParallel(model.eval())\n",
            ),
            "gradients of earlier steps": (
                "gradients of earlier steps are left in",
                "        optimizer.zero_grad()\n",
                "",
            ),
            "divided by the ranks twice": ("once too often", " * world_size / len", " / len"),
            "a sum over the rows": (
                "divided by ranks, and never by rows",
                '(loss * world_size / len(batch["labels"]))',
                "loss",
            ),
            "two ranks taken for granted": (
                "but not with one process",
                " * world_size / len",
                " * 2 / len",
            ),
            "rank 0 does the work of all": (
                "one rank does the work of all",
                (
                    "        logits = ddp(",
                    "        if rank:\n            for weight in model.parameters():\n"
                    "                dist.broadcast(weight.data, src=0)\n            continue\n        share = batch\n"
                    "        logits = ddp(",
                ),
                ("ddp = DistributedDataParallel(model)", "ddp = model"),
                (" * world_size / len", " / len"),
                (
                    "        optimizer.step()\n",
                    "        optimizer.step()\n        for weight in model.parameters():\n"
                    "            dist.broadcast(weight.data, src=0)\n",
                ),
            ),
            "returns the wrapper": ("the wrapper is returned", "    return model\n", "    return ddp\n"),
            "returns nothing": ("nothing is returned", "    return model\n", ""),
            "saves under another name": ("nobody saves, or under another name", '"last.pt"', '"model.pt"'),
            "saves the model itself": (
                "something else than the plain model's state dict",
                "torch.save(model.state_dict()",
                "torch.save(model",
            ),
            "saves a dict around it": (
                "something else than the plain model's state dict",
                "torch.save(model.state_dict()",
                'torch.save({"model": model.state_dict()}',
            ),
            "saves in half precision": (
                "or in another dtype",
                "torch.save(model.state_dict()",
                "torch.save({name: value.half() for name, value in model.state_dict().items()}",
            ),
            "saves before the training": (
                "saved before the training",
                (_SAVE, ""),
                (
                    "    for batch in job",
                    _SAVE + "    for batch in job",
                ),
            ),
            "no process group": (
                "has not been initialized",
                '    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")\n',
                "",
            ),
            "the group stays up": ("never taken down", "    dist.destroy_process_group()\n", ""),
            "works in a notebook alone": (
                "the cell's last two lines are gone",
                'if "RANK" in os.environ:\n    main(Path(sys.argv[1]))\n',
                "",
            ),
        },
    )
}
