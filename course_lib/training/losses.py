"""One loss for three tasks: cross-entropy over items.

An item is what is counted: a text (classification) or a token whose label is not -100 (token classification,
language modelling, where labels are the ids shifted by one). Sums and counts, never means of means: uneven
micro-batches and ranks then weigh what their items weigh.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from course_lib.data import IGNORE as IGNORE


def loss_sum(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Sum of cross-entropy over items, in fp32: `logits` [B, C] with `labels` int64 [B], or [B, T, C] with
    [B, T]. Items labelled -100 count nothing."""
    return F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]).float(),
        labels.reshape(-1),
        ignore_index=IGNORE,
        label_smoothing=label_smoothing,
        reduction="sum",
    )


def num_items(labels: Tensor) -> Tensor:
    """How many labels are not -100, as a 0-d int64 tensor: reading it would be a sync."""
    return (labels != IGNORE).sum()
