"""Wrong solutions of 3.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

BUDGET = """
import torch
import torch.nn.functional as F
from course_lib.data import collate

@exercise("3.6")
def train_in_budget(model, samples, optimizer, global_batch_size, budget_bytes, step_bytes):
    model.train()
    total, updates = torch.zeros(()), 0
    for start in range(0, len(samples), global_batch_size):
        window = sorted(samples[start : start + global_batch_size], key=lambda sample: len(sample[0]))
        optimizer.zero_grad(set_to_none=True)
        rest = window
        while rest:
            size = 1
            while size < len(rest) and step_bytes(size + 1, len(rest[size][0])) <= budget_bytes:
                size += 1
            chosen, rest = rest[:size], rest[size:]
            batch = collate(chosen)
            loss = F.cross_entropy(
                model(batch["input_ids"], batch["attention_mask"]), batch["labels"], reduction="sum"
            )
            (loss / len(window)).backward()
            total += loss.detach()
        optimizer.step()
        updates += 1
    return {"loss": float(total) / len(samples), "num_updates": updates}
"""
_FIT = "step_bytes(size + 1, len(rest[size][0])) <= budget_bytes"
_STEP = "        optimizer.step()\n"
_SORTED = "sorted(samples[start : start + global_batch_size], key=lambda sample: len(sample[0]))"
# Right and too slow: it must never pass.
SLOW_BUDGET = edited(BUDGET, (_FIT, "size < 4"), (_SORTED, "samples[start : start + global_batch_size]"))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.6": wrong(SLOW_BUDGET, {"micro-batches of 4": ("micro-batches an update",)}, is_timed=True)
    + wrong(
        BUDGET,
        {
            "the whole update at once": ("too large for the longest texts", _FIT, "True"),
            "the logarithm of a probability": (
                "another loss",
                (
                    'loss = F.cross_entropy(\n                model(batch["input_ids"], batch["attention_mask"]), ',
                    'logits = model(batch["input_ids"], batch["attention_mask"])\n            loss = F.nll_loss(\n'
                    "                (logits.softmax(-1) + 1e-12).log(), ",
                ),
            ),
            "padded wider than was asked": (
                "padded to more than their longest text",
                "            batch = collate(chosen)\n",
                "            batch = collate(chosen)\n            wide = -batch['input_ids'].shape[1] % 8\n"
                "            batch |= {n: F.pad(batch[n], (0, wide)) for n in ('input_ids', 'attention_mask')}\n",
            ),
            "sized for a typical width": (
                "too large for the longest texts",
                _FIT,
                "step_bytes(size + 1, 32) <= budget_bytes",
            ),
            "tokens of a typical width": (
                "they grow faster than a line",
                (
                    "    for start in range(0",
                    "    usual, rows = sorted(len(ids) for ids, _ in samples)[len(samples) // 2], 1\n"
                    "    while rows < global_batch_size and step_bytes(rows + 1, usual) <= budget_bytes:\n"
                    "        rows += 1\n    for start in range(0",
                ),
                (_FIT, "(size + 1) * len(rest[size][0]) <= rows * usual"),
            ),
            "mean of uneven micro-batches": (
                "divided by the wrong count",
                "loss / len(window)",
                "loss / len(chosen)",
            ),
            "last partial window dropped": (
                "last partial window is dropped",
                "        optimizer.zero_grad",
                "        if len(window) < global_batch_size:\n            break\n        optimizer.zero_grad",
            ),
            "step at every micro-batch": (
                "a step at every micro-batch",
                (_STEP, ""),
                ("            total +=", "    " + _STEP + "            total +="),
            ),
            "mask made from the ids": (
                "the mask is made from the ids",
                'batch["attention_mask"]',
                'batch["input_ids"] != 0',
            ),
            "padding marked as real": (
                "padding is marked as real",
                'batch["attention_mask"]',
                'torch.ones_like(batch["attention_mask"])',
            ),
            "texts cut": (
                "texts are cut",
                "batch = collate(chosen)",
                "batch = collate([(ids[:80], label) for ids, label in chosen])",
            ),
            "a little above the budget": (
                "the budget is exceeded by a little",
                "<= budget_bytes",
                "<= 1.04 * budget_bytes",
            ),
            "a rest joined to a full micro-batch": (
                "are added to a micro-batch that was full",
                "            chosen, rest = rest[:size], rest[size:]\n",
                "            size += len(rest) - size if len(rest) - size <= 2 else 0\n"
                "            chosen, rest = rest[:size], rest[size:]\n",
            ),
            "a text too many": (
                "are added to a micro-batch that was full",
                "step_bytes(size + 1, ",
                "step_bytes(size, ",
            ),
            "positions counted": (
                "worked out from rows × width",
                (
                    "    model.train()\n",
                    "    model.train()\n    longest = max(len(ids) for ids, _ in samples)\n",
                ),
                (
                    "step_bytes(size + 1, len(rest[size][0]))",
                    "step_bytes(-((size + 1) * len(rest[size][0]) // -longest), longest)",
                ),
            ),
            "bytes kept from another call": (
                "from another call's `step_bytes`",
                (
                    "import torch\n",
                    "import torch\n\n_known = {}\n\n"
                    "def once(step_bytes, *shape):\n"
                    "    if shape not in _known:\n        _known[shape] = step_bytes(*shape)\n"
                    "    return _known[shape]\n\n",
                ),
                ("step_bytes(size + 1, ", "once(step_bytes, size + 1, "),
            ),
            "graphs of several micro-batches": (
                "the graphs of several are alive at once",
                ("(loss / len(window)).backward()", "graph = graph + loss / len(window)"),
                ("        rest = window\n", "        rest, graph = window, 0.0\n"),
                (_STEP, "        graph.backward()\n" + _STEP),
            ),
            "sorted as a whole": (
                "all samples are sorted",
                "    model.train()\n",
                "    model.train()\n    samples = sorted(samples, key=lambda sample: len(sample[0]))\n",
            ),
            "clipped": (
                "the gradient is clipped",
                _STEP,
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" + _STEP,
            ),
            "never cleared": (
                "gradients are never cleared",
                "        optimizer.zero_grad(set_to_none=True)\n",
                "",
            ),
            "gradients from before": (
                "gradients that were there before the call",
                ("        optimizer.zero_grad(set_to_none=True)\n", ""),
                (_STEP, _STEP + "        optimizer.zero_grad(set_to_none=True)\n"),
            ),
            "one group divided": (
                "only the gradients of the optimizer's first parameter group are divided",
                ("(loss / len(window)).backward()", "loss.backward()"),
                (
                    _STEP,
                    '        for parameter in optimizer.param_groups[0]["params"]:\n'
                    "            parameter.grad /= len(window)\n" + _STEP,
                ),
            ),
            "one group cleared": (
                "only the gradients of the optimizer's first parameter group are cleared",
                "        optimizer.zero_grad(set_to_none=True)\n",
                '        for parameter in optimizer.param_groups[0]["params"]:\n            parameter.grad = None\n',
            ),
            "loss not divided": ("the sum over the texts is used", "loss / len(window)", "loss"),
            "divided by global_batch_size": (
                "`global_batch_size`, also where",
                "loss / len(window)",
                "loss / global_batch_size",
            ),
            "updates of 64 texts": (
                "of other sizes than `global_batch_size`",
                "    model.train()\n",
                "    model.train()\n    global_batch_size = 64\n",
            ),
            "left in evaluation mode": ("a model in training mode", "    model.train()\n", ""),
            "a text left out": (
                "texts are left out",
                "while rest:",
                "while len(rest) > 1 or rest and len(window) < 2:",
            ),
            "loss as the mean of updates": (
                "a mean of the windows' means",
                (
                    _STEP,
                    _STEP
                    + "        means.append(float(total - before) / len(window))\n        before = total.clone()\n",
                ),
                (
                    "    total, updates = torch.zeros(()), 0\n",
                    "    total, updates, means, before = torch.zeros(()), 0, [], 0.0\n",
                ),
                ("float(total) / len(samples)", "sum(means) / len(means)"),
            ),
            "samples sorted in place": (
                "the caller's list is sorted or emptied in place",
                "        optimizer.zero_grad(set_to_none=True)\n",
                "        samples[start : start + global_batch_size] = window\n"
                "        optimizer.zero_grad(set_to_none=True)\n",
            ),
            "the same sample counted once": (
                "texts are left out",
                "        rest = window\n",
                "        rest = list({id(sample): sample for sample in window}.values())\n",
            ),
            "gradients multiplied by zero": (
                "multiplied by 0, not cleared",
                "        optimizer.zero_grad(set_to_none=True)\n",
                "        for parameter in model.parameters():\n            if parameter.grad is not None:\n"
                "                parameter.grad.mul_(0)\n",
            ),
            "zeros for frozen parameters": (
                "a frozen parameter has a gradient from before, or zeros",
                "zero_grad(set_to_none=True)",
                "zero_grad(set_to_none=False)",
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
            "loss not divided in the report": (
                "a sum that is divided by nothing",
                "float(total) / len(samples)",
                "float(total)",
            ),
            "micro-batches counted": (
                "something else than optimizer steps",
                ("        updates += 1\n", ""),
                ("            total +=", "            updates += 1\n            total +="),
            ),
            "a tensor returned": ("a tensor in place of a number", "float(total)", "total"),
            "nothing returned": ("a `return` is missing", "    return {", "    result = {"),
        },
    )
}
