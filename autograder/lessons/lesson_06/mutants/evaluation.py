"""Wrong solutions of 6.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_EVALUATE = """
import torch
import torch.distributed as dist
import torch.nn.functional as F

@exercise("6.5")
def evaluate_on_ranks(model, batches):
    was_training = model.training
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    with torch.no_grad():
        for batch in batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            sums[0] += F.cross_entropy(logits, batch["labels"], reduction="sum")
            sums[1] += (logits.argmax(-1) == batch["labels"]).sum()
            sums[2] += len(batch["labels"])
    model.train(was_training)
    dist.all_reduce(sums)
    return {"loss": (sums[0] / sums[2]).item(), "accuracy": (sums[1] / sums[2]).item(), "num_samples": int(sums[2])}
"""
_REDUCE = "    dist.all_reduce(sums)\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.5": (
        Mutant(
            name="mean of rank means",
            source=edited(
                _EVALUATE,
                (
                    _REDUCE,
                    "    has_any = torch.tensor(float(sums[2] > 0))\n    dist.all_reduce(has_any)\n"
                    "    count = sums[2].clone()\n    means = sums / count.clamp(min=1)\n"
                    "    dist.all_reduce(means)\n    dist.all_reduce(count)\n"
                    "    sums = means / has_any * count\n    sums[2] = count\n",
                ),
            ),
            says="mean of rank means",
        ),
        Mutant(
            name="a collective for each batch",
            source=edited(
                _EVALUATE,
                (
                    '            sums[2] += len(batch["labels"])\n',
                    '            sums[2] += len(batch["labels"])\n            dist.barrier()\n',
                ),
            ),
            says="in one branch only",
        ),
        Mutant(
            name="a barrier on rank 0 alone",
            source=edited(
                _EVALUATE, (_REDUCE, _REDUCE + "    if dist.get_rank() == 0:\n        dist.barrier()\n")
            ),
            says="in one branch only",
        ),
        Mutant(
            name="only rank 0 knows the result",
            source=edited(_EVALUATE, (_REDUCE, "    dist.reduce(sums, dst=0)\n")),
            says="only rank 0 knows the result",
        ),
        Mutant(
            name="each rank reports its own shard",
            source=edited(_EVALUATE, (_REDUCE, "    sums += 1e-12\n")),
            says="reports its own shard",
        ),
        Mutant(
            name="forgot eval",
            source=edited(_EVALUATE, ("    model.eval()\n", "")),
            says="`model.eval()` is missing",
        ),
    ),
}
