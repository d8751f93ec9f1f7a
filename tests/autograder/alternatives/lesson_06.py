"""Another right solution of each exercise of lesson 06, in a style other than the lesson's own."""

# %%
import itertools
from collections.abc import Iterator

import torch
from torch.utils.data import Sampler

from autograder import exercise


@exercise("6.1")
class ShardSampler(Sampler[int]):
    """A torch sampler that walks an endless repetition of the order, and takes every W-th index."""

    def __init__(self, num_samples: int, rank: int, world_size: int, seed: int = 0) -> None:
        self.num_samples, self.rank, self.world_size = num_samples, rank, world_size
        self.generator = torch.Generator()
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.num_samples // self.world_size)

    def __iter__(self) -> Iterator[int]:
        self.generator.manual_seed(self.seed + 1_000_003 * self.epoch)
        order = torch.randperm(self.num_samples, generator=self.generator).tolist()
        stop = len(self) * self.world_size
        yield from itertools.islice(itertools.cycle(order), self.rank, stop, self.world_size)


# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.2")
class PlainDDP:
    """Weights cross as one pickled object; gradients leave from hooks, while backward goes on."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        box = [model.state_dict() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(box, src=0)
        model.load_state_dict(box[0])
        self.pending: list[dist.Work] = []
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._send)

    def _send(self, parameter: torch.Tensor) -> None:
        self.pending.append(dist.all_reduce(parameter.grad, async_op=True))

    def loss_and_gradients(self, batch: dict[str, torch.Tensor]) -> float:
        labels = batch["labels"]
        num_samples = torch.tensor([len(labels)])
        dist.all_reduce(num_samples)
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits, labels, reduction="sum") / num_samples.item()
        loss.backward()
        while self.pending:
            self.pending.pop().wait()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        return float(mean)


# %%
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise
from course_lib.models.transformers import ModelConfig, TextClassifier


def choose_device(local_rank: int, num_gpus: int) -> torch.device:
    if num_gpus == 0:
        return torch.device("cpu")
    if local_rank not in range(num_gpus):
        raise ValueError(f"local rank {local_rank} has no GPU: there are {num_gpus}")
    return torch.device(f"cuda:{local_rank}")


@contextlib.contextmanager
def process_group(device: torch.device) -> Iterator[tuple[int, int]]:
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


@exercise("6.3")
def main(folder: Path) -> torch.nn.Module:
    """No wrapper: a rank takes a contiguous piece of the rows, and one flat vector is summed."""
    folder = Path(folder)
    job = torch.load(folder / "job.pt", weights_only=True)
    device = choose_device(int(os.environ["LOCAL_RANK"]), torch.cuda.device_count())
    with process_group(device) as (rank, world_size):
        torch.manual_seed(job["seed"])
        model = TextClassifier(ModelConfig(**job["model"])).to(device).train()
        torch.manual_seed(job["seed"] + 1000 + rank)
        weights = list(model.parameters())
        optimizer = torch.optim.SGD(weights, lr=job["learning_rate"])
        for batch in job["batches"]:
            num_rows = len(batch["labels"])
            part = {name: rows.tensor_split(world_size)[rank].to(device) for name, rows in batch.items()}
            flat = torch.zeros(sum(map(torch.numel, weights)), device=device)
            if len(part["labels"]):
                logits = model(part["input_ids"], part["attention_mask"])
                loss = F.cross_entropy(logits, part["labels"], reduction="sum") / num_rows
                gradients = torch.autograd.grad(loss, weights)
                torch.cat([gradient.flatten() for gradient in gradients], out=flat)
            dist.all_reduce(flat)
            pieces = flat.split([weight.numel() for weight in weights])
            for weight, piece in zip(weights, pieces, strict=True):
                weight.grad = piece.view_as(weight)
            optimizer.step()
        if rank == 0:
            torch.save(model.state_dict(), folder / "last.pt")
        dist.barrier()
    return model


if "RANK" in os.environ:
    main(Path(sys.argv[1]))

# %%
from collections.abc import Sequence
from contextlib import ExitStack

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise


@exercise("6.4")
def accumulate_step(
    model: DistributedDataParallel,
    micro_batches: Sequence[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Sums first: the number of samples is asked for after backward, and divides the gradients."""

    def add_gradients(batch: dict[str, torch.Tensor]) -> None:
        logits = model(batch["input_ids"], batch["attention_mask"])
        F.cross_entropy(logits, batch["labels"], reduction="sum").backward()

    optimizer.zero_grad()
    *first, last = micro_batches
    with ExitStack() as stack:
        stack.enter_context(model.no_sync())
        for batch in first:
            add_gradients(batch)
    add_gradients(last)
    num_samples = torch.tensor(sum(batch["labels"].numel() for batch in micro_batches))
    dist.all_reduce(num_samples)
    factor = dist.get_world_size() / num_samples.item()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(factor)
    optimizer.step()


# %%
from collections.abc import Iterable
from math import fsum

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.5")
def evaluate_on_ranks(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """Every rank hears of each sample's loss, as Python objects; no tensor is summed over ranks."""
    was_training = model.training
    losses: list[float] = []
    hits: list[bool] = []
    try:
        model.eval()
        with torch.inference_mode():
            for batch in batches:
                logits = model(batch["input_ids"], batch["attention_mask"])
                losses += F.cross_entropy(logits, batch["labels"], reduction="none").tolist()
                hits += logits.argmax(dim=-1).eq(batch["labels"]).tolist()
    finally:
        model.train(was_training)
    reports: list = [None] * dist.get_world_size()
    dist.all_gather_object(reports, (fsum(losses), sum(hits), len(losses)))
    loss_sum, right, seen = map(sum, zip(*reports, strict=True))
    return {"loss": loss_sum / seen, "accuracy": right / seen, "num_samples": seen}


# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


class FlatGradients:
    """One vector for all gradients: `.grad` of each parameter is a view into it."""

    def __init__(self, parameters: list[torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self.flat = torch.zeros(sum(p.numel() for p in parameters))

    def clear(self) -> None:
        self.flat.zero_()
        start = 0
        for parameter in self.parameters:
            stop = start + parameter.numel()
            parameter.grad = self.flat[start:stop].view_as(parameter)
            start = stop


@exercise("6.6")
def train_in_parallel(
    model: torch.nn.Module,
    batches: list[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Without DDP: one message a step, which carries every gradient."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    gradients = FlatGradients([p for p in model.parameters() if p.requires_grad])
    for batch in batches:
        gradients.clear()
        ids, mask, labels = (
            batch[name].tensor_split(world_size)[rank] for name in ("input_ids", "attention_mask", "labels")
        )
        if len(labels):
            total = F.cross_entropy(model(ids, mask), labels, reduction="sum")
            (total / len(batch["labels"])).backward()
        dist.all_reduce(gradients.flat)
        optimizer.step()
