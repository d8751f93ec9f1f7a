"""Wrong solutions of 2.4 and 2.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited
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

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "2.4": (
        Mutant(
            name="fp32 whatever is asked for",
            source=edited(_EPOCH, ("enabled=is_mixed", "enabled=False")),
            says="does not reach the model's call",
        ),
        Mutant(
            name="autocast in 32-true as well",
            source=edited(_EPOCH, (", enabled=is_mixed", "")),
            says="whatever was asked for",
        ),
        Mutant(
            name="the model itself in bf16",
            source=edited(
                _EPOCH,
                ("    model.train()\n", "    model.train()\n    if is_mixed:\n        model.bfloat16()\n"),
            ),
            says="the model itself is turned to bf16",
        ),
        Mutant(
            name="the model in bf16 for the step alone",
            source=edited(
                _EPOCH,
                (
                    "        optimizer.step()\n",
                    "        model.bfloat16()\n        optimizer.step()\n        model.float()\n",
                ),
                (
                    "    model.train()\n",
                    "    model.train()\n    model.bfloat16 = model.bfloat16 if is_mixed else lambda: None\n",
                ),
            ),
            says="the model itself is turned to bf16",
        ),
        Mutant(
            name="a second forward for the log",
            source=edited(
                _EPOCH,
                (
                    "        total +=",
                    '        with torch.no_grad():\n            model(batch["input_ids"], batch["attention_mask"])\n'
                    "        total +=",
                ),
            ),
            says="a second forward for the log",
        ),
        Mutant(
            name="a look for infinities at every step",
            source=edited(
                _EPOCH,
                (
                    "        optimizer.step()\n",
                    "        if torch.isfinite(loss):\n            optimizer.step()\n",
                ),
            ),
            says="a sync every step",
        ),
        Mutant(
            name="mean of batch means",
            source=edited(
                _EPOCH,
                ('loss.detach() * len(batch["labels"])', "loss.detach()"),
                ("total.item() / num_samples", f"total.item() / {12}"),
            ),
            says="a mean of batch means",
        ),
    ),
    "2.5": (
        Mutant(
            name="not repaired",
            source=edited(_STURDY, (_REPAIR, "")),
            says="a square above 65,504 is infinite",
        ),
        Mutant(
            name="converted after the square",
            source=edited(
                _STURDY, (_REPAIR, ""), ("(pooled * pooled).mean", "(pooled * pooled).float().mean")
            ),
            says="a square above 65,504 is infinite",
        ),
        Mutant(
            name="clamped",
            source=edited(_STURDY, (_REPAIR, "        pooled = pooled.clamp(-250, 250)\n")),
            says="the repair changes the mathematics",
        ),
        Mutant(
            name="a constant factor",
            source=edited(
                _STURDY,
                (_REPAIR, ""),
                ("(pooled * pooled).mean", "((pooled / 4096) * (pooled / 4096)).mean"),
                ("torch.sqrt(mean_square + 1e-6)", "(4096 * torch.sqrt(mean_square + 1e-6 / 4096**2))"),
            ),
            says="underflow to zero",
        ),
        Mutant(
            name="the whole forward in fp32",
            source=edited(
                _STURDY,
                (
                    "        weights = ",
                    "        torch.set_autocast_enabled('cpu', False)\n        weights = ",
                ),
            ),
            says="the whole forward is taken out of fp16",
        ),
        Mutant(
            name="another epsilon",
            source=edited(_STURDY, ("1e-6", "1e3")),
            says="another epsilon",
        ),
        Mutant(
            name="__init__ changed",
            source=edited(_STURDY, ("std=200.0", "std=1.0")),
            says="`__init__` was changed",
        ),
    ),
}
