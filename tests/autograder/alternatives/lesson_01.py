"""Another right solution of each exercise of lesson 01, in another style than the reference."""

# %%
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from autograder import exercise


@exercise("1.1")
def collate(batch: list[tuple[np.ndarray, int]]) -> dict[str, torch.Tensor]:
    texts: list[Any]
    texts, labels = map(list, zip(*batch, strict=True))
    # -1 is no id, so that the mask needs no lengths; a first row of the width wanted is taken away again.
    width = -(-max(map(len, texts)) // 8) * 8
    rows = [
        torch.zeros(width, dtype=torch.int64),
        *(torch.from_numpy(text.astype(np.int64)) for text in texts),
    ]
    filled = pad_sequence(rows, batch_first=True, padding_value=-1)[1:]
    is_real = filled >= 0
    return {
        "input_ids": filled.masked_fill(~is_real, 0),
        "attention_mask": is_real,
        "labels": torch.as_tensor(labels),
    }


# %%
import random
from collections.abc import Iterator, Sequence
from itertools import islice

from autograder import exercise


@exercise("1.2")
class BucketBatchSampler:
    """One long shuffle, sorted in random stretches: no sample has the same neighbours twice."""

    def __init__(self, lengths: Sequence[int], micro_batch_size: int, seed: int = 0) -> None:
        self.lengths = [int(length) for length in lengths]
        self.micro_batch_size, self.seed, self.epoch = micro_batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.lengths), self.micro_batch_size)
        return whole + (rest > 0)

    def __iter__(self) -> Iterator[list[int]]:
        chance = random.Random(f"{self.seed} {self.epoch}")
        todo = iter(chance.sample(range(len(self.lengths)), len(self.lengths)))
        batches: list[list[int]] = []
        while stretch := list(islice(todo, 96 * self.micro_batch_size)):
            stretch.sort(key=self.lengths.__getitem__)
            while stretch:
                batches.append(stretch[: self.micro_batch_size])
                del stretch[: self.micro_batch_size]
        while batches:
            yield batches.pop(chance.randrange(len(batches)))


# %%
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from autograder import exercise


@exercise("1.3")
def train_one_epoch(
    model: nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    max_norm: float = 1.0,
) -> dict[str, float]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    per_sample = nn.CrossEntropyLoss(reduction="none")
    losses, norms, masks = [], [], []

    def closure() -> torch.Tensor:
        of_each = per_sample(model(**inputs), labels)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(of_each.mean(), parameters), strict=True
        ):
            parameter.grad = gradient
        norms.append(nn.utils.clip_grad_norm_(parameters, max_norm))
        losses.append(of_each.detach())
        return of_each.mean()

    for batch in batches:
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        labels = batch["labels"]
        model.train()
        optimizer.step(closure)
        scheduler.step()
        masks.append(batch["attention_mask"].flatten())
    every_loss, every_place = torch.cat(losses), torch.cat(masks)
    real = int(every_place.sum())
    return {
        "loss": float(every_loss.mean()),
        "grad_norm": float(torch.stack(norms).mean()),
        "num_samples": len(every_loss),
        "num_tokens": real,
        "pad_fraction": (len(every_place) - real) / len(every_place),
    }


# %%
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from autograder import exercise


@contextmanager
def only_looking(model: torch.nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad():
            model.train(False)
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@exercise("1.4")
def evaluate(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    with only_looking(model):
        pairs = [(model(b["input_ids"], b["attention_mask"]).double(), b["labels"]) for b in batches]
    logits, labels = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    surprise = logits.logsumexp(dim=1) - logits[torch.arange(len(labels)), labels]
    hits = logits.max(dim=1).indices.eq(labels)
    return {
        "loss": surprise.mean().item(),
        "accuracy": hits.double().mean().item(),
        "num_samples": labels.numel(),
    }


# %%
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import Dataset

from autograder import exercise


class Conveyor:
    """Threads fetch some batches ahead; a pass takes them off in the order in which they were asked for."""

    def __init__(
        self, dataset: Any, rows: int, collate_fn: Callable[[list[Any]], Any], ahead: int = 24
    ) -> None:
        self.dataset, self.rows, self.collate_fn, self.ahead = dataset, rows, collate_fn, ahead
        self.threads = ThreadPoolExecutor(ahead)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        size, asked = len(self.dataset), 0
        on_the_way: deque[Future[Any]] = deque()
        for start in range(0, size, self.rows):
            wanted = min(size, start + self.rows + self.ahead)
            on_the_way.extend(self.threads.submit(self.dataset.__getitem__, i) for i in range(asked, wanted))
            asked = max(asked, wanted)
            due = min(self.rows, size - start)
            yield self.collate_fn([on_the_way.popleft().result() for _ in range(due)])


@exercise("1.5")
def make_loader(
    dataset: Dataset, micro_batch_size: int, collate_fn: Callable[[list[Any]], dict[str, torch.Tensor]]
) -> Conveyor:
    return Conveyor(dataset, micro_batch_size, collate_fn)


# %%
import random
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from autograder import exercise


def batches_of(samples: Any, rows: int, chance: random.Random) -> list[list[int]]:
    """Like lengths together, ties at random, in random order."""
    order = sorted(range(len(samples)), key=lambda i: (int(samples.lengths[i]), chance.random()))
    batches = [order[start : start + rows] for start in range(0, len(order), rows)]
    chance.shuffle(batches)
    return batches


class Step:
    """One update, by the sum of the losses over their number."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model.train(), optimizer

    def __call__(self, batch: list[tuple[Any, int]]) -> torch.Tensor:
        texts, labels = zip(*batch, strict=True)
        lengths = torch.tensor([len(text) for text in texts])
        input_ids = pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
        mask = torch.arange(input_ids.shape[1]) < lengths[:, None]
        of_each = -self.model(input_ids, mask).log_softmax(1).gather(1, torch.tensor(labels)[:, None])
        self.model.zero_grad()
        (of_each.sum() / len(batch)).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=1.0)
        self.optimizer.step()
        return of_each.detach().flatten()


@exercise("1.6")
def fast_epoch(
    model: nn.Module, samples: Any, optimizer: torch.optim.Optimizer, micro_batch_size: int, seed: int
) -> dict[str, float]:
    step = Step(model, optimizer)
    batches = batches_of(samples, micro_batch_size, random.Random(seed))
    losses = torch.cat([step([samples[i] for i in batch]) for batch in batches])
    return {"loss": losses.mean().item(), "num_samples": len(losses)}
