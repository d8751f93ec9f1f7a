"""Wrong solutions of 2.4 and 2.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited, wrong
from autograder.lessons.lesson_02.baselines import FRAGILE

_EPOCH = """
import torch
import torch.nn.functional as F

@exercise("2.4")
def train_epoch(model, batches, optimizer, precision, max_norm=1.0):
    is_mixed = precision == "bf16-mixed"
    model.train()
    total, num_samples = torch.zeros(()), 0
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        total += loss.detach() * len(batch["labels"])
        num_samples += len(batch["labels"])
    return {"loss": total.item() / num_samples, "num_samples": num_samples}
"""

_STURDY = edited(
    FRAGILE,
    ("        mean_square =", "        pooled = pooled.float()\n        mean_square ="),
    ("\nSturdyClassifier = FragileClassifier\n", ""),
    ("class FragileClassifier", '@exercise("2.5")\nclass SturdyClassifier'),
)
_REPAIR = "        pooled = pooled.float()\n"

# Right and too slow: it must never pass.
SLOW_EPOCH = edited(
    _EPOCH,
    (
        "        optimizer.step()\n",
        "        optimizer.step()\n        sum(i * i for i in range(4_000_000))\n",
    ),
)

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.4": wrong(
        _EPOCH,
        {
            "fp32 whatever is asked for": (
                "does not reach the model's call",
                "enabled=is_mixed",
                "enabled=False",
            ),
            "autocast in 32-true as well": ("whatever was asked for", ", enabled=is_mixed", ""),
            "the model itself in bf16": (
                "the model itself is turned to bf16",
                "    model.train()\n",
                "    model.train()\n    if is_mixed:\n        model.bfloat16()\n",
            ),
            "the model in bf16 for the step alone": (
                "the model itself is turned to bf16",
                (
                    "        optimizer.step()\n",
                    "        model.bfloat16()\n        optimizer.step()\n        model.float()\n",
                ),
                (
                    "    model.train()\n",
                    "    model.train()\n    model.bfloat16 = model.bfloat16 if is_mixed else lambda: None\n",
                ),
            ),
            "a second forward for the log": (
                "a second forward for the log",
                "        total +=",
                '        with torch.no_grad():\n            model(batch["input_ids"], batch["attention_mask"])\n'
                "        total +=",
            ),
            "a look for infinities at every step": (
                "a sync every step",
                "        optimizer.step()\n",
                "        if torch.isfinite(loss):\n            optimizer.step()\n",
            ),
            "mean of batch means": (
                "a mean of batch means",
                ('loss.detach() * len(batch["labels"])', "loss.detach()"),
                ("total.item() / num_samples", f"total.item() / {12}"),
            ),
        },
    ),
    "2.5": wrong(
        _STURDY,
        {
            "not repaired": ("a square above 65,504 is infinite", _REPAIR, ""),
            "converted after the square": (
                "a square above 65,504 is infinite",
                (_REPAIR, ""),
                ("(pooled * pooled).mean", "(pooled * pooled).float().mean"),
            ),
            "clamped": (
                "the repair changes the mathematics",
                _REPAIR,
                "        pooled = pooled.clamp(-250, 250)\n",
            ),
            "a constant factor": (
                "underflow to zero",
                (_REPAIR, ""),
                ("(pooled * pooled).mean", "((pooled / 4096) * (pooled / 4096)).mean"),
                ("torch.sqrt(mean_square + 1e-6)", "(4096 * torch.sqrt(mean_square + 1e-6 / 4096**2))"),
            ),
            "the whole forward in fp32": (
                "the whole forward is taken out of fp16",
                "        weights = ",
                "        torch.set_autocast_enabled('cpu', False)\n        weights = ",
            ),
            "another epsilon": ("another epsilon", "1e-6", "1e3"),
            "__init__ changed": ("`__init__` was changed", "std=200.0", "std=1.0"),
        },
    ),
}
