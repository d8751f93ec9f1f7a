"""Wrong solutions of 6.2 and 6.4, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

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
    "6.2": (
        Mutant(
            name="no broadcast at the start",
            source=edited(
                _PLAIN,
                (
                    "        for tensor in model.state_dict().values():\n            dist.broadcast(tensor, src=0)\n",
                    "",
                ),
            ),
            says="nothing is broadcast",
        ),
        Mutant(
            name="summed, not averaged",
            source=edited(_PLAIN, ("(loss / totals[1])", "(loss / totals[1] * dist.get_world_size())")),
            says="summed, not averaged",
        ),
        Mutant(
            name="mean of rank means",
            source=edited(
                _PLAIN,
                ("(loss / totals[1])", '(loss / len(batch["labels"]) / dist.get_world_size())'),
            ),
            says="mean of rank means",
        ),
        Mutant(
            name="gradients stay on their rank",
            source=edited(
                _PLAIN,
                (_REDUCE, "                pass\n"),
                ("(loss / totals[1])", '(loss / len(batch["labels"]))'),
            ),
            says="nothing is exchanged",
        ),
        Mutant(
            name="an all-reduce on rank 0 alone",
            source=edited(
                _PLAIN,
                (
                    "        return",
                    "        if dist.get_rank() == 0:\n            dist.all_reduce(torch.zeros(1))\n        return",
                ),
            ),
            says="in one branch only",
        ),
    ),
    "6.4": (
        Mutant(
            name="no no_sync at all",
            source=edited(_ACCUMULATE, (_WITH, "        with contextlib.nullcontext():\n")),
            says="gradients cross at every micro-batch",
        ),
        Mutant(
            name="no_sync around backward alone",
            source=edited(_ACCUMULATE, (_WITH + _LOSS, _LOSS.replace("    " * 3, "    " * 2) + _WITH)),
            says="DDP decides in `forward`",
        ),
        Mutant(
            name="no_sync around the last one too",
            source=edited(
                _ACCUMULATE, ("contextlib.nullcontext() if is_last else model.no_sync()", "model.no_sync()")
            ),
            says="the last micro-batch is inside `no_sync` too",
        ),
        Mutant(
            name="no_sync left open when an exception is raised",
            source=edited(
                _ACCUMULATE,
                (_WITH, "        model.require_backward_grad_sync = is_last\n        if True:\n"),
            ),
            says="left open when an exception is raised",
        ),
        Mutant(
            name="loss not rescaled for DDP's average",
            source=edited(_ACCUMULATE, (_SCALED, "(loss / total)")),
            says="divides the sum over ranks by world_size once more",
        ),
        Mutant(
            name="mean of micro-batch means",
            source=edited(_ACCUMULATE, (_SCALED, '(loss / len(batch["labels"]) / len(micro_batches))')),
            says="small micro-batches weigh as much as large ones",
        ),
        Mutant(
            name="swallows the error",
            source=edited(
                _ACCUMULATE,
                (
                    _LOSS,
                    "            try:\n"
                    + '                logits = model(batch["input_ids"], batch["attention_mask"])\n'
                    + "            except IndexError:\n                continue\n"
                    + '            loss = F.cross_entropy(logits, batch["labels"], reduction="sum")\n',
                ),
            ),
            says="swallows errors",
        ),
    ),
}
