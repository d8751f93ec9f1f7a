# Right solutions of lesson 06 by people who knew the notebook alone.

# %%
import hashlib
from collections.abc import Iterator

from autograder import exercise


@exercise("6.1")
class ShardSampler:
    """No generator: a keyed hash orders the indices, and a rank takes a contiguous piece."""

    def __init__(self, num_samples: int, rank: int, world_size: int, seed: int = 0) -> None:
        self.num_samples = num_samples
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        whole, rest = divmod(self.num_samples, self.world_size)
        return whole + (rest > 0)

    def _place(self, index: int) -> bytes:
        text = f"{self.seed}|{self.epoch}|{index}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def __iter__(self) -> Iterator[int]:
        order = sorted(range(self.num_samples), key=self._place)
        first = self.rank * len(self)
        return iter([order[i % self.num_samples] for i in range(first, first + len(self))])


# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.2")
class PlainDDP:
    """Objects cross: the state pickled, gradients as dicts that each rank adds up in order of rank."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        mine = dict(model.named_parameters()) | dict(model.named_buffers())
        box = [{name: tensor.detach().cpu() for name, tensor in mine.items()}]
        dist.broadcast_object_list(box, src=0)
        with torch.no_grad():
            for name, tensor in mine.items():
                tensor.copy_(box[0][name])

    def loss_and_gradients(self, batch: dict[str, torch.Tensor]) -> float:
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        losses = F.cross_entropy(logits, batch["labels"], reduction="none")
        losses.sum().backward()
        trained = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        report = {
            "losses": losses.detach().cpu(),
            "grads": {n: p.grad.cpu() for n, p in trained.items() if p.grad is not None},
        }
        reports = [None] * dist.get_world_size()
        dist.all_gather_object(reports, report)

        all_losses = torch.cat([r["losses"] for r in reports])
        for name, parameter in trained.items():
            parts = [r["grads"][name] for r in reports if name in r["grads"]]
            if parts:
                grad = torch.stack(parts).sum(dim=0) / len(all_losses)
                parameter.grad = grad.to(parameter.device)
        return all_losses.mean().item()


# %%
import gc
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

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


def sum_over_ranks(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP's exchange without its division: the loss is divided by all rows already."""
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


class Trainer:
    def __init__(self, job: dict, device: torch.device) -> None:
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.device = device
        torch.manual_seed(job["seed"])
        self.model = TextClassifier(ModelConfig(**job["model"])).to(device)
        self.ddp = DistributedDataParallel(self.model)
        self.ddp.register_comm_hook(None, sum_over_ranks)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=job["learning_rate"])
        torch.manual_seed(job["seed"] * 1009 + self.rank + 1)  # dropout

    def share(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """My rows: every W-th from the longest to the shortest, without columns of padding at the end."""
        lengths = batch["attention_mask"].long().sum(dim=1)
        rows = lengths.argsort(descending=True, stable=True)[self.rank :: self.world_size]
        mine = {name: tensor[rows] for name, tensor in batch.items()}
        used = mine["attention_mask"].bool().any(dim=0).nonzero()
        width = int(used.max()) + 1
        for name in ("input_ids", "attention_mask"):
            mine[name] = mine[name][:, :width]
        return {name: tensor.to(self.device) for name, tensor in mine.items()}

    def step(self, batch: dict[str, torch.Tensor]) -> None:
        mine = self.share(batch)
        self.optimizer.zero_grad()
        logits = self.ddp(mine["input_ids"], mine["attention_mask"])
        losses = F.cross_entropy(logits, mine["labels"], reduction="none")
        (losses.sum() / len(batch["labels"])).backward()
        self.optimizer.step()


@exercise("6.3")
def main(folder: Path) -> torch.nn.Module:
    """A trainer; DDP whose hook sums instead of averaging; rows dealt out by length, without padding."""
    folder = Path(folder)
    device = choose_device(int(os.environ["LOCAL_RANK"]), torch.cuda.device_count())
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")
    try:
        job = torch.load(folder / "job.pt", weights_only=True)
        trainer = Trainer(job, device)
        for batch in job["batches"]:
            trainer.step(batch)
        model = trainer.model
        if trainer.rank == 0:
            torch.save(model.state_dict(), folder / "last.pt")
        dist.barrier()
        del trainer
        gc.collect()
    finally:
        dist.destroy_process_group()
    return model


if "RANK" in os.environ:
    main(Path(sys.argv[1]))

# %%
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from autograder import exercise


def with_exchange_last(model: DistributedDataParallel, items: Sequence) -> Iterator[tuple]:
    """Each item with the context that its forward and backward belong in."""
    for left, item in zip(range(len(items) - 1, -1, -1), items, strict=True):
        yield item, (model.no_sync() if left else nullcontext())


@contextmanager
def returning_loss(network: torch.nn.Module, labels: torch.Tensor) -> Iterator[None]:
    """Meanwhile the network returns the sum of its losses instead of its logits."""
    hook = network.register_forward_hook(
        lambda module, inputs, logits: F.cross_entropy(logits, labels, reduction="sum")
    )
    try:
        yield
    finally:
        hook.remove()


@exercise("6.4")
def accumulate_step(
    model: DistributedDataParallel,
    micro_batches: Sequence[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """The loss is a forward hook inside DDP's forward; the count crosses meanwhile, and divides last."""
    model.zero_grad(set_to_none=True)
    optimizer.zero_grad(set_to_none=True)
    device = next(model.parameters()).device
    rows = sum(len(batch["input_ids"]) for batch in micro_batches)
    num_samples = torch.tensor(rows, dtype=torch.int64, device=device)
    counting = dist.all_reduce(num_samples, async_op=True)
    try:
        for batch, context in with_exchange_last(model, micro_batches):
            with context:
                with returning_loss(model.module, batch["labels"]):
                    loss = model(batch["input_ids"], batch["attention_mask"])
                loss.backward()
    except BaseException:
        model.zero_grad(set_to_none=True)  # what is half summed up helps nobody
        raise
    finally:
        counting.wait()
    factor = dist.get_world_size() / num_samples.item()  # DDP has divided by W
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(factor)
    optimizer.step()


# %%
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@dataclass(frozen=True)
class Means:
    """Means over `count` samples; two of them merge into that of all."""

    loss: float = 0.0
    accuracy: float = 0.0
    count: int = 0

    def __add__(self, other: "Means") -> "Means":
        count = self.count + other.count
        if count == 0:
            return self
        share = other.count / count
        return Means(
            self.loss + (other.loss - self.loss) * share,
            self.accuracy + (other.accuracy - self.accuracy) * share,
            count,
        )


@torch.no_grad()
def means_of_batch(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> Means:
    labels = batch["labels"]
    if not len(labels):
        return Means()
    logits = model(batch["input_ids"], batch["attention_mask"])
    losses = -F.log_softmax(logits, dim=1)[torch.arange(len(labels)), labels]
    num_right = int((logits.max(dim=1).indices == labels).sum())
    return Means(losses.double().mean().item(), num_right / len(labels), len(labels))


@exercise("6.5")
def evaluate_on_ranks(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """Running means that ranks merge after an all-gather: no sums, only means with weights."""
    in_training = {module for module in model.modules() if module.training}
    model.eval()
    try:
        mine = sum((means_of_batch(model, batch) for batch in batches), start=Means())
    finally:
        for module in in_training:
            module.training = True
    numbers = torch.tensor([mine.loss, mine.accuracy, mine.count], dtype=torch.float64)
    table = [torch.empty_like(numbers) for _ in range(dist.get_world_size())]
    dist.all_gather(table, numbers)
    ranks = [Means(loss, accuracy, int(n)) for loss, accuracy, n in map(torch.Tensor.tolist, table)]
    whole = reduce(Means.__add__, ranks)
    return {"loss": whole.loss, "accuracy": whole.accuracy, "num_samples": whole.count}


# %%
import torch
import torch.distributed as dist
import torch.nn.functional as F

from autograder import exercise


@exercise("6.6")
def train_in_parallel(
    model: torch.nn.Module,
    batches: list[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
) -> None:
    """`autograd.grad`; ranks gather gradients and add them up in order of rank: the same bits on all."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    trained = [p for p in model.parameters() if p.requires_grad]
    sizes = [p.numel() for p in trained]

    def my_gradients(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        num_rows = len(batch["labels"])
        start, stop = rank * num_rows // world_size, (rank + 1) * num_rows // world_size
        if start == stop:
            return trained[0].new_zeros(sum(sizes) + len(sizes))
        logits = model(batch["input_ids"][start:stop], batch["attention_mask"][start:stop])
        total = F.cross_entropy(logits, batch["labels"][start:stop], reduction="sum")
        grads = torch.autograd.grad(total / num_rows, trained, allow_unused=True)
        flags = torch.tensor([grad is not None for grad in grads]).to(trained[0])
        parts = [
            p.new_zeros(p.numel()) if grad is None else grad.reshape(-1)
            for p, grad in zip(trained, grads, strict=True)
        ]
        return torch.cat([*parts, flags])

    for batch in batches:
        mine = my_gradients(batch)
        table = [torch.empty_like(mine) for _ in range(world_size)]
        dist.all_gather(table, mine)
        total, *others = table
        for other in others:
            total += other
        *pieces, flags = total.split([*sizes, len(sizes)])
        optimizer.zero_grad(set_to_none=True)
        for parameter, piece, flag in zip(trained, pieces, flags.tolist(), strict=True):
            if flag:
                parameter.grad = piece.view_as(parameter)
        optimizer.step()
