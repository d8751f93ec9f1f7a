"""What a model says of one text: scores of all labels, read as a label and its probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Prediction = tuple[Any, float]
"""A label and its probability; for regression a number and NaN."""

THRESHOLD = 0.5
"""From this probability on, a label is given where a text may have several."""


def words_of(text: str | list[str]) -> list[str]:
    """The words of a text for token classification: those between spaces, or the list that it is."""
    return text.split() if isinstance(text, str) else text


@dataclass(frozen=True)
class Answer:
    """The answer to one text.

    Attributes:
        task, label_names: those of the run.
        text: as it went in; for token classification it may be a list of words.
        num_tokens: of the text, special ones and those alone that were read counted.
        scores: float32. Probabilities: [C] of the classes or labels, [W, C] for the W words that were read, [V]
            of the next token. For regression the number, [1].
    """

    task: str
    label_names: tuple[str, ...]
    text: Any
    num_tokens: int
    scores: np.ndarray
    name_of: Callable[[int], str]
    """The name of a class, or a token as text."""

    @property
    def label(self) -> Any:
        """A class; several labels with a comma between; a number; the next token. For each word of a list its label,
        None beyond `max_length`; in a text `word/label`, with spaces between."""
        if self.task == "regression":
            return float(self.scores.reshape(-1)[0])
        if self.task == "multi-label":
            return ",".join(self.labels)
        if self.task != "token-classification":
            return self.name_of(int(self.scores.argmax()))
        labels = [self.label_names[i] for i in self.scores.argmax(axis=-1)]
        words = words_of(self.text)
        if isinstance(self.text, str):
            return " ".join(f"{word}/{label}" for word, label in zip(words, labels, strict=False))
        return labels + [None] * (len(words) - len(labels))

    @property
    def labels(self) -> list[str]:
        """The labels that a text has, where it may have several."""
        return [self.label_names[i] for i in np.flatnonzero(self.scores >= THRESHOLD)]

    @property
    def probability(self) -> float:
        """Of the label. Of several labels that of the least sure decision; of words the mean. NaN for a number."""
        if self.task == "regression":
            return math.nan
        if self.task == "multi-label":
            return float(np.maximum(self.scores, 1 - self.scores).min())
        if self.task == "token-classification":
            return float(self.scores.max(axis=-1).mean()) if len(self.scores) else 0.0
        return float(self.scores.max())

    def top(self, k: int | None = None) -> list[tuple[str, float]]:
        """The `k` most probable labels, or all, each with its probability, the most probable first.

        Of one text: words and numbers have none.
        """
        order = np.argsort(-self.scores, kind="stable")[:k]
        return [(self.name_of(int(i)), float(self.scores[i])) for i in order]
