"""Wrong solutions of 3.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

MIXED = """
from itertools import islice

import torch
import torch.nn.functional as F

@exercise("3.3")
def train_accumulated_mixed(model, micro_batches, optimizer, scheduler, scaler, grad_accum_steps, max_norm):
    model.train()
    iterator = iter(micro_batches)
    total, rows_seen, norms = 0.0, 0, []
    while window := list(islice(iterator, grad_accum_steps)):
        rows = sum(len(batch["labels"]) for batch in window)
        optimizer.zero_grad(set_to_none=True)
        for batch in window:
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
            scaler.scale(loss / rows).backward()
            total = total + loss.detach()
        scaler.unscale_(optimizer)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        rows_seen += rows
    return {"loss": float(total) / rows_seen, "grad_norm": float(sum(norms)) / len(norms), "num_updates": len(norms)}
"""
_CLEAR = "        optimizer.zero_grad(set_to_none=True)\n"
_LOOP = "        for batch in window:\n"
_UNSCALE = "        scaler.unscale_(optimizer)\n"
_CLIP = "        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))\n"
_SCHEDULE = "        scheduler.step()\n"
_GATHER = "            total = total + loss.detach()\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.3": wrong(
        MIXED,
        {
            "the logarithm of a probability": (
                "another loss",
                'F.cross_entropy(logits, batch["labels"], reduction="sum")',
                'F.nll_loss((logits.float().softmax(-1) + 1e-12).log(), batch["labels"], reduction="sum")',
            ),
            "scheduler per micro-step": (
                "scheduler is stepped per micro-batch",
                (_SCHEDULE, ""),
                (_GATHER, _GATHER + "    " + _SCHEDULE),
            ),
            "unscale and clip per micro-step": (
                "unscale and clip at every micro-step",
                (_UNSCALE + _CLIP, ""),
                (_GATHER, _GATHER + "    " + _UNSCALE + "    " + _CLIP),
            ),
            "clip per micro-step": (
                "clipping at every micro-step",
                _GATHER,
                _GATHER
                + "            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm * scaler.get_scale())\n",
            ),
            "clip without unscale": ("the clip sees scaled gradients", _UNSCALE, ""),
            "loss not divided": ("the loss is not divided", "loss / rows", 'loss / len(batch["labels"])'),
            "divided by the number of micro-batches": (
                "divided by the wrong count",
                "loss / rows",
                'loss / len(batch["labels"]) / len(window)',
            ),
            "no autocast": (
                "autocast is missing",
                'torch.autocast("cpu", torch.bfloat16)',
                "torch.enable_grad()",
            ),
            "scale never updated": ("`scaler.update()` is missing", "        scaler.update()\n", ""),
            "autocast to float16": ("autocast was given float16", "torch.bfloat16", "torch.float16"),
            "loss in bfloat16": (
                "the loss is computed in bfloat16",
                "                loss = F.cross_entropy(",
                "            loss = F.cross_entropy(",
            ),
            "sum not divided": ("the sum is used as it is", "loss / rows", "loss"),
            "divided by grad_accum_steps": (
                "divided by the wrong count: `grad_accum_steps`",
                "loss / rows",
                'loss / len(batch["labels"]) / grad_accum_steps',
            ),
            "zero_grad inside the window": (
                "`zero_grad` inside the window",
                _CLEAR + _LOOP,
                _LOOP + "    " + _CLEAR,
            ),
            "never cleared": ("gradients are never cleared", _CLEAR, ""),
            "gradients from before": (
                "gradients that were there before the call",
                (_CLEAR, ""),
                ("        scaler.step(optimizer)\n", "        scaler.step(optimizer)\n" + _CLEAR),
            ),
            "one group cleared": (
                "only the gradients of the optimizer's first parameter group are cleared",
                _CLEAR,
                '        for parameter in optimizer.param_groups[0]["params"]:\n            parameter.grad = None\n',
            ),
            "one group clipped": (
                "only the gradients of the optimizer's first parameter group are clipped",
                _CLIP,
                "        grads = [p.grad for p in model.parameters() if p.grad is not None]\n"
                "        norms.append(torch.nn.utils.get_total_norm(grads))\n"
                '        torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)\n',
            ),
            "norm of one group": (
                "the norm of the optimizer's first parameter group alone",
                _CLIP,
                _CLIP.replace("model.parameters()", 'optimizer.param_groups[0]["params"]'),
            ),
            "norm by samples": (
                "a mean over samples, where that over updates is asked for",
                (_CLIP, _CLIP.replace("))", ") * rows)")),
                ("float(sum(norms)) / len(norms)", "float(sum(norms)) / rows_seen"),
            ),
            "one autocast around all": (
                "one autocast around all updates",
                (
                    "    model.train()\n",
                    '    context = torch.autocast("cpu", torch.bfloat16)\n    context.__enter__()\n    model.train()\n',
                ),
                ("    return {", "    context.__exit__(None, None, None)\n    return {"),
            ),
            "autocast left on": (
                "is switched for the whole process and not put back",
                "    return {",
                '    torch.set_autocast_enabled("cpu", True)\n    return {',
            ),
            "log-probabilities in bfloat16": (
                "as `log_softmax` on the CPU",
                "loss = F.cross_entropy(logits, ",
                "loss = F.nll_loss(logits.log_softmax(-1), ",
            ),
            "no schedule for the short window": (
                "does not move at the update of the last, shorter window",
                _SCHEDULE,
                "        if len(window) == grad_accum_steps:\n    " + _SCHEDULE,
            ),
            "scaler left out": (
                "the scaler is left out",
                ("scaler.scale(loss / rows)", "(loss / rows)"),
                (_UNSCALE, ""),
                ("        scaler.step(optimizer)\n        scaler.update()\n", "        optimizer.step()\n"),
            ),
            "losses not scaled": (
                "`scaler.scale` is never called",
                "scaler.scale(loss / rows)",
                "(loss / rows)",
            ),
            "scaler updated at every micro-step": (
                "`scaler.update()` at another time",
                ("        scaler.update()\n", ""),
                (_GATHER, _GATHER + "            scaler.update()\n"),
            ),
            "scaler updated twice": (
                "called at other times than the step",
                _SCHEDULE,
                _SCHEDULE + "        scaler.update(2 * scaler.get_scale())\n",
            ),
            "unscaled after the step": (
                "come after the step",
                (_UNSCALE + _CLIP, ""),
                ("        scaler.step(optimizer)\n", "        scaler.step(optimizer)\n" + _UNSCALE + _CLIP),
            ),
            "clipped by value": (
                "each value is clipped",
                _CLIP,
                _CLIP.replace("max_norm", 'float("inf")')
                + "        torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)\n",
            ),
            "not clipped": ("no clipping", _CLIP, _CLIP.replace("max_norm", 'float("inf")')),
            "max_norm ignored": ("clipped to a norm of 1", _CLIP, _CLIP.replace("max_norm", "1.0")),
            "scheduler before the step": (
                "the scheduler moves before the optimizer",
                (_SCHEDULE, ""),
                ("        scaler.step(", _SCHEDULE + "        scaler.step("),
            ),
            "scheduler forgotten": ("the scheduler never moves", _SCHEDULE, ""),
            "last partial window dropped": (
                "last partial window is dropped",
                _CLEAR,
                "        if len(window) < grad_accum_steps and rows_seen:\n            break\n" + _CLEAR,
            ),
            "step at every micro-step": (
                "a step at every micro-batch",
                "islice(iterator, grad_accum_steps)",
                "islice(iterator, 1)",
            ),
            "put together": (
                "put together into a bigger one",
                _LOOP,
                '        width = max(one["input_ids"].shape[1] for one in window)\n'
                '        joined = {"labels": torch.cat([one["labels"] for one in window])}\n'
                '        for name in ("input_ids", "attention_mask"):\n'
                "            joined[name] = torch.cat(\n"
                "                [F.pad(one[name], (0, width - one[name].shape[1])) for one in window])\n"
                "        window = [joined]\n" + _LOOP,
            ),
            "left in evaluation mode": ("a model in training mode", "    model.train()\n", ""),
            "iterated twice": (
                "is used up",
                "    iterator = iter(micro_batches)\n",
                "    print(sum(1 for _ in micro_batches))\n    iterator = iter(micro_batches)\n",
            ),
            "model converted": (
                "the model was converted",
                "    return {",
                "    model.bfloat16()\n    return {",
            ),
            "autocast for full windows alone": (
                "autocast is not around each forward pass",
                'torch.autocast("cpu", torch.bfloat16)',
                'torch.autocast("cpu", torch.bfloat16, enabled=len(window) == grad_accum_steps or not norms)',
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
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
            ),
            "norm after clipping": (
                "the norm *after* clipping",
                _CLIP,
                _CLIP.replace("))", ").clamp(max=max_norm))"),
            ),
            "norm of scaled gradients": (
                "still scaled",
                _CLIP,
                _CLIP.replace("))", ") * scaler.get_scale())"),
            ),
            "norm of the last update": (
                "of the last update alone",
                "float(sum(norms)) / len(norms)",
                "float(norms[-1])",
            ),
            "norms not averaged": ("a sum of norms", "float(sum(norms)) / len(norms)", "float(sum(norms))"),
            "largest norm": ("the largest norm", "float(sum(norms)) / len(norms)", "float(max(norms))"),
            "loss as the mean of means": (
                "a mean of the micro-batches' means",
                ("loss.detach()", 'loss.detach() / len(batch["labels"])'),
                ("        rows_seen += rows", "        rows_seen += len(window)"),
            ),
            "loss not divided in the report": (
                "a sum that is divided by nothing",
                "float(total) / rows_seen",
                "float(total)",
            ),
            "micro-batches counted": (
                "something else than optimizer steps",
                '"num_updates": len(norms)',
                '"num_updates": rows_seen',
            ),
            "tensors returned": (
                "a tensor in place of a number",
                "float(sum(norms)) / len(norms)",
                "sum(norms) / len(norms)",
            ),
            "gradients multiplied by zero": (
                "multiplied by 0, not cleared",
                _CLEAR,
                "        for parameter in model.parameters():\n            if parameter.grad is not None:\n"
                "                parameter.grad.mul_(0)\n",
            ),
            "gradients of frozen parameters left": (
                "a frozen parameter has a gradient from before",
                _CLEAR,
                "        for parameter in model.parameters():\n            if parameter.requires_grad:\n"
                "                parameter.grad = None\n",
            ),
            "frozen parameters trained": (
                "parameters that came frozen",
                "    model.train()\n",
                "    model.train().requires_grad_(True)\n",
            ),
            "labels changed in place": (
                "changed in place",
                _GATHER,
                _GATHER + '            batch["labels"].zero_()\n',
            ),
            "root mean square of the norms": (
                "the root of the mean of the squared norms",
                "float(sum(norms)) / len(norms)",
                "(float(sum(norm**2 for norm in norms)) / len(norms)) ** 0.5",
            ),
            "nothing returned": ("a `return` is missing", "    return {", "    result = {"),
        },
    ),
}
