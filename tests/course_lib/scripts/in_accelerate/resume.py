"""A run that may be killed, in Accelerate: its length is compared, and that it runs."""

from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 20)
data = TensorDataset(x, (x @ torch.randn(20, 3)).argmax(dim=1))
loader = DataLoader(data, 16, shuffle=True)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
saved = sorted(Path("checkpoints").glob("step_*"), key=lambda folder: int(folder.name.split("_")[1]))
step = 0
if saved:
    accelerator.load_state(saved[-1])
    step = int(saved[-1].name.split("_")[1])
    accelerator.print(f"goes on after step {step}")
for epoch in range(step // len(loader), 4):
    loader.set_epoch(epoch)
    num_done = step - epoch * len(loader)
    for x, y in accelerator.skip_first_batches(loader, num_done) if num_done else loader:
        optimizer.zero_grad()
        accelerator.backward(F.cross_entropy(model(x), y))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 10 == 0:
            accelerator.save_state(f"checkpoints/step_{step}")
accelerator.print(f"{step} steps")
