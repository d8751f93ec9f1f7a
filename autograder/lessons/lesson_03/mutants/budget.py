"""Wrong solutions of 3.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong

_BUDGET = """
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
SLOW_BUDGET = edited(_BUDGET, (_FIT, "size < 4"), (_SORTED, "samples[start : start + global_batch_size]"))

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "3.6": wrong(SLOW_BUDGET, {"micro-batches of 4": ("micro-batches an update",)}, is_timed=True)
    + wrong(
        _BUDGET,
        {
            "the whole update at once": ("too large for the longest texts", _FIT, "True"),
            "sized for a typical width": (
                "too large for the longest texts",
                _FIT,
                "step_bytes(size + 1, 32) <= budget_bytes",
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
        },
    )
}
