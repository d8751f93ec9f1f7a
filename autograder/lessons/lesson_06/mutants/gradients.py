"""Wrong solutions of 6.2 and 6.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_PLAIN = """
import torch
import torch.distributed as dist
import torch.nn.functional as F

@exercise("6.2")
class PlainDDP:
    def __init__(self, model):
        self.model = model
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, src=0)

    def loss_and_gradients(self, batch):
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
        totals = torch.tensor([loss.item(), len(batch["labels"])], dtype=torch.float64)
        dist.all_reduce(totals)
        (loss / totals[1]).backward()
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
        return float(totals[0] / totals[1])
"""
_REDUCE = "                dist.all_reduce(parameter.grad)\n"

_ACCUMULATE = """
import contextlib
import torch
import torch.distributed as dist
import torch.nn.functional as F

@exercise("6.4")
def accumulate_step(model, micro_batches, optimizer):
    total = torch.tensor(sum(len(batch["labels"]) for batch in micro_batches))
    dist.all_reduce(total)
    optimizer.zero_grad()
    for number, batch in enumerate(micro_batches, start=1):
        is_last = number == len(micro_batches)
        with contextlib.nullcontext() if is_last else model.no_sync():
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            (loss * dist.get_world_size() / total).backward()
    optimizer.step()
"""
_WITH = "        with contextlib.nullcontext() if is_last else model.no_sync():\n"
_LOSS = """            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
"""
_SCALED = "(loss * dist.get_world_size() / total)"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.2": wrong(
        _PLAIN,
        {
            "no broadcast at the start": (
                "nothing is broadcast",
                "        for tensor in model.state_dict().values():\n            dist.broadcast(tensor, src=0)\n",
                "",
            ),
            "summed, not averaged": (
                "summed, not averaged",
                "(loss / totals[1])",
                "(loss / totals[1] * dist.get_world_size())",
            ),
            "mean of rank means": (
                "mean of rank means",
                "(loss / totals[1])",
                '(loss / len(batch["labels"]) / dist.get_world_size())',
            ),
            "gradients stay on their rank": (
                "nothing is exchanged",
                (_REDUCE, "                pass\n"),
                ("(loss / totals[1])", '(loss / len(batch["labels"]))'),
            ),
            "an all-reduce on rank 0 alone": (
                "in one branch only",
                "        return",
                "        if dist.get_rank() == 0:\n            dist.all_reduce(torch.zeros(1))\n        return",
            ),
        },
    ),
    "6.4": wrong(
        _ACCUMULATE,
        {
            "no no_sync at all": (
                "gradients cross at every micro-batch",
                _WITH,
                "        with contextlib.nullcontext():\n",
            ),
            "no_sync around backward alone": (
                "DDP decides in `forward`",
                _WITH + _LOSS,
                _LOSS.replace("    " * 3, "    " * 2) + _WITH,
            ),
            "no_sync around the last one too": (
                "the last micro-batch is inside `no_sync` too",
                "contextlib.nullcontext() if is_last else model.no_sync()",
                "model.no_sync()",
            ),
            "no_sync left open when an exception is raised": (
                "left open when an exception is raised",
                _WITH,
                "        model.require_backward_grad_sync = is_last\n        if True:\n",
            ),
            "loss not rescaled for DDP's average": (
                "divides the sum over ranks by world_size once more",
                _SCALED,
                "(loss / total)",
            ),
            "mean of micro-batch means": (
                "small micro-batches weigh as much as large ones",
                _SCALED,
                '(loss / len(batch["labels"]) / len(micro_batches))',
            ),
            "swallows the error": (
                "swallows errors",
                _LOSS,
                "            try:\n"
                + '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                + "            except IndexError:\n                continue\n"
                + '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
            ),
        },
    ),
}
