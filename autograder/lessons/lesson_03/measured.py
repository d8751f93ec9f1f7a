"""What the measured quiz questions of lesson 03 ask for: counts, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def _peak(rows: int, words: int = 8192) -> int:
    import torch

    from course_lib.measuring import peak_bytes
    from course_lib.models import ModelConfig, TextClassifier
    from course_lib.training import make_optimizer, train_step

    width = 64
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes: Any = {"d_model": 32, "num_layers": 2}
        model = TextClassifier(
            ModelConfig(vocab_size=words, num_classes=16, max_length=width, dropout=0.0, **sizes)
        )
        batch = {
            "input_ids": torch.randint(3, words, (rows, width)),
            "attention_mask": torch.ones(rows, width, dtype=torch.bool),
            "labels": torch.randint(16, (rows,)),
        }
        optimizer = make_optimizer(model)
        # The activations of the second step meet the state that the first one made.
        return peak_bytes(
            lambda: [train_step(model, batch, optimizer) for _ in range(2)], torch.device("cpu")
        )


def peak_ratio_32_over_16() -> float:
    """Peak live bytes of a training step with 32 rows, over those with 16."""
    return _peak(32) / _peak(16)


def peak_ratio_of_twice_the_words() -> float:
    """The same for twice the vocabulary: 16 rows with 16,384 words, over 16 rows with 8,192."""
    return _peak(16, words=16384) / _peak(16)


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "peak_ratio_32_over_16": peak_ratio_32_over_16,
    "peak_ratio_of_twice_the_words": peak_ratio_of_twice_the_words,
}
