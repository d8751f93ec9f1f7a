"""Wrong solutions of 3.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

ACCUMULATED = """
from itertools import islice

import torch
import torch.nn.functional as F

@exercise("3.1")
def train_accumulated(model, micro_batches, optimizer, grad_accum_steps):
    model.train()
    iterator = iter(micro_batches)
    total, num_labels, updates = 0.0, 0, 0
    while window := list(islice(iterator, grad_accum_steps)):
        labels = sum((batch["labels"] != -100).sum() for batch in window)
        optimizer.zero_grad(set_to_none=True)
        for batch in window:
            logits = model(batch["input_ids"], batch["attention_mask"]).flatten(0, 1)
            loss = F.cross_entropy(logits, batch["labels"].flatten(), reduction="sum")
            (loss / labels).backward()
            total = total + loss.detach()
        optimizer.step()
        num_labels = num_labels + labels
        updates += 1
    return {"loss": float(total) / int(num_labels), "num_updates": updates}
"""
_CLEAR = "        optimizer.zero_grad(set_to_none=True)\n"
_LOOP = "        for batch in window:\n"
_STEP = "        optimizer.step()\n"
_OWN = '(batch["labels"] != -100).sum()'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.1": wrong(
        ACCUMULATED,
        {
            "loss not divided": ("the loss is not divided", "loss / labels", f"loss / {_OWN}"),
            "divided by the number of micro-batches": (
                "divided by the wrong count: the number of micro-batches",
                "loss / labels",
                f"loss / {_OWN} / len(window)",
            ),
            "divided by grad_accum_steps in a short window": (
                "divided by the wrong count",
                "loss / labels",
                f"loss / {_OWN} / grad_accum_steps",
            ),
            "hooks that nobody takes off": (
                "is not taken off",
                (
                    "    model.train()\n",
                    "    model.train()\n    now = [1]\n    for parameter in model.parameters():\n"
                    "        if parameter.requires_grad:\n"
                    "            parameter.register_hook(lambda gradient: gradient / now[0])\n",
                ),
                ("        optimizer.zero_grad", "        now[0] = labels\n        optimizer.zero_grad"),
                ("(loss / labels)", "loss"),
            ),
            "padding counted in the divisor": (
                "divided by the wrong count: all positions",
                _OWN,
                'batch["labels"].numel()',
            ),
            "last partial window dropped": (
                "last partial window is dropped",
                _CLEAR,
                "        if len(window) < grad_accum_steps:\n            break\n" + _CLEAR,
            ),
            "step at every micro-step": (
                "a step at every micro-batch",
                (_STEP, ""),
                ("            total =", "    " + _STEP + "            total ="),
            ),
            "zero_grad inside the window": (
                "`zero_grad` inside the window",
                _CLEAR + _LOOP,
                _LOOP + "    " + _CLEAR,
            ),
            "one graph for the whole window": (
                "every graph is alive until then",
                (_LOOP, "        graph = 0.0\n" + _LOOP),
                ("(loss / labels).backward()", "graph = graph + loss / labels"),
                (_STEP, "        graph.backward()\n" + _STEP),
            ),
            "mean over a micro-batch without labels": (
                "0 / 0",
                'reduction="sum")',
                f'reduction="mean") * {_OWN}',
            ),
            "labels of the whole pass in the divisor": (
                "the labels of the whole pass",
                (
                    "iterator = iter(micro_batches)",
                    f"iterator = iter(kept := list(micro_batches))\n    whole = sum({_OWN} for batch in kept)",
                ),
                ("loss / labels)", "loss / whole)"),
            ),
            "rows in the divisor": (
                "rows, not labels",
                "loss / labels",
                'loss / sum(len(one["labels"]) for one in window)',
            ),
            "real tokens in the divisor": (
                "real tokens, also those",
                "loss / labels",
                'loss / sum(one["attention_mask"].sum() for one in window)',
            ),
            "labels of class 0 not counted": (
                "another loss than the mean over the labels",
                _OWN,
                '(batch["labels"] > 0).sum()',
            ),
            "sums divided by the micro-batches": (
                "sums of losses, divided by the number of micro-batches",
                "loss / labels",
                "loss / len(window)",
            ),
            "divided by nothing": ("the sum over all labels is used as it is", "(loss / labels)", "loss"),
            "gradients from before": (
                "gradients that were there before the call",
                (_CLEAR, ""),
                (_STEP, _STEP + _CLEAR),
            ),
            "never cleared": ("gradients are never cleared", _CLEAR, ""),
            "one group divided": (
                "only the gradients of the optimizer's first parameter group are divided",
                ("(loss / labels).backward()", "loss.backward()"),
                (
                    _STEP,
                    '        for parameter in optimizer.param_groups[0]["params"]:\n'
                    "            parameter.grad /= labels\n" + _STEP,
                ),
            ),
            "one group cleared": (
                "only the gradients of the optimizer's first parameter group are cleared",
                _CLEAR,
                '        for parameter in optimizer.param_groups[0]["params"]:\n            parameter.grad = None\n',
            ),
            "windows begin one too late": (
                "the windows begin at the wrong place",
                (
                    "    while window := list(islice(iterator, grad_accum_steps)):",
                    "    size = 1\n    while window := list(islice(iterator, size)):\n"
                    "        is_short = updates and len(window) < size\n        size = grad_accum_steps",
                ),
                ("        optimizer.step()\n", "        is_short or optimizer.step()\n"),
                ("updates += 1", "updates += not is_short"),
            ),
            "last partial window joined": (
                "joined to the one before",
                (
                    "    while window := list(islice(iterator, grad_accum_steps)):",
                    "    kept = list(iterator)\n    whole = max(1, len(kept) // grad_accum_steps)\n"
                    "    for number in range(whole):\n"
                    "        stop = None if number == whole - 1 else (number + 1) * grad_accum_steps\n"
                    "        window = kept[number * grad_accum_steps : stop]",
                ),
            ),
            "clipped": (
                "the gradient is clipped",
                _STEP,
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" + _STEP,
            ),
            "mask made from the ids": (
                "the mask is made from the ids",
                'batch["attention_mask"]',
                'batch["input_ids"] != 0',
            ),
            "a copy is trained": (
                "a copy was trained",
                "    model.train()\n",
                "    import copy\n    model = copy.deepcopy(model).train()\n"
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)\n",
            ),
            "left in evaluation mode": ("a model in training mode", "    model.train()\n", ""),
            "iterated twice": (
                "is used up",
                "    iterator = iter(micro_batches)\n",
                "    print(sum(1 for _ in micro_batches))\n    iterator = iter(micro_batches)\n",
            ),
            "put together": (
                "put together into a bigger one",
                "        for batch in window:\n",
                '        width = max(one["labels"].shape[1] for one in window)\n'
                '        fill = {"input_ids": 0, "attention_mask": False, "labels": -100}\n'
                "        window = [{name: torch.cat([F.pad(one[name], (0, width - one[name].shape[1]), value=value)\n"
                "            for one in window]) for name, value in fill.items()}]\n        for batch in window:\n",
            ),
            "graphs retained": (
                "every graph is alive until then",
                ".backward()",
                ".backward(retain_graph=True)",
            ),
            "micro-batches with few labels left out": (
                "never reach the model",
                _LOOP,
                _LOOP + f"            if {_OWN} < 3:\n                continue\n",
            ),
            "loss as the mean of means": (
                "a mean of the micro-batches' means",
                (
                    "            total =",
                    "            updates_of = max(1, int("
                    + _OWN
                    + "))\n            means.append(float(loss) / updates_of)\n            total =",
                ),
                ("    total, num_labels", "    means = []\n    total, num_labels"),
                ("float(total) / int(num_labels)", "sum(means) / len(means)"),
            ),
            "loss as the mean of windows": (
                "a mean of the windows' means",
                (
                    "        updates += 1",
                    "        updates += 1\n        means.append(float(total - before) / int(labels))\n"
                    "        before = total",
                ),
                ("    total, num_labels", "    means, before = [], 0.0\n    total, num_labels"),
                ("float(total) / int(num_labels)", "sum(means) / len(means)"),
            ),
            "loss of the last window": (
                "the loss of the last window alone",
                (_CLEAR, _CLEAR + "        total = 0.0\n"),
                ("int(num_labels)", "int(labels)"),
            ),
            "loss not divided in the report": (
                "a sum that is divided by nothing",
                "float(total) / int(num_labels)",
                "float(total)",
            ),
            "loss by positions": (
                "divided by all positions",
                "num_labels = num_labels + labels",
                'num_labels = num_labels + sum(one["labels"].numel() for one in window)',
            ),
            "micro-batches counted": (
                "something else than optimizer steps",
                "updates += 1",
                "updates += len(window)",
            ),
            "a tensor returned": (
                "a tensor in place of a number",
                "float(total) / int(num_labels)",
                "total / num_labels",
            ),
            "the logarithm of a probability": (
                "another loss",
                'F.cross_entropy(logits, batch["labels"].flatten(), reduction="sum")',
                'F.nll_loss((logits.softmax(-1) + 1e-12).log(), batch["labels"].flatten(), reduction="sum")',
            ),
            "logits kept for the loss": (
                "outputs of the micro-batches are kept",
                ("total, num_labels,", "kept, total, num_labels,"),
                ("= 0.0, 0, 0", "= [], 0.0, 0, 0"),
                (
                    "            total = total + loss.detach()\n",
                    "            total = total + loss.detach()\n            kept.append(logits.detach())\n",
                ),
            ),
            "gradients multiplied by zero": (
                "multiplied by 0, not cleared",
                _CLEAR,
                "        for parameter in model.parameters():\n            if parameter.grad is not None:\n"
                "                parameter.grad.mul_(0)\n",
            ),
            "some parts in training mode": (
                "the mode is set on some modules alone",
                "    model.train()\n",
                "    model.blocks.train()\n",
            ),
            "gradients of frozen parameters left": (
                "a frozen parameter has a gradient from before",
                _CLEAR,
                "        for parameter in model.parameters():\n            if parameter.requires_grad:\n"
                "                parameter.grad = None\n",
            ),
            "mode looked at in the model alone": (
                "the mode is set on some modules alone",
                "    model.train()\n",
                "    if not model.training:\n        model.train()\n",
            ),
            "frozen parameters trained": (
                "parameters that came frozen",
                "    model.train()\n",
                "    model.train().requires_grad_(True)\n",
            ),
            "labels changed in place": (
                "changed in place",
                _STEP,
                _STEP + '        window[0]["labels"].clamp_(min=0)\n',
            ),
            "nothing returned": ("a `return` is missing", "    return {", "    result = {"),
            "no number of updates": ("a key is missing", ', "num_updates": updates', ""),
        },
    ),
}
