"""What the measured quiz questions of lesson 07 ask for: counts on this machine's own data, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def _flops_of_a_step(prepare: Callable[[Any], object]) -> float:
    """FLOPs of forward and backward of a small classifier, after `prepare` was given the model."""
    import torch

    from course_lib.measuring import count_events
    from course_lib.models import ModelConfig, TextClassifier

    sizes: dict[str, Any] = {"vocab_size": 8192, "num_classes": 16, "max_length": 256}
    ids, mask = torch.ones(8, 64, dtype=torch.long), torch.ones(8, 64, dtype=torch.bool)
    with torch.random.fork_rng(devices=[]):
        model = TextClassifier(ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.0, **sizes))
        prepare(model)
    with count_events() as counts:
        torch.nn.functional.cross_entropy(model(ids, mask), ids[:, 0]).backward()
    return counts.total_flops


@functools.cache
def lora_flops_share() -> float:
    """FLOPs of a training step with adapters of rank 4 over those of one in which all parameters learn. 0 … 1."""
    from course_lib.models import add_lora

    return _flops_of_a_step(lambda model: add_lora(model, rank=4)) / _flops_of_a_step(lambda _model: None)


@functools.cache
def head_only_flops_share() -> float:
    """The same when the head alone learns, and there are no adapters. 0 … 1."""

    def only_the_head(model: Any) -> None:
        model.requires_grad_(False)
        model.head.requires_grad_(True)

    return _flops_of_a_step(only_the_head) / _flops_of_a_step(lambda _model: None)


def _useful_share(width: int) -> float:
    from course_lib.data import docstring_store

    lengths = docstring_store(progress=False)[0].lengths
    return float(lengths.clip(max=width).sum() / (width * len(lengths)))


@functools.cache
def useful_share_of_padded_epoch() -> float:
    """Real tokens as a share of the positions of an epoch of the training docstrings padded to 1,024. 0 … 1."""
    return _useful_share(1024)


@functools.cache
def useful_share_cut_at_64() -> float:
    """The same when they are cut at 64 tokens and padded to 64. 0 … 1."""
    return _useful_share(64)


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "lora_flops_share": lora_flops_share,
    "head_only_flops_share": head_only_flops_share,
    "useful_share_of_padded_epoch": useful_share_of_padded_epoch,
    "useful_share_cut_at_64": useful_share_cut_at_64,
}
