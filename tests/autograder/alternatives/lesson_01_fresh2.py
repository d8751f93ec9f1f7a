# Right solutions of lesson 01 by people who had read the released notebook alone: a second round.

# %%
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from autograder import exercise


@exercise("1.2")
class BucketBatchSampler:
    """An exact sort, cuts that move with the random place of the short batch, a shuffle around each cut."""

    def __init__(self, lengths: Sequence[int], micro_batch_size: int, seed: int = 0) -> None:
        self.lengths = np.asarray(lengths).tolist()
        self.micro_batch_size = micro_batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.micro_batch_size)

    def _sizes(self, rng: random.Random) -> list[int]:
        """Sizes of the batches, from the shortest texts to the longest."""
        num_full, rest = divmod(len(self.lengths), self.micro_batch_size)
        sizes = [self.micro_batch_size] * num_full
        if rest:
            sizes.insert(rng.randint(0, num_full), rest)
        return sizes

    def __iter__(self) -> Iterator[list[int]]:
        # A text as seed is hashed by SHA-512: the same in every process.
        rng = random.Random(f"seed {self.seed}, epoch {self.epoch}")
        order = list(range(len(self.lengths)))
        rng.shuffle(order)  # the sort is stable: ties stay in random order
        order.sort(key=self.lengths.__getitem__)
        sizes = self._sizes(rng)
        cuts = list(accumulate(sizes))
        reach = max(1, self.micro_batch_size // 2)
        for cut in cuts[:-1]:  # texts near a cut may land on either side of it
            around = slice(max(0, cut - reach), cut + reach)
            cards = order[around]
            rng.shuffle(cards)
            order[around] = cards
        batches = [order[cut - size : cut] for cut, size in zip(cuts, sizes, strict=True)]
        rng.shuffle(batches)
        yield from batches


# %%
from collections.abc import Iterable
from typing import Any

import torch

from autograder import exercise


class Tally:
    """Running sums that live on the device; `read` is the only sync."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.sums = torch.zeros(size, dtype=torch.float64, device=device)

    def add(self, *values: torch.Tensor) -> None:
        self.sums += torch.stack([value.detach().double() for value in values])

    def read(self) -> list[float]:
        return self.sums.tolist()


@exercise("1.3")
def train_one_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """`torch.autograd.grad`, which adds to no gradient, and clipping by hand, out of place."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    device = parameters[0].device
    tally = Tally(3, device)
    num_steps = num_samples = num_positions = 0
    model.train()
    for batch in batches:
        ids, mask, labels = (
            batch[name].to(device, non_blocking=True) for name in ("input_ids", "attention_mask", "labels")
        )
        log_probs = model(ids, mask).log_softmax(dim=1)
        loss = -log_probs.gather(1, labels[:, None]).mean()
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        norms = [torch.linalg.vector_norm(g) for g in gradients if g is not None]
        norm = torch.linalg.vector_norm(torch.stack(norms))
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = None if gradient is None else gradient * scale
        optimizer.step()
        scheduler.step()
        num_steps += 1
        num_samples += labels.shape[0]
        num_positions += ids.numel()
        tally.add(loss * labels.shape[0], norm, mask.sum())
    loss_sum, norm_sum, num_tokens = tally.read()
    return {
        "loss": loss_sum / num_samples,
        "grad_norm": norm_sum / num_steps,
        "num_samples": num_samples,
        "num_tokens": round(num_tokens),
        "pad_fraction": 1.0 - num_tokens / num_positions,
    }


# %%
import math
from collections.abc import Iterable, Iterator

import torch

from autograder import exercise


def scores(
    model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]
) -> Iterator[tuple[float, bool]]:
    """(loss, is right) of each sample."""
    for batch in batches:
        labels = batch["labels"]
        with torch.no_grad():  # ends before the yield, so that it does not leak out
            logits = model(batch["input_ids"], batch["attention_mask"]).double()
            losses = logits.logsumexp(dim=1) - logits.gather(1, labels.unsqueeze(1)).squeeze(1)
            is_right = logits.argmax(dim=1).eq(labels)
        yield from zip(losses.tolist(), is_right.tolist(), strict=True)


@exercise("1.4")
def evaluate(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """Cross-entropy by hand in float64, a generator of samples, `math.fsum`; modes are put back one by one."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        found = list(scores(model, batches))
    finally:
        for module, mode in modes.items():
            module.training = mode
    return {
        "loss": math.fsum(loss for loss, _ in found) / len(found),
        "accuracy": sum(is_right for _, is_right in found) / len(found),
        "num_samples": len(found),
    }


# %%
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from autograder import exercise


class Promises(Dataset):
    """`promises[i]` returns at once: a future of `dataset[i]`."""

    def __init__(self, dataset: Dataset, threads: ThreadPoolExecutor) -> None:
        self.dataset, self.threads = dataset, threads

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Future:
        return self.threads.submit(lambda: self.dataset[index])


class AheadLoader:
    """Batches of promises; some of them are made before the first is redeemed."""

    num_threads = 16

    def __init__(self, dataset: Dataset, micro_batch_size: int, collate_fn: Callable) -> None:
        self.dataset, self.micro_batch_size, self.collate_fn = dataset, micro_batch_size, collate_fn

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        num_ahead = max(3, math.ceil(2 * self.num_threads / self.micro_batch_size))
        threads = ThreadPoolExecutor(self.num_threads)
        try:
            promises = Promises(self.dataset, threads)
            promised = iter(DataLoader(promises, batch_size=self.micro_batch_size, collate_fn=list))
            line = deque(islice(promised, num_ahead))
            while line:
                futures = line.popleft()
                line.extend(islice(promised, 1))
                yield self.collate_fn([future.result() for future in futures])
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


@exercise("1.5")
def make_loader(
    dataset: Dataset, micro_batch_size: int, collate_fn: Callable[[list[Any]], dict[str, torch.Tensor]]
) -> Iterable[dict[str, torch.Tensor]]:
    """Futures as samples: a DataLoader without workers makes batches of them."""
    return AheadLoader(dataset, micro_batch_size, collate_fn)


# %%
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise

PAD_ID = 0


class PackedEpoch:
    """All samples on the device, each id once and no padding; a batch is one gather."""

    def __init__(self, samples: Any, device: torch.device) -> None:
        texts, labels = zip(*(samples[i] for i in range(len(samples))), strict=True)
        sizes = torch.tensor([len(text) for text in texts])
        self.widths = sizes.tolist()
        self.flat = torch.from_numpy(np.concatenate(texts).astype(np.int64)).to(device)
        self.starts = (sizes.cumsum(0) - sizes).to(device)
        self.sizes = sizes.to(device)
        self.labels = torch.tensor(labels, dtype=torch.int64).to(device)
        self.positions = torch.arange(max(self.widths), device=device)

    def batch(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = torch.tensor(indices).to(self.flat.device, non_blocking=True)
        positions = self.positions[: max(self.widths[i] for i in indices)]
        mask = positions < self.sizes[rows, None]
        where = (self.starts[rows, None] + positions).clamp(max=len(self.flat) - 1)
        return self.flat[where].masked_fill(~mask, PAD_ID), mask, self.labels[rows]


def like_lengths(lengths: np.ndarray, size: int, seed: int) -> list[list[int]]:
    """Batches of about the same length, by buckets of a random phase, in random order."""
    generator = torch.Generator().manual_seed(seed)
    phase = torch.rand((), generator=generator, dtype=torch.float64)
    logs = torch.tensor(lengths, dtype=torch.float64).clamp(min=1).log()
    bucket = torch.floor(logs / np.log(1.1) + phase)
    shuffled = torch.randperm(len(bucket), generator=generator)
    batches = shuffled[bucket[shuffled].argsort(stable=True)].split(size)
    return [batches[i].tolist() for i in torch.randperm(len(batches), generator=generator).tolist()]


@exercise("1.6")
def fast_epoch(
    model: torch.nn.Module,
    samples: Any,
    optimizer: torch.optim.Optimizer,
    micro_batch_size: int,
    seed: int,
) -> dict[str, float]:
    """All ids of the epoch end to end in one tensor; each batch is gathered by start + position."""
    epoch = PackedEpoch(samples, next(model.parameters()).device)
    losses, rows = [], []
    model.train()
    for indices in like_lengths(np.asarray(samples.lengths), micro_batch_size, int(seed)):
        ids, mask, labels = epoch.batch(indices)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids, mask), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        rows.append(len(indices))
    means = np.array(torch.stack(losses).tolist())  # the one wait of the epoch
    return {"loss": float(np.average(means, weights=rows)), "num_samples": sum(rows)}
