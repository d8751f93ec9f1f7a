"""The plain-torch twin of two_processes.py: it ends with the same weights."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(512, 20)
data = TensorDataset(x, (x @ torch.randn(20, 3)).argmax(dim=1))
sampler = DistributedSampler(data)
loader = DataLoader(data, 16, sampler=sampler)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train():
    ddp = DistributedDataParallel(model)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(ddp(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += torch.tensor([loss.item() * len(y), len(y)])
    dist.all_reduce(total)
    return total.tolist()


total, num_samples = train()
if dist.get_rank() == 0:
    print(f"{num_samples:.0f} samples, loss {total / num_samples:.3f}")
dist.destroy_process_group()
