"""Two processes that train one model, in Accelerate: its length is compared, and that it runs."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
x = torch.randn(512, 20)
data = TensorDataset(x, (x @ torch.randn(20, 3)).argmax(dim=1))
loader = DataLoader(data, 16, shuffle=True)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
network, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(4):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach()).mean().item())
accelerator.print(f"loss {sum(losses) / len(losses):.3f}")
accelerator.end_training()
