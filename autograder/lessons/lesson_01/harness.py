"""What runs around a learner's solution in the sandbox. `learner` is the function or class of the cell.

Nothing secret stands here: seeds come with each call, and every comparison happens in the parent process.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.counters import count_events
from course_lib.data import TokenStore, collate, docstring_store
from course_lib.models import ModelConfig, TextClassifier

learner: Any = globals().get("learner")
MICRO_BATCH_SIZE = 8
BATCHES_PER_STEP = {"1.1": 1, "1.2": 4, "1.6": 3}  # of a timed segment; bucketing needs a pool to choose from
MAX_LENGTH = 1024  # the longest text of the corpus, which the naive loop pads everything to


@functools.cache
def _store() -> TokenStore:
    return docstring_store(max_length=MAX_LENGTH, progress=False)[0]


def _new_model(seed: int) -> tuple[TextClassifier, torch.optim.Optimizer]:
    """A fresh classifier of the corpus, without dropout, so that equal inputs give equal losses."""
    torch.manual_seed(seed)
    store = _store()
    model = TextClassifier(_sizes(num_classes=len(store.label_names), max_length=MAX_LENGTH))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def _sizes(num_classes: int, max_length: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=8192,
        num_classes=num_classes,
        max_length=max_length,
        d_model=32,
        num_layers=1,
        num_heads=2,
        dropout=0.0,
    )


def _train_step(model: Any, optimizer: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def _secret_samples(rng: np.random.Generator, number: int) -> np.ndarray:
    """Indices of `number` samples of the corpus: one of each quantile of length, in random order.

    Every draw so has its share of long texts, and the work of one segment is much like that of the next.
    """
    by_length = _by_length()
    quantiles = (np.arange(number) + rng.random(number)) / number
    return rng.permutation(by_length[(quantiles * len(by_length)).astype(np.int64)])


@functools.cache
def _by_length() -> np.ndarray:
    return np.argsort(_store().lengths, kind="stable")


# 1.1


def collate_once(ids: list[np.ndarray], labels: list[int]) -> dict[str, Any]:
    """The learner's batch of these samples, and the samples afterwards."""
    samples = [(row.copy(), int(label)) for row, label in zip(ids, labels, strict=True)]
    batch = learner(samples)
    return {
        "type": type(batch).__name__,
        "batch": {k: v for k, v in batch.items() if isinstance(v, torch.Tensor)}
        if isinstance(batch, dict)
        else {},
        "samples": [row for row, _ in samples],
    }


def collate_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """Train on batches of secret samples that the learner's function collates."""
    store = _store()
    rng = np.random.default_rng(seed)
    model, optimizer = _new_model(seed)
    losses = []
    num_batches = num_steps * BATCHES_PER_STEP["1.1"]
    for chosen in _secret_samples(rng, num_batches * MICRO_BATCH_SIZE).reshape(num_batches, -1):
        batch = learner([store[int(index)] for index in chosen])
        losses.append(_train_step(model, optimizer, batch))
    return {"losses": torch.stack(losses), "logits": _probe(model, store, rng)}


def _probe(model: Any, store: TokenStore, rng: np.random.Generator) -> torch.Tensor:
    """Logits of the trained model on samples that were not named before the training was done."""
    batch = collate([store[int(index)] for index in rng.integers(len(store), size=4)])
    with torch.no_grad():
        return model(batch["input_ids"], batch["attention_mask"])


# 1.2


def sampler_epochs(
    lengths: np.ndarray, micro_batch_size: int, seed: int, epochs: list[int]
) -> list[dict[str, Any]]:
    """The batches of each of these epochs, flattened, from one sampler."""
    sampler = learner(lengths.copy(), micro_batch_size, seed)
    answers = []
    for epoch in epochs:
        sampler.set_epoch(epoch)
        batches = [[int(index) for index in batch] for batch in sampler]
        answers.append(
            {
                "indices": np.array([index for batch in batches for index in batch], dtype=np.int64),
                "sizes": np.array([len(batch) for batch in batches], dtype=np.int64),
                "len": len(sampler),
            }
        )
    return answers


def sampler_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One epoch over secret samples in the learner's batches."""
    store = _store()
    rng = np.random.default_rng(seed)
    model, optimizer = _new_model(seed)
    chosen = _secret_samples(rng, num_steps * BATCHES_PER_STEP["1.2"] * MICRO_BATCH_SIZE)
    sampler = learner(store.lengths[chosen], MICRO_BATCH_SIZE, seed)
    sampler.set_epoch(1)
    used: list[int] = []
    losses: list[torch.Tensor] = []
    for batch_indices in sampler:
        batch = collate([store[int(chosen[index])] for index in batch_indices])
        losses.append(_train_step(model, optimizer, batch))
        used.extend(int(index) for index in batch_indices)
    return {"used": np.array(used, dtype=np.int64), "losses": torch.stack(losses)}


# 1.3 and 1.4


def _small_model(seed: int, dropout: float) -> TextClassifier:
    torch.manual_seed(seed)
    return TextClassifier(
        ModelConfig(
            vocab_size=60,
            num_classes=5,
            max_length=32,
            d_model=16,
            num_layers=1,
            num_heads=2,
            dropout=dropout,
        )
    )


def _small_batches(seed: int, num_batches: int) -> list[dict[str, torch.Tensor]]:
    """Batches of random texts; the last is short and of one class, so that a mean of means differs."""
    rng = np.random.default_rng(seed)
    batches = []
    for index in range(num_batches):
        rows = 12 if index < num_batches - 1 else 2
        labels = rng.integers(5, size=rows) if rows > 2 else np.full(rows, rng.integers(5))
        samples = [(rng.integers(3, 60, size=rng.integers(2, 20)), int(label)) for label in labels]
        batches.append(collate(samples))
    return batches


def train_epoch_once(seed: int, num_batches: int, max_norm: float, gradient_scale: float) -> dict[str, Any]:
    """One epoch of the learner's loop on a small model: final weights, report, and what was counted."""
    model = _small_model(seed, dropout=0.0)
    # A head this large makes gradient norms well above and below `max_norm`, so that clipping shows.
    with torch.no_grad():
        model.head.weight.mul_(gradient_scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step) ** 0.7)
    # Gradients left over from an earlier pass: a loop that never clears them shows.
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.3)
    modes: list[bool] = []
    model.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    model.eval()  # as an evaluation before it may have left it
    batches = _small_batches(seed, num_batches)
    with count_events(model) as counts:
        report = learner(model, iter(batches), optimizer, scheduler, max_norm)
    return {
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
        "report": _numbers(report),
        "types": {key: type(value).__name__ for key, value in report.items()}
        if isinstance(report, dict)
        else {},
        "syncs": counts.num_syncs,
        "optimizer_steps": counts.num_optimizer_steps,
        "scheduler_steps": scheduler.last_epoch,
        "train_mode": all(modes) and bool(modes),
    }


def evaluate_once(seed: int, num_batches: int, training: bool) -> dict[str, Any]:
    """The learner's evaluation of a small model with dropout, and the traces that it left."""
    model = _small_model(seed, dropout=0.5)
    model.train(training)
    modes: list[bool] = []
    gradients: list[bool] = []
    model.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    model.register_forward_pre_hook(lambda module, _: gradients.append(torch.is_grad_enabled()))
    before = torch.cat([p.detach().flatten() for p in model.parameters()]).clone()
    report = learner(model, iter(_small_batches(seed, num_batches)))
    return {
        "report": _numbers(report),
        "eval_mode": not any(modes) and bool(modes),
        "gradients": any(gradients),
        "forwards": len(modes),
        "left_training": model.training,
        "weights_changed": not torch.equal(
            before, torch.cat([p.detach().flatten() for p in model.parameters()])
        ),
    }


def _numbers(report: Any) -> dict[str, float]:
    if not isinstance(report, dict):
        raise TypeError(f"a dict of numbers is needed, not a {type(report).__name__}")
    return {str(key): float(value) for key, value in report.items()}


# 1.5


class _SlowSamples(torch.utils.data.Dataset):
    """Samples in a file behind a latency. The sleep stands for a disk or a bucket; it makes the verdict stable.

    The file is read at each access, so what was fetched before the file changed is of no use after.
    """

    def __init__(self, size: int, latency_seconds: float) -> None:
        self.path, self.size, self.latency_seconds = f"samples-{size}", size, latency_seconds

    def write(self, seed: int) -> np.ndarray:
        """Put new samples into the file: int64 [size, 8]."""
        values = np.random.default_rng(seed).integers(3, 60, size=(self.size, 8))
        values.tofile(self.path)
        return values

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < self.size:
            raise IndexError(index)
        time.sleep(self.latency_seconds)
        row = np.fromfile(self.path, dtype=np.int64, count=8, offset=index * 64)
        return row, int(row.sum() % 5)


def load_all(seed: int, size: int, micro_batch_size: int, passes: int) -> dict[str, Any]:
    """Everything the learner's loader yields in each pass, and what it should have."""
    dataset = _SlowSamples(size, 0.0005)
    expected = dataset.write(seed)
    loader = learner(dataset, micro_batch_size, collate)
    seen = [[(b["input_ids"].clone(), b["labels"].clone()) for b in loader] for _ in range(passes)]
    return {
        "ids": [torch.cat([ids for ids, _ in one]) if one else torch.zeros(0, 8) for one in seen],
        "labels": [torch.cat([labels for _, labels in one]) if one else torch.zeros(0) for one in seen],
        "sizes": [[len(labels) for _, labels in one] for one in seen],
        "expected": expected,
    }


_loaders: dict[int, tuple[_SlowSamples, Any]] = {}


def loader_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One epoch over new samples behind the learner's loader, with a little work per batch of 16.

    A loader is made once per size and used again, as an epoch after the first is.
    """
    if num_steps not in _loaders:
        dataset = _SlowSamples(num_steps * 16, 0.004)
        _loaders[num_steps] = dataset, learner(dataset, 16, collate)
    dataset, loader = _loaders[num_steps]
    dataset.write(seed)
    weight = torch.ones(128, 128)
    sums = []
    for batch in loader:
        (weight @ weight).sum()
        sums.append(batch["input_ids"].sum() + batch["labels"].sum() * 7)
    return {"sums": torch.stack(sums)}


# 1.6


class _Forwards:
    """Rows and real tokens that went through the model, and the optimizer steps that followed."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.rows = self.steps = self.widest = self.slots = 0
        self.tokens = torch.zeros((), dtype=torch.int64)
        model.register_forward_pre_hook(self._before_forward)
        optimizer.register_step_post_hook(self._after_step)

    def _before_forward(self, _model: torch.nn.Module, arguments: Any) -> None:
        input_ids, attention_mask = arguments
        self.rows += len(input_ids)
        self.widest = max(self.widest, len(input_ids))
        self.slots += input_ids.numel()
        self.tokens += attention_mask.sum()

    def _after_step(self, *_: Any) -> None:
        self.steps += 1

    def counts(self) -> dict[str, int]:
        return {"rows": self.rows, "tokens": int(self.tokens), "steps": self.steps, "widest": self.widest}


def epoch_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One pass of the learner's loop over secret samples of the corpus."""
    store = _store()
    rng = np.random.default_rng(seed)
    model, optimizer = _new_model(seed)
    forwards = _Forwards(model, optimizer)
    samples = store.subset(_secret_samples(rng, num_steps * BATCHES_PER_STEP["1.6"] * MICRO_BATCH_SIZE))
    report = learner(model, samples, optimizer, MICRO_BATCH_SIZE, seed)
    return {"report": _numbers(report), "counts": forwards.counts(), "logits": _probe(model, store, rng)}


def epoch_once(seed: int, num_samples: int) -> dict[str, Any]:
    """One short pass over samples of uneven number, with all that can be counted."""
    store = _store()
    model, optimizer = _new_model(seed)
    forwards = _Forwards(model, optimizer)
    before = [p.detach().clone() for p in model.parameters()]
    short = np.flatnonzero(store.lengths <= 64)
    samples = store.subset(np.random.default_rng(seed).choice(short, size=num_samples, replace=False))
    saves: list[Any] = []
    torch_save = torch.save

    def counted_save(*arguments: Any, **options: Any) -> None:
        saves.append(arguments)
        torch_save(*arguments, **options)

    torch.save = counted_save
    with count_events(model) as events:
        report = learner(model, samples, optimizer, MICRO_BATCH_SIZE, seed)
    torch.save = torch_save
    changed = any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    expected = {"rows": num_samples, "tokens": int(np.asarray(samples.lengths).sum())}
    return {
        "report": _numbers(report),
        "counts": forwards.counts(),
        "expected": expected,
        "syncs": events.num_syncs,
        "saves": len(saves),
        "pad_fraction": 1 - forwards.counts()["tokens"] / forwards.slots if forwards.slots else 0.0,
        "changed": changed,
    }


def quality(seed: int, num_samples: int, num_epochs: int) -> float:
    """Validation accuracy, in points of 100, after training on short texts of the corpus."""
    train, validation = docstring_store(max_length=MAX_LENGTH, progress=False)
    rng = np.random.default_rng(seed)
    short = [np.flatnonzero(np.asarray(s.lengths) <= 48) for s in (train, validation)]
    samples = train.subset(rng.choice(short[0], size=num_samples, replace=False))
    held_out = validation.subset(rng.permutation(short[1])[:1500])
    torch.manual_seed(seed)
    model = TextClassifier(_sizes(num_classes=len(train.label_names), max_length=48))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(num_epochs):
        learner(model, samples, optimizer, 2 * MICRO_BATCH_SIZE, seed * 100 + epoch)
    model.eval()
    correct = 0
    with torch.no_grad():
        for start in range(0, len(held_out), 128):
            batch = collate([held_out[i] for i in range(start, min(start + 128, len(held_out)))])
            logits = model(batch["input_ids"], batch["attention_mask"])
            correct += int((logits.argmax(-1) == batch["labels"]).sum())
    return 100.0 * correct / len(held_out)
