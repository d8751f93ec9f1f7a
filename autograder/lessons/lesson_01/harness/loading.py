"""Harness of 1.5: the loader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_01.harness.loops import Unreadable, tells_of
from course_lib.data import collate


class _SlowSamples(torch.utils.data.Dataset):
    """Samples in a file behind a latency. The sleep stands for a disk or a bucket; it makes the verdict stable.

    The file is read at each access, so what was fetched before the file changed is of no use after. `num_quick`: so
    many samples come at once; and in whatever process they are read, `num_read` tells how many have been.
    """

    def __init__(self, size: int, latency_seconds: float, *, name: str = "", num_quick: int = 0) -> None:
        self.path, self.size, self.latency_seconds = f"samples-{name}{size}", size, latency_seconds
        self.num_quick, self.read = num_quick, Path(f"{self.path}-read")
        self.whole = Path(f"{self.path}-whole")

    def write(self, seed: int, lost: int | None = None) -> None:
        """Put new samples into the file: int64 [size, 8]. One of them is `lost`, until it was asked for once.

        The check makes the same ones.
        """
        samples = np.random.default_rng(seed).integers(3, 60, size=(self.size, 8))
        if lost is not None:
            self.whole.write_bytes(samples[lost].tobytes())
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
            # Once: who reads it again gets it, and hides the error.
            with Path(self.path).open("r+b", buffering=0) as file:
                file.seek(index * 64)
                file.write(self.whole.read_bytes())
            raise Unreadable(f"sample {index} cannot be read")
        return row, int(row.sum() % 5)


class _Marked:
    """A collate function that leaves its mark on the batch. Loader processes get it by its name in this module."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __call__(self, samples: Any) -> dict[str, Any]:
        return collate(samples) | {"mark": torch.tensor(self.mark)}


def load_all(
    cases: list[dict[str, int]], passes: list[list[int]], together: int, looked_at: int
) -> list[dict[str, Any]]:
    """Everything that the learner's loaders yield, pass after pass, each `[number of the case, seed of the samples]`.

    All loaders are there until their last pass, and the samples behind them change before each. The pass after that
    of number `together` runs within it, after its first batch. Before the last one of all somebody looks at some
    batches alone, made of the samples of the seed `looked_at`.
    """
    made = [_made(case, number) for number, case in enumerate(cases)]
    for number, seed in reversed(passes):
        made[number][0].write(seed)
    loaders = {number: make() for number, (_, make) in enumerate(made)}
    last = {number: place for place, (number, _) in enumerate(passes, start=1)}
    answers: list[dict[str, Any]] = []

    def whole(place: int) -> None:
        number, seed = passes[place]
        dataset = made[number][0]
        dataset.write(seed)
        before = dataset.num_read()
        answers.append({})
        answer = _one_pass_over(loaders[number], (lambda: whole(place + 1)) if place == together else None)
        answers[place] = answer | {"num_read": dataset.num_read() - before}

    for place, (number, _) in enumerate(passes, start=1):
        look = {}
        if place == len(passes):
            made[number][0].write(looked_at)
            look = _look_at(loaders[number], made[number][0])
        if len(answers) < place:  # else it ran within the one before
            whole(place - 1)
        answers[-1] |= look
        if place == last[number]:
            del loaders[number]  # and the processes that it may have
    return answers


def _made(case: dict[str, int], number: int) -> tuple[_SlowSamples, Callable[[], Any]]:
    """The samples of a case, and what makes the learner's loader of them."""
    quick = case["num_quick"]
    dataset = _SlowSamples(case["size"], 0.015 if quick else 0.0005, name=f"case-{number}-", num_quick=quick)
    return dataset, lambda: learner(dataset, case["micro_batch_size"], _Marked(case["mark"]))


def _look_at(loader: Any, dataset: _SlowSamples) -> dict[str, Any]:
    """Take a batch or some, and wait after each as a training step does; the rest of the pass is never asked for.

    "is_ahead": whether anything was fetched meanwhile. The samples of the first batch come quickly, so that others
    are on their way when it is there. "is_all": whether all of them came with it; on a busy machine that may happen
    once.
    """
    look: dict[str, Any] = {}
    for _ in range(3):
        look = _look_once(loader, dataset)
        if not look["is_all"]:
            break
    return look


def _look_once(loader: Any, dataset: _SlowSamples) -> dict[str, Any]:
    is_ahead, is_all, num_looked, start = False, False, 0, dataset.num_read()
    for _ in islice(loader if _can_be_iterated(loader) else (), 5):
        num_looked += 1
        before, until = dataset.num_read(), time.monotonic() + 0.5
        is_all = num_looked == 1 and before - start >= len(dataset)
        while not is_ahead and not is_all and time.monotonic() < until:
            time.sleep(0.002)
            is_ahead = dataset.num_read() > before
        if is_ahead or is_all:
            break
    return {"is_ahead": is_ahead, "is_all": is_all, "num_looked": num_looked}


def load_lost(case: dict[str, int], seed: int, lost: list[int]) -> list[dict[str, Any]]:
    """After a whole pass, for each sample that is lost, a pass in which it cannot be read, and one more.

    "told": whether its error came out. "trouble": what the pass after it ended with. Ends with the first of them.
    """
    dataset, make = _made(case, 0)
    dataset.write(seed)
    loader = make()
    _one_pass_over(loader)
    answers: list[dict[str, Any]] = []
    for index in lost:
        dataset.write(seed, index)
        answers.append(_one_lost(loader, lambda: dataset.write(seed)))
        if answers[-1]["told"] != "told" or answers[-1]["trouble"]:
            break
    return answers


def _one_lost(loader: Any, mend: Callable[[], None]) -> dict[str, Any]:
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
    mend()
    try:
        return {"told": told[0], "after": _one_pass_over(loader), "trouble": ""}
    except Exception as error:
        return {"told": told[0], "trouble": f"{type(error).__name__}: {error}"[:200]}


def _can_be_iterated(loader: Any) -> bool:
    return isinstance(loader, Iterable) or hasattr(type(loader), "__getitem__")


def _one_pass_over(loader: Any, between: Callable[[], None] | None = None) -> dict[str, Any]:
    """What one pass yields; `between` runs after its first batch."""
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
        if between is not None and len(answer["ids"]) == 1:
            between()
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
