"""Samples that worker processes import: a notebook's own classes cannot be.

Where processes are started afresh (macOS, Windows, Linux from Python 3.14), a `DataLoader` worker cannot load
a class that was defined in a notebook cell.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np


class SlowSamples:
    """Samples that come from slow storage: each waits `seconds` before it is there."""

    def __init__(self, samples: Sequence[Any], seconds: float) -> None:
        """
        Args:
            samples: anything with a length and an index; must be picklable for loader workers.
            seconds: the wait for each sample, at least 0.
        """
        if seconds < 0:
            raise ValueError(f"seconds must be at least 0, got {seconds}")
        self.samples = samples
        self.seconds = seconds

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return self.samples[index]


class OwnNoise:
    """Samples that are noise alone, drawn from a generator that the data set holds: loader workers get copies of it."""

    def __init__(self, size: int, *, seed: int) -> None:
        self.size, self.rng = size, np.random.default_rng(seed)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> float:
        return float(self.rng.random())


class Tokenised:
    """Texts that are tokenised each time they are read: a list of `(ids, label)` that works for each of its items."""

    def __init__(
        self, texts: Sequence[str], labels: Sequence[int], tokenizer: Any, *, max_length: int
    ) -> None:
        """
        Args:
            tokenizer: of the library `tokenizers`.
            max_length: longer texts are cut at this many ids.
        """
        self.texts, self.labels = list(texts), [int(label) for label in labels]
        self.tokenizer, self.max_length = tokenizer, max_length

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        ids = self.tokenizer.encode(self.texts[index]).ids[: self.max_length]
        return np.array(ids, dtype=np.int64), self.labels[index]
