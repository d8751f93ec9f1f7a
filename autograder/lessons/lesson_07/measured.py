"""What the measured quiz questions of lesson 07 ask for: counts on this machine's own data, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def lora_trainable_share() -> float:
    """Trainable share of the parameters with adapters of rank 4 and a head of 16 classes. 0 … 1."""
    import torch

    from course_lib.lora import add_lora
    from course_lib.models import ModelConfig, TextClassifier

    with torch.random.fork_rng(devices=[]):
        sizes: dict[str, Any] = {"vocab_size": 8192, "num_classes": 16, "max_length": 256}
        model = TextClassifier(ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.0, **sizes))
        total = sum(p.numel() for p in model.parameters())
        add_lora(model, rank=4)
    return sum(p.numel() for p in model.parameters() if p.requires_grad) / total


@functools.cache
def useful_share_of_padded_epoch() -> float:
    """Real tokens as a share of the positions of an epoch of the training docstrings padded to 1,024. 0 … 1."""
    from course_lib.data import docstring_store

    lengths = docstring_store(progress=False)[0].lengths
    return float(lengths.clip(max=1024).sum() / (1024 * len(lengths)))


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "lora_trainable_share": lora_trainable_share,
    "useful_share_of_padded_epoch": useful_share_of_padded_epoch,
}
