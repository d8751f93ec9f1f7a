# Right solutions of lesson 01 by people who had read the released notebook alone.

# %%
import numpy as np
import torch

from autograder import exercise

PAD_ID = 0


def _padded_bytes(texts, width):
    """The memory of each row: that of its ids, then as many bytes of PAD_ID as are missing."""
    all_padding = np.full(width, PAD_ID, dtype=np.int64).tobytes()
    item = np.dtype(np.int64).itemsize
    for ids in texts:
        yield ids.tobytes()
        yield all_padding[item * len(ids) :]


@exercise("1.1")
def collate(batch: list[tuple[np.ndarray, int]]) -> dict[str, torch.Tensor]:
    """The bytes of texts and padding joined into one buffer, which is read back as a rectangle."""
    texts = [ids for ids, _ in batch]
    lengths = [len(ids) for ids in texts]
    rows, width = len(batch), max(lengths)
    memory = bytearray().join(_padded_bytes(texts, width))  # a bytearray can be written to
    return {
        "input_ids": torch.frombuffer(memory, dtype=torch.int64).view(rows, width),
        "attention_mask": torch.arange(width).expand(rows, width).lt(torch.tensor(lengths)[:, None]),
        "labels": torch.tensor([label for _, label in batch]),
    }


# %%
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from autograder import exercise


@exercise("1.2")
class BucketBatchSampler:
    """A stable sort by bins of log-length, whose phase is another in each epoch; the short batch stands anywhere."""

    BINS_PER_DOUBLING = 8

    def __init__(self, lengths: Sequence[int], micro_batch_size: int, seed: int = 0) -> None:
        self.lengths = np.asarray(lengths)
        self.micro_batch_size = micro_batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.micro_batch_size)

    def _generator(self) -> torch.Generator:
        state = np.random.SeedSequence((self.seed, self.epoch)).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state >> 1))  # fits into int64

    def __iter__(self) -> Iterator[list[int]]:
        generator = self._generator()
        num_samples, rows, num_batches = len(self.lengths), self.micro_batch_size, len(self)
        if num_samples == 0:
            return
        shuffled = torch.randperm(num_samples, generator=generator)
        phase = torch.rand((), generator=generator)
        length = torch.tensor(self.lengths, dtype=torch.float64)[shuffled]
        bins = torch.floor(torch.log2(length + 1) * self.BINS_PER_DOUBLING + phase)
        ordered = shuffled[torch.argsort(bins, stable=True)]  # random within a bin

        sizes = [rows] * num_batches
        if num_samples % rows:
            place = int(torch.randint(num_batches, (), generator=generator))
            sizes[place] = num_samples % rows
        batches = ordered.split(sizes)
        for k in torch.randperm(num_batches, generator=generator).tolist():
            yield batches[k].tolist()


# %%
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograder import exercise


@contextmanager
def training_mode(model: torch.nn.Module) -> Iterator[None]:
    before = [(module, module.training) for module in model.modules()]
    model.train()
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def steps(model, batches, optimizer, scheduler, max_norm) -> Iterator[tuple]:
    """Do one update for each batch; yield (summed loss, norm, tokens) as tensors, and the shape."""
    parameters = list(model.parameters())
    device = parameters[0].device
    for batch in batches:
        ids = batch["input_ids"].to(device)
        mask = batch["attention_mask"].to(device)
        labels = batch["labels"].to(device)
        log_probabilities = model(ids, mask).log_softmax(dim=-1)
        losses = -log_probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)

        for parameter in parameters:
            parameter.grad = None
        losses.mean().backward()
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
        optimizer.step()
        scheduler.step()
        yield (losses.detach().sum(), norm, mask.sum()), ids.shape


@exercise("1.3")
def train_one_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """A generator does the steps and yields tensors; the modes are put back module by module."""
    with training_mode(model):
        tensors, shapes = zip(*steps(model, batches, optimizer, scheduler, max_norm), strict=True)
    losses, norms, tokens = (torch.stack(column) for column in zip(*tensors, strict=True))
    num_samples = sum(rows for rows, _ in shapes)
    num_positions = sum(rows * width for rows, width in shapes)
    num_tokens = tokens.sum().item()
    return {
        "loss": losses.sum().item() / num_samples,
        "grad_norm": norms.mean().item(),
        "num_samples": num_samples,
        "num_tokens": num_tokens,
        "pad_fraction": (num_positions - num_tokens) / num_positions,
    }


# %%
import copy
from collections.abc import Iterable
from functools import reduce

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("1.4")
def evaluate(model: torch.nn.Module, batches: Iterable[dict[str, torch.Tensor]]) -> dict[str, float]:
    """A copy is measured, so that there is nothing to put back."""
    twin = copy.deepcopy(model).eval()
    device = next(twin.parameters()).device

    @torch.inference_mode()
    def measure(batch):
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        logits = twin(batch["input_ids"], batch["attention_mask"])
        losses = F.cross_entropy(logits, batch["labels"], reduction="none")
        hits = torch.argmax(logits, dim=-1) == batch["labels"]
        return losses.sum(dtype=torch.float64), hits.sum(), len(hits)

    totals = reduce(lambda a, b: [x + y for x, y in zip(a, b, strict=True)], map(measure, batches))
    loss_sum, num_right, num_samples = totals
    return {
        "loss": loss_sum.item() / num_samples,
        "accuracy": num_right.item() / num_samples,
        "num_samples": num_samples,
    }


# %%
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from autograder import exercise


class WholeBatches(Dataset):
    """The same samples; a fetcher that asks for many at once waits for all at the same time."""

    def __init__(self, dataset: Dataset, num_threads: int) -> None:
        self.dataset = dataset
        self.num_threads = num_threads
        self.pool = None  # threads cannot be inherited: made in the worker at first use

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.num_threads)
        return list(self.pool.map(self.dataset.__getitem__, indices))


@exercise("1.5")
def make_loader(
    dataset: Dataset,
    micro_batch_size: int,
    collate_fn: Callable[[list[Any]], dict[str, torch.Tensor]],
) -> Iterable[dict[str, torch.Tensor]]:
    """Worker processes, in each of which threads wait for all samples of a batch."""
    return DataLoader(
        WholeBatches(dataset, num_threads=min(16, micro_batch_size)),
        batch_size=micro_batch_size,
        shuffle=False,
        drop_last=False,
        collate_fn=collate_fn,
        num_workers=4,
        prefetch_factor=4,
        persistent_workers=True,
        pin_memory=torch.cuda.is_available(),
    )


# %%
import queue
import random
import threading
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder import exercise

PAD_ID = 0


def plan(lengths, rows, seed):
    rng = random.Random(seed)
    blurred = [(length * rng.uniform(0.97, 1.03), rng.random(), i) for i, length in enumerate(lengths)]
    order = [i for _, _, i in sorted(blurred)]
    batches = [order[i : i + rows] for i in range(0, len(order), rows)]
    rng.shuffle(batches)
    return batches


def rectangles(samples, batches):
    for indices in batches:
        texts, labels = zip(*map(samples.__getitem__, indices), strict=True)
        sizes = np.array([t.size for t in texts])
        mask = np.arange(sizes.max()) < sizes[:, None]
        ids = np.full(mask.shape, PAD_ID, dtype=np.int64)
        np.place(ids, mask, np.concatenate(texts))
        yield torch.from_numpy(ids), torch.from_numpy(mask), torch.tensor(labels)


def ahead(items, depth=2):
    """The same items, made in a thread; an error in there is raised here."""
    belt, end, stop = queue.Queue(depth), object(), threading.Event()

    def put(item):
        while not stop.is_set():
            try:
                return belt.put(item, timeout=0.1)
            except queue.Full:
                pass

    def produce():
        try:
            for item in items:
                put((item, None))
                if stop.is_set():
                    return
            put((end, None))
        except BaseException as error:
            put((end, error))

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        while True:
            item, error = belt.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        stop.set()
        thread.join()


@exercise("1.6")
def fast_epoch(
    model: torch.nn.Module,
    samples: Any,
    optimizer: torch.optim.Optimizer,
    micro_batch_size: int,
    seed: int,
) -> dict[str, float]:
    """A pipeline of generators, a thread that makes batches ahead, gradients without `backward`."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    device = parameters[0].device
    model.train()
    loss_sum = torch.zeros((), device=device)
    num_samples = 0
    for batch in ahead(rectangles(samples, plan(samples.lengths.tolist(), micro_batch_size, seed))):
        ids, mask, labels = (tensor.to(device, non_blocking=True) for tensor in batch)
        loss = F.cross_entropy(model(ids, mask), labels)
        for p, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True
        ):
            p.grad = gradient
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients, foreach=True)
        torch._foreach_mul_(gradients, (1.0 / (norm + 1e-6)).clamp(max=1.0))
        optimizer.step()
        loss_sum += loss.detach() * len(labels)
        num_samples += len(labels)
    return {"loss": loss_sum.item() / num_samples, "num_samples": num_samples}
