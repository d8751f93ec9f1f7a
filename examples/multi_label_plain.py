"""The plain-torch twin of multi_label.py: it ends with the same weights, but for the rounding of a factor.

The known labels of an update are counted before its first backward, so its batches are collected.
"""

from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
x = torch.randn(480, 10)
tags = (x @ torch.randn(10, 5) > 0).float()
known = torch.rand(480, 5) < torch.linspace(0.1, 0.9, 480)[:, None]
rows = [{"x": x[i], "tags": tags[i], "known": known[i]} for i in range(480)]
loader = DataLoader(rows, 16)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def loss_sum(batch):
    costs = F.binary_cross_entropy_with_logits(model(batch["x"]), batch["tags"], reduction="none")
    return costs[batch["known"]].sum()


for _ in range(6):
    batches = iter(loader)
    while window := list(islice(batches, 4)):
        num_known = sum(batch["known"].sum() for batch in window)
        optimizer.zero_grad()
        for batch in window:
            (loss_sum(batch) / num_known).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
with torch.no_grad():
    total = sum(loss_sum(batch) for batch in loader)
    print(f"loss of a known label {total / known.sum():.3f}")
