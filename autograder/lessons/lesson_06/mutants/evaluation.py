"""Wrong solutions of 6.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    "6.5": wrong(
        _EVALUATE,
        {
            "mean of rank means": (
                "mean of rank means",
                _REDUCE,
                "    has_any = torch.tensor(float(sums[2] > 0))\n    dist.all_reduce(has_any)\n"
                "    count = sums[2].clone()\n    means = sums / count.clamp(min=1)\n"
                "    dist.all_reduce(means)\n    dist.all_reduce(count)\n"
                "    sums = means / has_any * count\n    sums[2] = count\n",
            ),
            "a collective for each batch": (
                "in one branch only",
                '            sums[2] += len(batch["labels"])\n',
                '            sums[2] += len(batch["labels"])\n            dist.barrier()\n',
            ),
            "a barrier on rank 0 alone": (
                "in one branch only",
                _REDUCE,
                _REDUCE + "    if dist.get_rank() == 0:\n        dist.barrier()\n",
            ),
            "only rank 0 knows the result": (
                "only rank 0 knows the result",
                _REDUCE,
                "    dist.reduce(sums, dst=0)\n",
            ),
            "each rank reports its own shard": ("reports its own shard", _REDUCE, "    sums += 1e-12\n"),
            "forgot eval": ("`model.eval()` is missing", "    model.eval()\n", ""),
        },
    )
}
