"""Harness of 1.5 and 1.6: the loader, and the whole epoch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, numbers, small, weights_of
from autograder.lessons.lesson_01.harness.loops import Unreadable, tells_of
from autograder.lessons.lesson_01.harness.shared import (
    BATCHES_PER_STEP,
    MAX_LENGTH,
    MICRO_BATCH_SIZE,
    corpus,
    new_model,
    secret_samples,
    sizes,
)
from course_lib.data import TokenStore, collate, docstring_store
from course_lib.measuring import Counts, count_events
from course_lib.models import TextClassifier


class _SlowSamples(torch.utils.data.Dataset):
    """Samples in a file behind a latency. The sleep stands for a disk or a bucket; it makes the verdict stable.

    The file is read at each access, so what was fetched before the file changed is of no use after. `num_quick`: so
    many samples come at once; and in whatever process they are read, `num_read` tells how many have been.
    """

    def __init__(self, size: int, latency_seconds: float, *, name: str = "", num_quick: int = 0) -> None:
        self.path, self.size, self.latency_seconds = f"samples-{name}{size}", size, latency_seconds
        self.num_quick, self.read = num_quick, Path(f"{self.path}-read")

    def write(self, seed: int, lost: int | None = None) -> None:
        """Put new samples into the file: int64 [size, 8], one of them lost. The check makes the same ones."""
        samples = np.random.default_rng(seed).integers(3, 60, size=(self.size, 8))
        if lost is not None:
            samples[lost] = -1
        # In place: who still fetches for a pass that was broken off finds a file that is whole.
        path = Path(self.path)
        with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
            file.write(samples.tobytes())

    def num_read(self) -> int:
        return self.read.stat().st_size if self.read.exists() else 0

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < self.size:
            raise IndexError(index)
        time.sleep(self.latency_seconds if index >= self.num_quick else 0.0005)
        row = np.fromfile(self.path, dtype=np.int64, count=8, offset=index * 64)
        if self.num_quick:
            with self.read.open("ab", buffering=0) as file:
                file.write(b".")
        if row[0] < 0:
            raise Unreadable(f"sample {index} cannot be read")
        return row, int(row.sum() % 5)


class _Marked:
    """A collate function that leaves its mark on the batch. Loader processes get it by its name in this module."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __call__(self, samples: Any) -> dict[str, Any]:
        return collate(samples) | {"mark": torch.tensor(self.mark)}


def load_all(cases: list[dict[str, int]], passes: list[list[int]], looked_at: int) -> list[dict[str, Any]]:
    """Everything that the learner's loaders yield, pass after pass, each `[number of the case, seed of the samples]`.

    All loaders are there until their last pass, and the samples behind them change before each. Before the last one
    of all somebody looks at some batches alone, made of the samples of the seed `looked_at`.
    """
    made = [_made(case, number) for number, case in enumerate(cases)]
    for number, seed in reversed(passes):
        made[number][0].write(seed)
    loaders = {number: make() for number, (_, make) in enumerate(made)}
    last = {number: place for place, (number, _) in enumerate(passes, start=1)}
    answers = []
    for place, (number, seed) in enumerate(passes, start=1):
        dataset, loader = made[number][0], loaders[number]
        look = {}
        if place == len(passes):
            dataset.write(looked_at)
            look = _look_at(loader, dataset)
        dataset.write(seed)
        answers.append(_one_pass_over(loader) | look)
        if place == last[number]:
            del loaders[number], loader  # and the processes that it may have
    return answers


def _made(case: dict[str, int], number: int) -> tuple[_SlowSamples, Callable[[], Any]]:
    """The samples of a case, and what makes the learner's loader of them."""
    quick = case["num_quick"]
    dataset = _SlowSamples(case["size"], 0.015 if quick else 0.0005, name=f"case-{number}-", num_quick=quick)
    return dataset, lambda: learner(dataset, case["micro_batch_size"], _Marked(case["mark"]))


def _look_at(loader: Any, dataset: _SlowSamples) -> dict[str, Any]:
    """Take a batch or some, and wait after each as a training step does; the rest of the pass is never asked for.

    "is_ahead": whether anything was fetched meanwhile. The samples of the first batch come quickly, so that others
    are on their way when it is there; on a busy machine all of them may have come with it.
    """
    is_ahead, num_looked, start = False, 0, dataset.num_read()
    for _ in islice(loader if _can_be_iterated(loader) else (), 5):
        num_looked += 1
        before, until = dataset.num_read(), time.monotonic() + 0.5
        is_ahead = num_looked == 1 and before - start >= len(dataset)
        while not is_ahead and time.monotonic() < until:
            time.sleep(0.002)
            is_ahead = dataset.num_read() > before
        if is_ahead:
            break
    return {"is_ahead": is_ahead, "num_looked": num_looked}


def load_lost(case: dict[str, int], seed: int, lost: int) -> dict[str, Any]:
    """After a whole pass one in which a sample cannot be read, and one more. "told": whether its error came out.

    "trouble": what the pass after it ended with.
    """
    dataset, make = _made(case, 0)
    dataset.write(seed)
    loader = make()
    _one_pass_over(loader)
    dataset.write(seed, lost)
    told: list[str] = []

    def go_through() -> None:
        try:
            for _ in loader:
                pass
        except Exception as error:
            told.append("told" if tells_of(error) else f"another error: {error!r}"[:200])
        else:
            told.append("nothing")

    thread = threading.Thread(target=go_through, daemon=True)
    thread.start()
    thread.join(20.0)
    if not told:
        return {"told": "never ends"}
    dataset.write(seed)
    try:
        return {"told": told[0], "after": _one_pass_over(loader), "trouble": ""}
    except Exception as error:
        return {"told": told[0], "trouble": f"{type(error).__name__}: {error}"[:200]}


def _can_be_iterated(loader: Any) -> bool:
    return isinstance(loader, Iterable) or hasattr(type(loader), "__getitem__")


def _one_pass_over(loader: Any) -> dict[str, Any]:
    if not _can_be_iterated(loader):
        return {"type": type(loader).__name__}
    answer: dict[str, Any] = {"type": "dict", "ids": [], "labels": [], "marks": []}
    for batch in loader:
        ids, labels = (
            (batch.get("input_ids"), batch.get("labels")) if isinstance(batch, dict) else (None, None)
        )
        if not isinstance(ids, torch.Tensor) or not isinstance(labels, torch.Tensor):
            return {"type": type(batch).__name__}
        answer["ids"].append(ids.clone())
        answer["labels"].append(labels.clone())
        answer["marks"].append(int(batch.get("mark", -1)))
    return answer


_loaders: dict[int, tuple[_SlowSamples, Any]] = {}


def loader_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One epoch over new samples behind the learner's loader, with a little work per batch.

    A loader is made once per size and used again, as an epoch after the first is. A step has several batches: a
    loader that overlaps whole batches, not samples, has as much to overlap.
    """
    if num_steps not in _loaders:
        dataset = _SlowSamples(num_steps * 32, 0.004)
        _loaders[num_steps] = dataset, learner(dataset, 8, collate)
    dataset, loader = _loaders[num_steps]
    dataset.write(seed)
    weight = torch.ones(128, 128)
    sums = []
    for batch in loader:
        (weight @ weight).sum()
        sums.append(batch["input_ids"].sum() + batch["labels"].sum() * 7)
    return {"sums": torch.stack(sums)}


def _work(counts: Counts) -> dict[str, int]:
    """Rows and real tokens that went through the model, and the steps of its optimizers that followed."""
    return {
        "rows": counts.num_rows,
        "tokens": counts.num_tokens,
        "steps": counts.num_optimizer_steps,
        "widest": counts.max_rows,
    }


def epoch_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One pass of the learner's loop over secret samples of the corpus."""
    model, optimizer = new_model(seed)
    samples = _secret_epoch(seed, num_steps)
    forwards: list[tuple[torch.Tensor, ...]] = []
    steps: list[int] = []  # number of forwards before each
    model.register_forward_pre_hook(
        lambda _, args, kwargs: forwards.append((*args, *kwargs.values())[:2]), with_kwargs=True
    )
    optimizer.register_step_post_hook(lambda *_: steps.append(len(forwards)))
    with count_events(model, operators=False) as counts:
        report = learner(model, samples, optimizer, MICRO_BATCH_SIZE, small(seed))
    return {
        "seed": seed,
        "num_steps": num_steps,
        "report": numbers(report),
        "counts": _work(counts),
        "batches": _batches_of(samples, forwards, steps),
        "weights": weights_of(model),
    }


def _batches_of(
    samples: TokenStore, forwards: list[tuple[torch.Tensor, ...]], steps: list[int]
) -> list[list[int]]:
    """Indices of the samples that went through the model before each step; -1 for a row that is none of them."""
    place = {np.asarray(samples[i][0], dtype=np.int64).tobytes(): i for i in range(len(samples))}
    batches = []
    for first, last in zip([0, *steps], steps, strict=False):
        rows = [
            row[:length].tobytes()
            for ids, mask in forwards[first:last]
            for row, length in zip(ids.long().numpy(), mask.sum(dim=1).tolist(), strict=True)
        ]
        batches.append([place.get(row, -1) for row in rows])
    return batches


def segment_replay(seed: int, num_steps: int, batches: list[list[int]]) -> dict[str, Any]:
    """The weights that the steps of the naive loop reach with these batches, and those before them."""
    model, optimizer = new_model(seed)
    samples, before = _secret_epoch(seed, num_steps), weights_of(model).clone()
    model.train()
    for indices in batches:
        batch = collate([samples[index] for index in indices])
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {"before": before, "after": weights_of(model)}


def _secret_epoch(seed: int, num_steps: int) -> TokenStore:
    number = num_steps * BATCHES_PER_STEP["1.6"] * MICRO_BATCH_SIZE
    return corpus().subset(secret_samples(np.random.default_rng(seed), number))


def quality(seed: int, num_samples: int, num_epochs: int) -> float:
    """Validation accuracy, in points of 100, after training on short texts of the corpus."""
    train, validation = docstring_store(max_length=MAX_LENGTH, progress=False)
    rng = np.random.default_rng(seed)
    short = [np.flatnonzero(np.asarray(s.lengths) <= 48) for s in (train, validation)]
    samples = train.subset(rng.choice(short[0], size=num_samples, replace=False))
    held_out = validation.subset(rng.permutation(short[1])[:1500])
    torch.manual_seed(seed)
    model = TextClassifier(sizes(num_classes=len(train.label_names), max_length=48))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(num_epochs):
        learner(model, samples, optimizer, 2 * MICRO_BATCH_SIZE, small(seed) * 100 + epoch)
    model.eval()
    correct = 0
    with torch.no_grad():
        for start in range(0, len(held_out), 128):
            batch = collate([held_out[i] for i in range(start, min(start + 128, len(held_out)))])
            logits = model(batch["input_ids"], batch["attention_mask"])
            correct += int((logits.argmax(-1) == batch["labels"]).sum())
    return 100.0 * correct / len(held_out)
