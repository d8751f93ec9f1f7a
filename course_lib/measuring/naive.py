"""The loop that most people write first: correct, and slow in five ways.

It is the baseline of lesson 1 and of the benchmarks. Nothing here is slowed on purpose: each line is one
that real projects contain. What it wastes is said at the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def pad_to_maximum(samples: Sequence[tuple[Any, int]], pad_to: int, *, pad_id: int = 0) -> dict[str, Tensor]:
    """Samples (`ids` 1-D, `label`) -> batch dict, every row as wide as the longest text of the *data set*."""
    rows, masks = [], []
    for ids, _label in samples:
        row = torch.full((pad_to,), pad_id, dtype=torch.int64)  # most of this width is padding
        row[: len(ids)] = torch.as_tensor(np.asarray(ids))
        mask = torch.zeros(pad_to, dtype=torch.bool)
        mask[: len(ids)] = True
        rows.append(row)
        masks.append(mask)
    return {
        "input_ids": torch.stack(rows),  # every row is copied a second time
        "attention_mask": torch.stack(masks),
        "labels": torch.tensor([label for _ids, label in samples], dtype=torch.int64),
    }


def naive_epoch(
    model: nn.Module,
    samples: Sequence[tuple[Any, int]],
    optimizer: torch.optim.Optimizer,
    *,
    pad_to: int,
    micro_batch_size: int = 64,
    scheduler: Any = None,
    max_norm: float = 1.0,
    seed: int = 0,
    pad_id: int = 0,
) -> dict[str, float]:
    """One pass over `samples` in random order, in place. Returns mean `loss` over samples and `num_samples`.

    `samples[i]` is `(ids, label)` with at most `pad_to` ids. fp32, on the model's device.
    """
    device = next(model.parameters()).device
    model.train()
    order = np.random.default_rng(seed).permutation(len(samples))  # long and short texts mixed
    loss_sum = 0.0
    for start in range(0, len(order), micro_batch_size):
        chosen = [samples[int(i)] for i in order[start : start + micro_batch_size]]
        batch = pad_to_maximum(chosen, pad_to, pad_id=pad_id)  # built while the device waits
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        optimizer.zero_grad(set_to_none=False)  # writes zeros that backward then reads and adds to
        loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        loss_sum += loss.item() * len(chosen)  # a sync: the device runs dry at every step
    return {"loss": loss_sum / max(1, len(samples)), "num_samples": len(samples)}
