"""What the four runs of 7.4 are called with: a model, its samples or batches, and an optimizer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import (
    in_groups,
)
from autograder.lessons.checking.harness_storage import Served
from course_lib.data import collate
from course_lib.models import ModelConfig, TextClassifier

VOCABULARY = 2000
ROWS = 8
BATCHES_PER_STEP = 4  # of a segment of run A
LOG_EVERY_STEPS = 6  # as many batches has a step of a segment of run B: each has its entry
ROWS_PER_UPDATE = 8
NUM_EPOCHS = 5


class StoredSamples:
    """Samples that take a while to arrive: another process keeps them, each as its label and its ids, and waits."""

    def __init__(self, number: int, size: int) -> None:
        self.served, self.size = Served(number), size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < self.size:
            raise IndexError(index)
        label, *ids = np.frombuffer(self.served.fetch(index), dtype=np.int64)
        return np.array(ids), int(label)


#: By the list, the loop and the call that counts.
HELD_BY_US = next(sys.getrefcount(batch) for batch in [dict[str, Any]()])


class Anew(Sequence[Any]):
    """Batches that are made when they are asked for, each time as other objects of the same values.

    One that nobody holds any more becomes the next: it has the same `id`, as happens by itself now and then.
    """

    def __init__(self, batches: list[dict[str, torch.Tensor]]) -> None:
        self.batches = batches
        self.made: list[dict[str, torch.Tensor]] = []

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        values = {name: value.clone() for name, value in self.batches[index].items()}
        for batch in self.made:
            if sys.getrefcount(batch) == HELD_BY_US:
                batch.update(values)
                return batch
        self.made.append(values)
        return values


def _model(
    seed: int, width: int = 32, words: int = VOCABULARY
) -> tuple[TextClassifier, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"d_model": width, "num_layers": 1, "num_heads": 2, "max_length": 32}
    model = TextClassifier(ModelConfig(vocab_size=words, num_classes=5, dropout=0.0, **sizes))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def _samples(rng: np.random.Generator, number: int, longest: int = 32) -> list[tuple[np.ndarray, int]]:
    return [
        (rng.integers(3, VOCABULARY, size=rng.integers(longest // 2, longest + 1)), int(rng.integers(5)))
        for _ in range(number)
    ]


def drawn_batches(
    rng: np.random.Generator, number: int, rows: int = ROWS, longest: int = 32
) -> list[dict[str, torch.Tensor]]:
    return [collate(_samples(rng, rows, longest)) for _ in range(number)]


def prepared(
    run: str,
    seed: int,
    num_steps: int,
    argument: int,
    *,
    tail: int = 0,
    number: int = 0,
    words: int = VOCABULARY,
    is_grouped: bool = False,
) -> tuple[Any, tuple[Any, ...]]:
    """A model, and what the run is called with besides: for so many steps, and a last one of `tail` samples.

    `number`: under which the samples of run A are stored.
    `is_grouped`: the optimizer has a momentum, and holds what learns in two groups of other rates; the weight of a
    norm, ones, is frozen where the model learns, and batches have other numbers of rows.
    """
    rng = np.random.default_rng(seed)
    model, optimizer = _model(seed, 64 if run in "AD" else 32, words)
    if is_grouped:
        model.get_parameter("blocks.0.feed_forward_norm.weight").requires_grad_(run == "D")
        optimizer = two_rates(model)
    if run == "A":
        return model, (StoredSamples(number, num_steps * argument + tail), optimizer, argument)
    if run == "B":
        sizes = [4 + number % 2 * is_grouped for number in range(num_steps)]
        return model, ([drawn_batches(rng, 1, rows, 16)[0] for rows in sizes], optimizer, argument)
    if run == "C":
        return model, (_samples(rng, num_steps * argument + tail, longest=16), optimizer, argument)
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    optimizer = two_rates(model.head) if is_grouped else torch.optim.SGD(model.head.parameters(), lr=0.05)
    sizes = [2 * ROWS - 3 * number * is_grouped for number in range(num_steps)]
    return model, ([drawn_batches(rng, 1, rows)[0] for rows in sizes], optimizer, argument)


def two_rates(model: Any) -> torch.optim.Optimizer:
    groups = [group | {"lr": rate} for group, rate in zip(in_groups(model), (0.05, 0.02), strict=True)]
    return torch.optim.SGD(groups, momentum=0.9)
