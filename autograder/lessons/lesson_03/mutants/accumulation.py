"""Wrong solutions of 3.1 and 3.3, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_ACCUMULATED = """
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

_MIXED = """
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
_UNSCALE = "        scaler.unscale_(optimizer)\n"
_CLIP = "        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))\n"
_SCHEDULE = "        scheduler.step()\n"
_GATHER = "            total = total + loss.detach()\n"

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.1": wrong(
        _ACCUMULATED,
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
        },
    ),
    "3.3": wrong(
        _MIXED,
        {
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
        },
    ),
}
