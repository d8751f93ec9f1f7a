"""Right solutions of lesson 02 that went roads nobody had thought of."""

# %%
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.3")
def mixed_step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> dict[str, Any]:
    device = next(model.parameters()).device.type
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, torch.bfloat16)
    torch.autocast_increment_nesting()
    try:
        loss = F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]), batch["labels"], reduction="sum"
        ) / len(batch["labels"])
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])

    model.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=max_norm)
    optimizer.step()
    return {"loss": loss.detach().clone(), "grad_norm": norm.detach().clone()}


# %%
import contextlib
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.4")
def train_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float = 1.0,
) -> dict[str, float]:
    model.train()
    kind = next(model.parameters()).device.type
    context = {
        "32-true": contextlib.nullcontext,
        "bf16-mixed": lambda: torch.autocast(kind, dtype=torch.bfloat16),
    }[precision]

    losses, sizes = [], []
    for batch in batches:
        for p in model.parameters():
            p.grad = None
        with context():
            logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits.float(), batch["labels"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses.append(loss.detach())
        sizes.append(len(batch["labels"]))

    # one transfer for the whole epoch
    total = sum(mean * n for mean, n in zip(torch.stack(losses).tolist(), sizes, strict=True))
    return {"loss": total / sum(sizes), "num_samples": sum(sizes)}
