"""Regression, in Accelerate: its length is compared, and that it runs."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(500, 2) * 6 - 3
y = torch.sin(x[:, :1]) * x[:, 1:] + 0.1 * torch.randn(500, 1)
train_loader = DataLoader(TensorDataset(x[:400], y[:400]), 30, shuffle=True)
test_loader = DataLoader(TensorDataset(x[400:], y[400:]), 100)

model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
accelerator = Accelerator(cpu=True)
model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)

for _ in range(5):
    for x, y in train_loader:
        optimizer.zero_grad()
        accelerator.backward(F.mse_loss(model(x), y))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
total = num_items = 0
with torch.no_grad():
    for x, y in test_loader:
        costs = accelerator.gather_for_metrics(F.mse_loss(model(x), y, reduction="none"))
        total += costs.sum().item()
        num_items += len(costs)
print(f"mean squared error {total / num_items:.3f}")
