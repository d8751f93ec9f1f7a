"""Right solutions that look nothing like the reference: each must get its due."""

from __future__ import annotations

import pytest

from autograder.engine import check_source

PAD_SEQUENCE = """
import torch
from torch.nn.utils.rnn import pad_sequence

@exercise("1.1")
def collate(batch):
    rows = [torch.tensor(ids) for ids, _ in batch]
    lengths = torch.tensor([len(row) for row in rows])
    input_ids = pad_sequence(rows, batch_first=True)
    return {
        "labels": torch.tensor([int(label) for _, label in batch], dtype=torch.long),
        "attention_mask": torch.arange(input_ids.shape[1]) < lengths[:, None],
        "input_ids": input_ids,
    }
"""

MULTIPLE_OF_EIGHT = """
import torch
import torch.nn.functional as F

def _row(ids, width):
    return F.pad(torch.as_tensor(ids.copy()), (0, width - len(ids)))

@exercise("1.1")
def collate(batch):
    width = (max(len(ids) for ids, _ in batch) + 7) // 8 * 8
    input_ids = torch.stack([_row(ids, width) for ids, _ in batch])
    mask = torch.stack([torch.arange(width) < len(ids) for ids, _ in batch])
    return {"input_ids": input_ids, "attention_mask": mask, "labels": torch.tensor([y for _, y in batch])}
"""

POOLS = """
import random

@exercise("1.2")
class BucketBatchSampler:
    POOL = 64

    def __init__(self, lengths, micro_batch_size, seed=0):
        self.lengths = [int(n) for n in lengths]
        self.size = micro_batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        whole, rest = divmod(len(self.lengths), self.size)
        return whole + bool(rest)

    def __iter__(self):
        rng = random.Random(f"{self.seed}/{self.epoch}")
        order = list(range(len(self.lengths)))
        rng.shuffle(order)
        batches = []
        step = self.POOL * self.size
        for start in range(0, len(order), step):
            pool = sorted(order[start : start + step], key=self.lengths.__getitem__)
            batches += [pool[i : i + self.size] for i in range(0, len(pool), self.size)]
        rng.shuffle(batches)
        return iter(batches)
"""

CLEARED_AT_THE_END = """
import torch
from torch import nn

@exercise("1.3")
def train_one_epoch(model, batches, optimizer, scheduler, max_norm=1.0):
    criterion = nn.CrossEntropyLoss(reduction="none")
    model.train()
    optimizer.zero_grad(set_to_none=False)
    losses, norms, real, slots = [], [], [], 0
    for step, batch in enumerate(batches):
        per_sample = criterion(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
        per_sample.mean().backward()
        norms.append(nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], max_norm))
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(per_sample.detach())
        real.append(batch["attention_mask"].sum())
        slots += batch["input_ids"].shape[0] * batch["input_ids"].shape[1]
    every = torch.cat(losses)
    tokens = int(torch.stack(real).sum())
    return dict(loss=every.mean().item(), grad_norm=torch.stack(norms).mean().item(), num_samples=every.numel(),
                num_tokens=tokens, pad_fraction=1 - tokens / slots)
"""

COLLECTED = """
import torch

@exercise("1.4")
@torch.no_grad()
def evaluate(model, batches):
    mode = model.training
    try:
        model.train(False)
        pairs = [(model(b["input_ids"], b["attention_mask"]), b["labels"]) for b in batches]
    finally:
        model.train(mode)
    logits, labels = (torch.cat(part) for part in zip(*pairs))
    picked = logits.log_softmax(-1).gather(1, labels[:, None])
    return {
        "loss": -picked.mean().item(),
        "accuracy": (logits.argmax(1) == labels).float().mean().item(),
        "num_samples": len(labels),
    }
"""

THREADS = """
from collections import deque
from concurrent.futures import ThreadPoolExecutor

class _Ahead:
    def __init__(self, dataset, size, collate_fn):
        self.dataset, self.size, self.collate_fn = dataset, size, collate_fn

    def __iter__(self):
        with ThreadPoolExecutor(16) as threads:
            waiting = deque(threads.submit(self.dataset.__getitem__, i) for i in range(len(self.dataset)))
            while waiting:
                batch = [waiting.popleft().result() for _ in range(min(self.size, len(waiting)))]
                yield self.collate_fn(batch)

@exercise("1.5")
def make_loader(dataset, micro_batch_size, collate_fn):
    return _Ahead(dataset, micro_batch_size, collate_fn)
"""

WITH_THE_LIBRARY = """
import torch
from course_lib import BucketBatchSampler, collate, train_step

@exercise("1.6")
def fast_epoch(model, samples, optimizer, micro_batch_size, seed):
    model.train()
    sampler = BucketBatchSampler(samples.lengths, micro_batch_size, seed=seed)
    total, count = 0.0, 0
    for indices in sampler:
        batch = collate([samples[i] for i in indices])
        total = total + train_step(model, batch, optimizer)["loss"] * len(indices)
        count += len(indices)
    return {"loss": float(total) / count, "num_samples": count}
"""


@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [("1.3", CLEARED_AT_THE_END), ("1.4", COLLECTED)],
    ids=["1.3 cleared at the end", "1.4 collected first"],
)
def test_right_without_a_clock(exercise_id: str, source: str) -> None:
    result = check_source(exercise_id, source)
    assert result["verdict"] == "pass", result["reason"]


@pytest.mark.measures
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [
        ("1.1", PAD_SEQUENCE),
        ("1.1", MULTIPLE_OF_EIGHT),
        ("1.2", POOLS),
        ("1.5", THREADS),
        ("1.6", WITH_THE_LIBRARY),
    ],
    ids=["1.1 pad_sequence", "1.1 multiple of eight", "1.2 pools", "1.5 threads", "1.6 with course_lib"],
)
def test_right_and_fast(exercise_id: str, source: str) -> None:
    result = check_source(exercise_id, source)
    assert result["verdict"] == "pass", result["reason"]
