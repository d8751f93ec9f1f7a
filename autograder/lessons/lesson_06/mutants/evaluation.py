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

_SUMMED_LOSS = 'F.cross_entropy(logits, batch["labels"], reduction="sum")'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "6.5": wrong(
        _EVALUATE,
        {
            "every rank measures the samples of all": (
                "each rank computes all of them",
                (
                    "        for batch in batches:\n",
                    "        found = [None] * dist.get_world_size()\n"
                    "        dist.all_gather_object(found, list(batches))\n"
                    "        for batch in sum(found, []):\n",
                ),
                (_REDUCE, ""),
            ),
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
            "left in evaluation mode": (
                "the mode that the model came in is not put back",
                "    model.train(was_training)\n",
                "",
            ),
            "only the outermost flag put back": (
                "the flag of the outermost module alone is put back",
                "model.train(was_training)",
                "model.training = was_training",
            ),
            "always back to training mode": (
                "always left in training mode",
                "model.train(was_training)",
                "model.train()",
            ),
            "gradients recorded": (
                "`torch.no_grad()` is missing",
                ("torch.no_grad()", "torch.enable_grad()"),
                (_SUMMED_LOSS, _SUMMED_LOSS + ".detach()"),
            ),
            "gradients left switched off": (
                "the switch of gradients is not given back",
                "    with torch.no_grad():\n",
                "    torch.set_grad_enabled(False)\n    if True:\n",
            ),
            "gradients always switched on": (
                "the switch of gradients is not given back",
                "    model.train(was_training)\n",
                "    model.train(was_training)\n    torch.set_grad_enabled(True)\n",
            ),
            "tensors instead of numbers": (
                "tensors or NumPy's numbers",
                '{"loss": (sums[0] / sums[2]).item(), "accuracy": (sums[1] / sums[2]).item()',
                '{"loss": sums[0] / sums[2], "accuracy": sums[1] / sums[2]',
            ),
            "mean of batch means": (
                "a mean of batch means",
                ('batch["labels"], reduction="sum")', 'batch["labels"])'),
                (
                    "    sums = torch.zeros(3",
                    "    num_batches = torch.zeros(1, dtype=torch.float64)\n    sums = torch.zeros(3",
                ),
                ("            logits = model(", "            num_batches += 1\n            logits = model("),
                (
                    _REDUCE,
                    _REDUCE + "    dist.all_reduce(num_batches)\n    sums[0] *= sums[2] / num_batches[0]\n",
                ),
            ),
            "mean of rank accuracies": (
                "mean of rank means",
                _REDUCE,
                "    share = sums[1] / sums[2].clamp(min=1)\n    has_any = (sums[2] > 0).double()\n"
                "    dist.all_reduce(share)\n    dist.all_reduce(has_any)\n"
                + _REDUCE
                + "    sums[1] = share / has_any * sums[2]\n",
            ),
            "sums not divided": (
                "never divided by their number",
                "(sums[0] / sums[2]).item()",
                "sums[0].item()",
            ),
            "hits not divided": (
                "never divided by their number",
                "(sums[1] / sums[2]).item()",
                "sums[1].item()",
            ),
            "samples of its own shard": (
                "reports its own shard",
                (_REDUCE, "    own = int(sums[2])\n" + _REDUCE),
                ("int(sums[2])}", "own}"),
            ),
            "the largest sigmoid": (
                "another number is summed",
                "logits.argmax(-1)",
                "logits.sigmoid().argmax(-1)",
            ),
            "the smallest logit": ("another number is summed", "logits.argmax(-1)", "logits.argmin(-1)"),
            "another loss": (
                "another number is summed",
                'reduction="sum")',
                'reduction="sum", label_smoothing=0.1)',
            ),
            "the logarithm of a softmax": (
                "the logarithm of a probability",
                _SUMMED_LOSS,
                'F.nll_loss((logits.softmax(-1) + 1e-8).log(), batch["labels"], reduction="sum")',
            ),
            "the logarithm of a bare softmax": (
                "so small that float32 holds 0",
                _SUMMED_LOSS,
                'F.nll_loss(logits.softmax(-1).log(), batch["labels"], reduction="sum")',
            ),
            "batches without a loss left out": (
                "a loss that is NaN is hidden",
                "            sums[0] +=",
                "            if logits.isnan().any():\n                continue\n            sums[0] +=",
            ),
            "NaN made a number": (
                "a loss that is NaN is hidden",
                _SUMMED_LOSS,
                _SUMMED_LOSS + ".nan_to_num()",
            ),
            "labels popped out of the batches": (
                "taken out of the caller's own batches",
                '            sums[2] += len(batch["labels"])\n',
                '            sums[2] += len(batch.pop("labels"))\n',
            ),
            "rows sorted in place": (
                "or written over",
                "            logits = model(",
                "            for rows in batch.values():\n                rows.copy_(rows.flip(0))\n"
                "            logits = model(",
            ),
            "all parameters trained afterwards": (
                "the model is changed",
                ("    with torch.no_grad():\n", "    model.requires_grad_(False)\n    if True:\n"),
                ("    model.train(was", "    model.requires_grad_(True)\n    model.train(was"),
            ),
            "the mask made of the ids": (
                "the mask is made of the ids",
                'batch["attention_mask"])',
                'batch["input_ids"] != 0)',
            ),
            "rounded to four digits": (
                "almost right, and rounded",
                "(sums[0] / sums[2]).item()",
                "round((sums[0] / sums[2]).item(), 4)",
            ),
            "sums in the type of the weights": (
                "the sums are kept in the type of the model's weights",
                "torch.zeros(3, dtype=torch.float64)",
                "next(model.parameters()).new_zeros(3)",
            ),
            "without accuracy": (
                "a key is missing",
                '"accuracy": (sums[1] / sums[2]).item(), ',
                "",
            ),
            "goes over the batches twice": (
                "an iterator comes but once",
                (
                    "    sums = torch.zeros(3, dtype=torch.float64)\n",
                    "    sums = torch.zeros(3, dtype=torch.float64)\n"
                    '    sums[2] = sum(len(batch["labels"]) for batch in batches)\n',
                ),
                ('            sums[2] += len(batch["labels"])\n', ""),
            ),
            "sums that go on in the next call": (
                "something of the call before is left in",
                (
                    "    sums = torch.zeros(3, dtype=torch.float64)\n",
                    "    sums = getattr(torch, 'sums', torch.zeros(3, dtype=torch.float64))\n",
                ),
                ("    dist.all_reduce(sums)\n", "    torch.sums = sums.clone()\n    dist.all_reduce(sums)\n"),
            ),
            "another switch left on": (
                "switched for the whole process",
                "    model.eval()\n",
                "    model.eval()\n    torch.use_deterministic_algorithms(True)\n",
            ),
            "without a batch no report": (
                "in one branch only",
                _REDUCE,
                "    if not sums[2]:\n        return None\n" + _REDUCE,
            ),
            "a report on rank 0 alone": (
                "nothing is returned on this rank",
                _REDUCE,
                _REDUCE + "    if dist.get_rank():\n        return None\n",
            ),
        },
    )
}
