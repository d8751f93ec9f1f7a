"""Regression: `loss=` says what is minimised, as a sum over items and their number."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course_lib import evaluate, fit

torch.manual_seed(0)
x = torch.rand(500, 2) * 6 - 3
y = torch.sin(x[:, :1]) * x[:, 1:] + 0.1 * torch.randn(500, 1)
train_loader = DataLoader(TensorDataset(x[:400], y[:400]), 30, shuffle=True)
test_loader = DataLoader(TensorDataset(x[400:], y[400:]), 100)

model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def squared_error(model, batch):
    x, y = batch
    return F.mse_loss(model(x), y, reduction="sum"), len(y)


fit(model, train_loader, optimizer, loss=squared_error, max_epochs=5)
print(f"mean squared error {evaluate(model, test_loader, loss=squared_error)['loss']:.3f}")
