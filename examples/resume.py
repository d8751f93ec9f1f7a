"""A run that may be killed: start it again, and it ends with the weights that it would have had."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course_lib import BucketBatchSampler, Checkpointer, TrainState, capture, fit, load_checkpoint, restore

torch.manual_seed(0)
x = torch.randn(400, 20)
data = TensorDataset(x, (x @ torch.randn(20, 3)).argmax(dim=1))
sampler = BucketBatchSampler([1] * len(data), 16)  # an order that knows its place; all are of one length here
loader = DataLoader(data, batch_sampler=sampler)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

parts, state, last = (
    {"model": model, "optimizer": optimizer, "sampler": sampler},
    TrainState(),
    Path("last.pt"),
)
if last.exists():
    state = restore(load_checkpoint(last), **parts)
    print(f"goes on after step {state.step}")
saver = Checkpointer(last, Path("best.pt"), lambda is_best: capture(state=state, **parts), every_steps=10)
fit(model, loader, optimizer, state=state, max_epochs=4, log_every_steps=10, callbacks=[saver])
print(f"{state.step} steps")
