"""Harness of 1.5: the loader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.checking.harness_storage import Lost, Served
from autograder.lessons.lesson_01.harness.loops import Unreadable, tells_of
from course_lib.data import collate


class _SlowSamples(torch.utils.data.Dataset):
    """Samples of 8 ids behind a latency, which stands for a disk or a bucket: another process keeps them and waits.

    What was asked for before other samples were stored is one of the old ones.
    """

    def __init__(self, number: int, size: int) -> None:
        self.served, self.size = Served(number), size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < self.size:
            raise IndexError(index)
        try:
            sample = self.served.fetch(index)
        except Lost as error:
            raise Unreadable(str(error)) from None
        row = np.frombuffer(sample, dtype=np.int64).copy()
        return row, int(row.sum() % 5)


class _Marked:
    """A collate function that leaves its mark on the batch. Loader processes get it by its name in this module."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __call__(self, samples: Any) -> dict[str, Any]:
        return collate(samples) | {"mark": torch.tensor(self.mark)}


_loaders: dict[int, Any] = {}  # by the number of their samples
_passes: dict[int, Iterator[Any]] = {}  # those that have begun


def make_loaders(cases: list[dict[str, int]]) -> None:
    """The learner's loader of each case, over the samples that are stored under the number of the case."""
    for number, case in enumerate(cases):
        dataset = _SlowSamples(number, case["size"])
        _loaders[number] = learner(dataset, case["micro_batch_size"], _Marked(case["mark"]))


def pass_over(numbers: list[int], last: list[int]) -> list[dict[str, Any]]:
    """Everything that loaders yield in one pass each; the pass of the second begins after the first batch of the first.

    `last`: the loaders that go afterwards, and the processes that they may have.
    """
    first, *others = numbers
    answers: list[dict[str, Any]] = []
    answer = _one_pass_over(
        _loaders[first], lambda: answers.extend(_one_pass_over(_loaders[number]) for number in others)
    )
    for number in last:
        del _loaders[number]
    return [answer, *(answers or [{"type": "none"} for _ in others])]


def begin_pass(number: int) -> None:
    """A pass that is looked at from outside, batch by batch, as a training step does that takes its time."""
    _passes[number] = iter(_loaders[number] if _can_be_iterated(_loaders[number]) else ())


def next_batch(number: int) -> bool:
    """Whether there was one more in the pass that has begun."""
    return next(_passes[number], None) is not None


def break_off(number: int) -> None:
    """The rest of the pass that has begun is never asked for."""
    del _passes[number]


def pass_to_error(number: int) -> str:
    """How a pass ends in which a sample cannot be read: "told" where its error came out."""
    told: list[str] = []

    def go_through() -> None:
        try:
            for _ in _loaders[number]:
                pass
        except Exception as error:
            told.append("told" if tells_of(error) else f"another error: {error!r}"[:200])
        else:
            told.append("nothing")

    thread = threading.Thread(target=go_through, daemon=True)
    thread.start()
    thread.join(20.0)
    return told[0] if told else "never ends"


def pass_after_error(number: int) -> dict[str, Any]:
    """The pass after that one. "trouble": the error that it ended with, if it did."""
    try:
        return _one_pass_over(_loaders[number]) | {"trouble": ""}
    except Exception as error:
        return {"trouble": f"{type(error).__name__}: {error}"[:200]}


def _can_be_iterated(loader: Any) -> bool:
    return isinstance(loader, Iterable) or hasattr(type(loader), "__getitem__")


def _one_pass_over(loader: Any, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
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
        if len(answer["ids"]) == 1:
            between()
    return answer


def loader_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One epoch over new samples behind the learner's loader, with a little work per batch.

    A loader is made once per size and used again, as an epoch after the first is. A step has several batches: a
    loader that overlaps whole batches, not samples, has as much to overlap. The samples are stored under their
    number, of which no case has so many; nothing is drawn from the seed here.
    """
    size = num_steps * 32
    if size not in _loaders:
        _loaders[size] = learner(_SlowSamples(size, size), 8, collate)
    weight = torch.ones(128, 128)
    sums = []
    for batch in _loaders[size]:
        (weight @ weight).sum()
        sums.append(batch["input_ids"].sum() + batch["labels"].sum() * 7)
    return {"sums": torch.stack(sums)}
