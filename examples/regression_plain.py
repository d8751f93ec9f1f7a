"""The plain-torch twin of regression.py: it ends with the same weights."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(500, 2) * 6 - 3
y = torch.sin(x[:, :1]) * x[:, 1:] + 0.1 * torch.randn(500, 1)
train_loader = DataLoader(TensorDataset(x[:400], y[:400]), 30, shuffle=True)
test_loader = DataLoader(TensorDataset(x[400:], y[400:]), 100)

model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(5):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
total = num_items = 0
with torch.no_grad():
    for x, y in test_loader:
        total += F.mse_loss(model(x), y, reduction="sum").item()
        num_items += len(y)
print(f"mean squared error {total / num_items:.3f}")
