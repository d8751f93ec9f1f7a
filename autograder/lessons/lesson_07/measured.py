"""What the measured quiz questions of lesson 07 ask for: counts on this machine's own data, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def lora_flops_share() -> float:
    """FLOPs of a training step with adapters of rank 4 over those of one in which all parameters learn. 0 … 1."""
    import torch

    from course_lib.counters import count_events
    from course_lib.lora import add_lora
    from course_lib.models import ModelConfig, TextClassifier

    sizes: dict[str, Any] = {"vocab_size": 8192, "num_classes": 16, "max_length": 256}
    ids, mask = torch.ones(8, 64, dtype=torch.long), torch.ones(8, 64, dtype=torch.bool)
    flops = []
    for with_adapters in (False, True):
        with torch.random.fork_rng(devices=[]):
            model = TextClassifier(ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.0, **sizes))
            if with_adapters:
                add_lora(model, rank=4)
        with count_events() as counts:
            torch.nn.functional.cross_entropy(model(ids, mask), ids[:, 0]).backward()
        flops.append(counts.total_flops)
    return flops[1] / flops[0]


@functools.cache
def useful_share_of_padded_epoch() -> float:
    """Real tokens as a share of the positions of an epoch of the training docstrings padded to 1,024. 0 … 1."""
    from course_lib.data import docstring_store

    lengths = docstring_store(progress=False)[0].lengths
    return float(lengths.clip(max=1024).sum() / (1024 * len(lengths)))


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "lora_flops_share": lora_flops_share,
    "useful_share_of_padded_epoch": useful_share_of_padded_epoch,
}
