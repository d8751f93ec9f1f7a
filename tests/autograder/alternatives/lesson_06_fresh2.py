# Right solutions of lesson 06 by a second round of people who knew the released notebook alone.

# %%
import math
from collections.abc import Iterator

import numpy as np

from autograder import exercise

MASK = 2**64 - 1


@exercise("6.1")
class ShardSampler:
    """A counter-based generator keyed by seed and epoch; ranks take pieces of the order, by a wrapping take."""

    def __init__(self, num_samples: int, rank: int, world_size: int, seed: int = 0) -> None:
        self.num_samples = num_samples
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return math.ceil(self.num_samples / self.world_size)

    def _order(self) -> np.ndarray:
        key = np.array([int(self.seed) & MASK, int(self.epoch) & MASK], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key)).permutation(self.num_samples)

    def __iter__(self) -> Iterator[int]:
        block = np.arange(len(self)) + self.rank * len(self)
        return iter(self._order().take(block, mode="wrap").tolist())


# %%
import torch
import torch.distributed as dist

from autograder import exercise


@exercise("6.2")
class PlainDDP:
    """A parameter server: all is reduced to rank 0 and broadcast from there; cross-entropy written out."""

    SERVER = 0

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        for _, tensor in [*model.named_parameters(), *model.named_buffers()]:
            copy = tensor.detach().clone(memory_format=torch.contiguous_format)
            dist.broadcast(copy, src=self.SERVER)
            tensor.detach().copy_(copy)

    def _total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over the ranks, in place, on all of them."""
        dist.reduce(tensor, dst=self.SERVER)
        dist.broadcast(tensor, src=self.SERVER)
        return tensor

    def loss_and_gradients(self, batch: dict[str, torch.Tensor]) -> float:
        labels = batch["labels"]
        rows = self._total(torch.tensor([labels.shape[0]], device=labels.device)).item()
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        of_label = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
        share = (logits.logsumexp(dim=1) - of_label).sum() / rows  # shares add up to the mean
        share.backward()
        for parameter in self.model.parameters():
            if parameter.grad is not None:  # frozen ones have none, on no rank
                self._total(parameter.grad)
        return self._total(share.detach().reshape(1)).item()


# %%
import hashlib
import os
import sys
from dataclasses import dataclass
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
    match num_gpus:
        case 0:
            return torch.device("cpu")
        case _ if local_rank >= num_gpus:
            raise ValueError(f"{num_gpus} GPUs are not enough for local rank {local_rank}")
        case _:
            return torch.device("cuda", local_rank)


@dataclass
class Place:
    """Where this process stands."""

    rank: int
    local_rank: int
    world_size: int

    @classmethod
    def from_environment(cls):
        return cls(*(int(os.environ[n]) for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE")))

    def own_rows(self, batch, device):
        rows = torch.arange(self.rank, len(batch["labels"]), self.world_size)
        return {name: whole.index_select(0, rows).to(device) for name, whole in batch.items()}


def exchange(optimizer, args, kwargs):
    """Before each step: sum the gradients over the ranks."""
    meetings = [
        dist.all_reduce(parameter.grad, async_op=True)
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
    for meeting in meetings:
        meeting.wait()


@exercise("6.3")
def main(folder: Path) -> torch.nn.Module:
    """The exchange is a pre-hook of the optimizer's step: an asynchronous all-reduce of each gradient."""
    place = Place.from_environment()
    device = choose_device(place.local_rank, torch.cuda.device_count())
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        init_method="env://",
        rank=place.rank,
        world_size=place.world_size,
    )
    try:
        job = torch.load(Path(folder, "job.pt"), weights_only=True)
        torch.manual_seed(job["seed"])
        model = TextClassifier(ModelConfig(**job["model"]))
        digest = hashlib.sha256(f"dropout {job['seed']} {place.rank}".encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:7], "little"))
        model.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=job["learning_rate"])
        optimizer.register_step_pre_hook(exchange)
        for batch in job["batches"]:
            own = place.own_rows(batch, device)
            mean = F.cross_entropy(model(own["input_ids"], own["attention_mask"]), own["labels"])
            optimizer.zero_grad()
            (mean * len(own["labels"]) / len(batch["labels"])).backward()
            optimizer.step()
        if place.rank == 0:
            partial = Path(folder, "last.pt.partial")
            torch.save(model.state_dict(), partial)
            os.replace(partial, Path(folder, "last.pt"))  # noqa: PTH105
        dist.barrier()
    finally:
        dist.destroy_process_group()
    return model


if "RANK" in os.environ:
    main(Path(sys.argv[1]))

# %%
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain, repeat

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
    """The accumulation is a closure of `optimizer.step`; the row counts come from an all-gather of objects."""
    world_size = dist.get_world_size()
    rows_of_ranks = [None] * world_size
    dist.all_gather_object(rows_of_ranks, sum(len(batch["labels"]) for batch in micro_batches))
    num_rows = sum(rows_of_ranks)

    def closure():
        optimizer.zero_grad(set_to_none=True)
        contexts = chain(repeat(model.no_sync, len(micro_batches) - 1), [nullcontext])
        mean = 0.0
        for batch, context in zip(micro_batches, contexts, strict=True):
            with context():
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"], reduction="sum")
                (loss * (world_size / num_rows)).backward()
            mean += loss.item() / num_rows
        return mean

    try:
        optimizer.step(closure)
    except BaseException:
        optimizer.zero_grad(set_to_none=True)
        raise


# %%
import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


def samples(model: torch.nn.Module, batches: Iterable[dict]) -> Iterator[tuple[float, bool]]:
    for batch in batches:
        logits = model(batch["input_ids"], batch["attention_mask"])
        losses = F.cross_entropy(logits, batch["labels"], reduction="none")
        hits = logits.max(dim=-1).indices == batch["labels"]
        yield from zip(losses.tolist(), hits.tolist(), strict=True)


@exercise("6.5")
def evaluate_on_ranks(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """A generator of losses and hits; rank 0 computes the report, and broadcasts it as an object."""
    with ExitStack() as stack:
        for module in model.modules():
            stack.callback(setattr, module, "training", module.training)
        stack.enter_context(torch.no_grad())
        model.train(False)
        own = list(samples(model, batches))

    device = next(model.parameters()).device
    loss_sum = torch.tensor([math.fsum(loss for loss, _ in own)], dtype=torch.float64, device=device)
    counts = torch.tensor([sum(hit for _, hit in own), len(own)], device=device)
    dist.reduce(loss_sum, dst=0)
    dist.reduce(counts, dst=0)
    box = [None]
    if dist.get_rank() == 0:
        num_right, num_samples = counts.tolist()
        divisor = num_samples or math.nan
        box[0] = {
            "loss": loss_sum.item() / divisor,
            "accuracy": num_right / divisor,
            "num_samples": num_samples,
        }
    dist.broadcast_object_list(box, src=0)
    return box[0]


# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


class Overlap:
    """Sums gradients over the ranks in buckets, while backward still runs."""

    def __init__(self, model: torch.nn.Module, bucket_bytes: int = 4_000_000) -> None:
        self.bucket_bytes = bucket_bytes
        self.waiting: list[torch.Tensor] = []
        self.sent: list[tuple] = []
        self.hooks = [
            parameter.register_post_accumulate_grad_hook(self._ready)
            for parameter in model.parameters()
            if parameter.requires_grad
        ]

    def _ready(self, parameter: torch.Tensor) -> None:
        self.waiting.append(parameter.grad)
        if sum(gradient.nbytes for gradient in self.waiting) >= self.bucket_bytes:
            self._send()

    def _send(self) -> None:
        if self.waiting:
            flat = torch.cat([gradient.reshape(-1) for gradient in self.waiting])
            self.sent.append((dist.all_reduce(flat, async_op=True), flat, self.waiting))
            self.waiting = []

    def finish(self) -> None:
        """After backward: wait for all sums, and put them into `.grad`."""
        self._send()
        for work, flat, gradients in self.sent:
            work.wait()
            pieces = flat.split([gradient.numel() for gradient in gradients])
            for gradient, piece in zip(gradients, pieces, strict=True):
                gradient.copy_(piece.view_as(gradient))
        self.sent = []

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        for hook in self.hooks:
            hook.remove()


@exercise("6.6")
def train_in_parallel(
    model: torch.nn.Module,
    batches: list[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """DDP's overlap by hand: post-accumulate hooks fill buckets that leave while backward goes on."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    with Overlap(model) as overlap:
        for batch in batches:
            ids, mask, labels = (
                batch[name].tensor_split(world_size)[rank]
                for name in ("input_ids", "attention_mask", "labels")
            )
            optimizer.zero_grad(set_to_none=True)
            model.zero_grad(set_to_none=True)
            summed = F.cross_entropy(model(ids, mask), labels, reduction="sum")
            (summed / len(batch["labels"])).backward()
            overlap.finish()
            optimizer.step()
