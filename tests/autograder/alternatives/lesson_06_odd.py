# Right solutions of lesson 06 by roads that few people take.

# %%
from collections.abc import Callable, Iterator

from autograder import exercise

MASK = 2**64 - 1


def _mix(x: int) -> int:
    """splitmix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def _permutation(size: int, seed: int, epoch: int) -> Callable[[int], int]:
    """A function that maps places 0 … size-1 one to one onto indices 0 … size-1."""
    half_bits = max(3, (size.bit_length() + 1) // 2)
    half = (1 << half_bits) - 1
    keys = []
    state = _mix(_mix(seed & MASK) ^ (epoch & MASK))
    for _ in range(8):
        state = _mix(state)
        keys.append(state)

    def once(x: int) -> int:
        left, right = x >> half_bits, x & half
        for key in keys:
            left, right = right, left ^ (_mix(key ^ right) & half)
        return (left << half_bits) | right

    def at(place: int) -> int:
        x = once(place)
        while x >= size:  # walks its cycle until it is back inside
            x = once(x)
        return x

    return at


@exercise("6.1")
class ShardSampler:
    """The order is never stored: a Feistel network with cycle-walking knows the sample of any place."""

    def __init__(self, num_samples: int, rank: int, world_size: int, seed: int = 0) -> None:
        self.num_samples = num_samples
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return (self.num_samples + self.world_size - 1) // self.world_size

    def __iter__(self) -> Iterator[int]:
        at = _permutation(self.num_samples, self.seed, self.epoch)
        for turn in range(len(self)):
            yield at((turn * self.world_size + self.rank) % self.num_samples)


# %%
from itertools import chain

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.2")
class PlainDDP:
    """One message a step: gradients of the sum, loss, count and who has a gradient, in one float64 vector."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        with torch.no_grad():
            for tensor in chain(model.parameters(), model.buffers()):
                message = tensor.detach().clone(memory_format=torch.contiguous_format)
                dist.broadcast(message, src=0)
                tensor.copy_(message)

    def loss_and_gradients(self, batch: dict[str, torch.Tensor]) -> float:
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        total = F.cross_entropy(logits, batch["labels"], reduction="sum")
        total.backward()

        trained = [p for p in self.model.parameters() if p.requires_grad]
        head = [float(total.detach()), float(len(batch["labels"]))]
        head += [float(p.grad is not None) for p in trained]
        parts = [torch.tensor(head, dtype=torch.float64, device=logits.device)]
        for p in trained:
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            parts.append(grad.detach().reshape(-1).double())
        message = torch.cat(parts)
        dist.all_reduce(message)

        sizes = [len(head), *(p.numel() for p in trained)]
        head, *grads = message.split(sizes)
        loss_sum, num_samples, *is_used = head.tolist()
        for p, grad, used in zip(trained, grads, is_used, strict=True):
            if used:
                p.grad = (grad / num_samples).view_as(p).to(p.dtype)
        return loss_sum / num_samples


# %%
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise
from course_lib.models import ModelConfig, TextClassifier


def choose_device(local_rank: int, num_gpus: int) -> torch.device:
    """The device of a process: the CPU without GPUs, else the GPU of its local rank.

    Raises ValueError when there is no GPU left for it.
    """
    if num_gpus == 0:
        return torch.device("cpu")
    if local_rank >= num_gpus:
        raise ValueError(f"local rank {local_rank}, but only {num_gpus} GPUs on this machine")
    return torch.device("cuda", local_rank)


@contextmanager
def process_group(device: torch.device) -> Iterator[tuple[int, int]]:
    """Join the others; yields rank and world size; leaves however the block ends."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def sum_gradients(model: torch.nn.Module) -> None:
    """Replace each gradient by its sum over the ranks, with one message."""
    parameters = list(model.parameters())
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat)
    pieces = flat.split([p.numel() for p in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.grad = piece.view_as(parameter)


@exercise("6.3")
def main(folder: Path) -> torch.nn.Module:
    """No wrapper: gradients as one vector, and a checkpoint that takes its name when it is whole."""
    folder = Path(folder)
    job = torch.load(folder / "job.pt", weights_only=True)
    device = choose_device(int(os.environ["LOCAL_RANK"]), torch.cuda.device_count())
    with process_group(device) as (rank, world_size):
        torch.manual_seed(job["seed"])
        model = TextClassifier(ModelConfig(**job["model"])).to(device)
        torch.manual_seed(job["seed"] + 1000 + rank)
        optimizer = torch.optim.SGD(model.parameters(), lr=job["learning_rate"])
        model.train()
        for batch in job["batches"]:
            num_rows = len(batch["labels"])
            mine = {k: t.tensor_split(world_size)[rank].to(device) for k, t in batch.items()}
            logits = model(mine["input_ids"], mine["attention_mask"])
            loss = F.cross_entropy(logits, mine["labels"], reduction="sum") / num_rows
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            sum_gradients(model)
            optimizer.step()
        if rank == 0:
            weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
            torch.save(weights, folder / "last.pt.partial")
            os.replace(folder / "last.pt.partial", folder / "last.pt")  # noqa: PTH105
        dist.barrier()  # all find the file when main is done
    return model


if "RANK" in os.environ:
    main(Path(sys.argv[1]))

# %%
from collections.abc import Sequence

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise


def loss_sum(network: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    logits = network(batch["input_ids"], batch["attention_mask"])
    return F.cross_entropy(logits, batch["labels"], reduction="sum")


@exercise("6.4")
def accumulate_step(
    model: DistributedDataParallel,
    micro_batches: Sequence[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """No `no_sync`: `autograd.grad` never wakes DDP's hooks; DDP adds the last gradient to what is there."""
    plain = model.module
    trained = [p for p in plain.parameters() if p.requires_grad]
    optimizer.zero_grad(set_to_none=True)
    model.zero_grad(set_to_none=True)

    *first, last = micro_batches
    count = torch.tensor([sum(len(batch["labels"]) for batch in micro_batches)], device=trained[0].device)
    dist.all_reduce(count)
    scale = dist.get_world_size() / count.item()

    sums: list[torch.Tensor | None] = [None] * len(trained)
    for batch in first:
        grads = torch.autograd.grad(loss_sum(plain, batch) * scale, trained, allow_unused=True)
        for i, grad in enumerate(grads):
            if grad is not None:
                sums[i] = grad.clone() if sums[i] is None else sums[i] + grad

    loss = loss_sum(model, last) * scale  # up to here an error leaves no gradient behind
    for parameter, grad in zip(trained, sums, strict=True):
        parameter.grad = grad
    try:
        loss.backward()
    except BaseException:
        model.zero_grad(set_to_none=True)
        raise
    optimizer.step()


# %%
import copy
import math
from collections.abc import Iterable

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.5")
def evaluate_on_ranks(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """A copy is evaluated, so there is no mode to put back; every loss is gathered and added up exactly."""
    twin = copy.deepcopy(model).eval()
    losses: list[float] = []
    hits: list[bool] = []
    with torch.no_grad():
        for batch in batches:
            logits = twin(batch["input_ids"], batch["attention_mask"])
            labels = batch["labels"]
            losses += F.cross_entropy(logits, labels, reduction="none").tolist()
            hits += (logits.argmax(dim=-1) == labels).tolist()
    reports = [None] * dist.get_world_size()
    dist.all_gather_object(reports, (losses, sum(hits)))
    all_losses = [loss for losses_of_rank, _ in reports for loss in losses_of_rank]
    num_samples = len(all_losses)
    num_right = sum(right for _, right in reports)
    if not num_samples:
        return {"loss": math.nan, "accuracy": math.nan, "num_samples": 0}
    return {
        "loss": math.fsum(all_losses) / num_samples,
        "accuracy": num_right / num_samples,
        "num_samples": num_samples,
    }


# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise


def sum_over_ranks(group: dist.ProcessGroup, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def deal(batch: dict[str, torch.Tensor], rank: int, world_size: int) -> dict[str, torch.Tensor]:
    """This rank's rows, perhaps none: every W-th from the longest to the shortest."""
    mask = batch["attention_mask"].bool()
    rows = mask.sum(dim=1).argsort(descending=True, stable=True)[rank::world_size]
    ends = mask[rows].any(dim=0).nonzero()
    width = int(ends[-1]) + 1 if len(ends) else 1
    return {
        "input_ids": batch["input_ids"][rows, :width],
        "attention_mask": batch["attention_mask"][rows, :width],
        "labels": batch["labels"][rows],
    }


@exercise("6.6")
def train_in_parallel(
    model: torch.nn.Module,
    batches: list[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """DDP whose hook sums instead of averaging; rows dealt out from long to short, without padding."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    ddp.register_comm_hook(dist.group.WORLD, sum_over_ranks)
    shares = (deal(batch, rank, world_size) for batch in batches)
    for batch, mine in zip(batches, shares, strict=True):
        optimizer.zero_grad()
        logits = ddp(mine["input_ids"], mine["attention_mask"])
        loss = F.cross_entropy(logits, mine["labels"], reduction="sum") / len(batch["labels"])
        loss.backward()
        optimizer.step()
