"""The plain-torch twin of resume.py: killed or not, it ends with the same weights."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 20)
data = TensorDataset(x, (x @ torch.randn(20, 3)).argmax(dim=1))

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def order(epoch):
    """As BucketBatchSampler draws it: samples are shuffled, and then the batches."""
    rng = np.random.default_rng([0, epoch])
    batches = np.split(rng.permutation(len(data)), range(16, len(data), 16))
    return [batches[i].tolist() for i in rng.permutation(len(batches))]


def save(**place):
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
    torch.save(parts | place, "saving.pt")
    Path("saving.pt").replace(last)  # a kill leaves the old file or the new one, never half of one


last, step, first_epoch, num_done, rng = Path("last.pt"), 0, 0, 0, None
if last.exists():
    saved = torch.load(last)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step, first_epoch, num_done, rng = saved["step"], saved["epoch"], saved["num_done"], saved["rng"]
    print(f"goes on after step {step}")
for epoch in range(first_epoch, 4):
    batches = iter(DataLoader(data, batch_sampler=order(epoch)[num_done:]))
    if rng is not None:
        torch.set_rng_state(rng)  # only now: a DataLoader draws a number when it begins
        rng = None
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step, num_done = step + 1, num_done + 1
        if step % 10 == 0:
            save(step=step, epoch=epoch, num_done=num_done)
    num_done = 0
print(f"{step} steps")
