"""Several labels a sample, some of them unknown: batches are dicts, and the known labels are the items.

Four micro-batches make an update. Each known label weighs the same in it, however they are spread.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from course_lib import evaluate, fit

torch.manual_seed(0)
x = torch.randn(480, 10)
tags = (x @ torch.randn(10, 5) > 0).float()
known = torch.rand(480, 5) < torch.linspace(0.1, 0.9, 480)[:, None]
rows = [{"x": x[i], "tags": tags[i], "known": known[i]} for i in range(480)]
loader = DataLoader(rows, 16)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def loss(model, batch):
    costs = F.binary_cross_entropy_with_logits(model(batch["x"]), batch["tags"], reduction="none")
    return costs[batch["known"]].sum(), batch["known"].sum()


fit(model, loader, optimizer, loss=loss, grad_accum_steps=4, max_epochs=6)
print(f"loss of a known label {evaluate(model, loader, loss=loss)['loss']:.3f}")
