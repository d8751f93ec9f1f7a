"""Wrong solutions of 6.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_PARALLEL = """
import torch
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
        "        for parameter in [p for p in model.parameters() if p.requires_grad]:\n"
        "            dist.all_reduce(parameter.grad)\n            parameter.grad /= world_size\n"
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
            "repeats a row to divide evenly": (
                "samples are repeated",
                "    for batch in batches:\n",
                "    for batch in batches:\n        if len(batch['labels']) % 2:\n"
                "            batch = {name: torch.cat([rows, rows[:1]]) for name, rows in batch.items()}\n",
            ),
            "the last batch left out": ("steps are left out", "in batches:", "in batches[:-1]:"),
            "one step on rank 0 alone": (
                "made by one rank alone",
                "        optimizer.step()\n",
                "        if rank == 0:\n            optimizer.step()\n        for weight in model.parameters():\n"
                "            dist.broadcast(weight.data, src=0)\n",
            ),
            "most of the work on one rank": (
                "one rank does most of the work",
                "tensor[rank::world_size]",
                "tensor[: len(tensor) // 3] if rank else tensor[len(tensor) // 3 :]",
            ),
            "a good half on one rank": (
                "one rank does most of the work",
                "tensor[rank::world_size]",
                "tensor[round(len(tensor) * 0.58) :] if rank else tensor[: round(len(tensor) * 0.58)]",
            ),
            "every batch cut at half of the first": (
                "every batch is cut at the same place",
                (
                    "    for batch in batches:\n",
                    '    half = (len(batches[0]["labels"]) + 1) // 2\n'
                    "    mine = slice(half, None) if rank else slice(0, half)\n    for batch in batches:\n",
                ),
                ("tensor[rank::world_size]", "tensor[mine]"),
            ),
            "half of the words on each rank": (
                "one rank does most of the work",
                "        share = {name: tensor[rank::world_size] for name, tensor in batch.items()}\n",
                '        words = batch["attention_mask"].sum(1)\n        order = words.argsort(descending=True)\n'
                "        is_first = words[order].cumsum(0) * 2 <= words.sum()\n"
                "        mine = order[is_first] if rank else order[~is_first]\n"
                "        share = {name: tensor[mine] for name, tensor in batch.items()}\n",
            ),
            "a copy is trained": (
                "a copy is trained",
                "    ddp = DistributedDataParallel(model)\n",
                "    import copy\n    ddp = DistributedDataParallel(copy.deepcopy(model))\n",
            ),
            "an optimizer of its own": (
                "another step than the optimizer's",
                "    for batch in batches:\n",
                "    optimizer = torch.optim.SGD(model.parameters(), lr=optimizer.param_groups[0]['lr'])\n"
                "    for batch in batches:\n",
            ),
            "divided by the ranks twice": ("once too often", " * world_size / ", " / "),
            "a sum over the rows": (
                "never divided by their number",
                '(loss * world_size / len(batch["labels"]))',
                "(loss * world_size)",
            ),
            "a sum that DDP divides": (
                "divided by ranks, and never by rows",
                '(loss * world_size / len(batch["labels"]))',
                "loss",
            ),
            "multiplied by the ranks twice": (
                "multiplied by the ranks",
                "* world_size /",
                "* world_size * world_size /",
            ),
            "old gradients left in": (
                "gradients of earlier steps are left in",
                "        optimizer.zero_grad()\n",
                "",
            ),
            "gradients from before left in": (
                "what was in `.grad` before the call",
                ("        optimizer.zero_grad()\n", ""),
                ("        optimizer.step()\n", "        optimizer.step()\n        optimizer.zero_grad()\n"),
            ),
            "one group of parameters set to zero": (
                "another step than the optimizer's",
                "        optimizer.zero_grad()\n",
                "        for weight in optimizer.param_groups[0]['params']:\n            weight.grad = None\n",
            ),
            "gradients rounded to half precision": (
                "rounded on their way",
                "    for batch in batches:\n",
                "    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
                "    ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)\n"
                "    for batch in batches:\n",
            ),
            "cuts the caller's own batches": (
                "cut out of the caller's own batches",
                (
                    "        share = {name: tensor[rank::world_size] for name, tensor in batch.items()}\n",
                    "        num_rows, share = len(batch['labels']), batch\n"
                    "        batch |= {name: tensor[rank::world_size] for name, tensor in batch.items()}\n",
                ),
                ('len(batch["labels"])', "num_rows"),
            ),
            "the list emptied on the way": (
                "cut out of the caller's own batches",
                "    for batch in batches:\n",
                "    while batches:\n        batch = batches.pop(0)\n",
            ),
            "weights averaged in place of gradients": (
                "right with SGD and not with Adam",
                ("    ddp = DistributedDataParallel(model)\n", "    ddp = model\n"),
                (
                    "        optimizer.step()\n",
                    "        optimizer.step()\n        for weight in model.parameters():\n"
                    "            dist.all_reduce(weight.data)\n            weight.data /= world_size\n",
                ),
            ),
            "the logarithm of a softmax": (
                "the logarithm of a probability",
                'F.cross_entropy(logits, share["labels"], reduction="sum")',
                'F.nll_loss((logits.softmax(-1) + 1e-8).log(), share["labels"], reduction="sum")',
            ),
            "NaN made a number": (
                "a loss that is NaN is hidden",
                "        optimizer.step()\n",
                "        for weight in model.parameters():\n            weight.grad.nan_to_num_()\n"
                "        optimizer.step()\n",
            ),
            "gradients left switched off": (
                "switched for the whole process",
                "        optimizer.step()\n",
                "        optimizer.step()\n    torch.set_grad_enabled(False)\n",
            ),
            "a barrier on rank 0 alone": (
                "in one branch only",
                "        optimizer.step()\n",
                "        optimizer.step()\n        if rank == 0:\n            dist.barrier()\n",
            ),
            "hooks left on the parameters": (
                "an earlier call has left",
                (
                    "    ddp = DistributedDataParallel(model)\n",
                    "    ddp = model\n    for weight in model.parameters():\n"
                    "        weight.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))\n",
                ),
                (" * world_size / ", " / "),
            ),
            "evaluation mode": ("switched to evaluation mode", "    model.train()\n", "    model.eval()\n"),
            "the mask made of the ids": (
                "the mask is made of the ids",
                'share["attention_mask"])',
                'share["input_ids"] != 0)',
            ),
            "cut to the most words": (
                "words are cut off",
                "        logits = ddp(",
                '        width = share["attention_mask"].sum(1).max()\n'
                '        share |= {name: share[name][:, :width] for name in ("input_ids", "attention_mask")}\n'
                "        logits = ddp(",
            ),
            "another loss": (
                "another loss than",
                'reduction="sum")',
                'reduction="sum", label_smoothing=0.1)',
            ),
        },
    )
    + wrong(SLOW_RANKS, {"one rank after the other": ("the ranks wait",)}, is_timed=True)
}
