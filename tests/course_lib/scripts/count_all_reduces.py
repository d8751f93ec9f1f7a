"""Run by torchrun: how many all-reduces a step takes; what was counted goes into the folder argv[1]."""

import gc
import sys
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course_lib.measuring.counters import count_events


def accumulate(model, optimizer, *, no_sync):
    with count_events(model) as counts:
        for number in range(4):
            with model.no_sync() if no_sync and number < 3 else nullcontext():
                model(torch.ones(2, 300)).sum().backward()
        optimizer.step()
    reduced = (counts.num_gradient_all_reduces, counts.num_all_reduces)
    return (counts.num_forwards, counts.num_optimizer_steps, *reduced)


def by_hand(model, optimizer):
    with count_events(model) as counts:
        model(torch.ones(2, 300)).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    reduced = (counts.num_gradient_all_reduces, counts.num_all_reduces)
    return (counts.num_forwards, counts.num_optimizer_steps, *reduced)


def main(folder):
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    found = {"by_hand": by_hand(network, optimizer), "num_parameters": len(list(network.parameters()))}
    model = DistributedDataParallel(network, bucket_cap_mb=0.3)
    for _ in range(2):  # the first step finds the order in which gradients come and cuts the buckets anew
        model(torch.ones(2, 300)).sum().backward()
    with count_events(model, operators=False) as counts:
        model(torch.ones(2, 300)).sum().backward()
    found["light"] = found["num_buckets"] = counts.num_gradient_all_reduces
    found["plain"] = accumulate(model, optimizer, no_sync=False)
    found["no_sync"] = accumulate(model, optimizer, no_sync=True)
    torch.save(found, folder / f"rank{dist.get_rank()}.pt")
    del model
    gc.collect()  # what is left of the wrapper in a cycle keeps the group's threads, and the process aborts as it exits
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
