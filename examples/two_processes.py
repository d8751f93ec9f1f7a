"""Two processes that train one model: torchrun --nproc-per-node 2 examples/two_processes.py"""

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from course_lib import fit
from course_lib.distributed import cleanup, setup, wrap_ddp

ranks = setup("cpu")
torch.manual_seed(0)
x = torch.randn(512, 20)
data = TensorDataset(x, (x @ torch.randn(20, 3)).argmax(dim=1))
# Its `set_epoch` is called before each epoch.
sampler = DistributedSampler(data, ranks.world_size, ranks.rank)
loader = DataLoader(data, 16, sampler=sampler)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

records = fit(wrap_ddp(model), loader, optimizer, max_epochs=4, log_every_steps=len(loader))
if ranks.is_main_process:
    print(f"{records[-2]['num_samples']} samples, loss {records[-2]['loss']:.3f}")  # over both processes
cleanup()
