"""What the measured quiz questions of lesson 02 ask for: counts on this machine, no clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

FP16_SMALLEST_NORMAL = 2.0**-14  # below it fp16 loses digits


def _model_and_batch(num_texts: int = 32, num_tokens: int = 64) -> tuple[Any, dict[str, Any]]:
    import numpy as np
    import torch

    from course_lib.data import collate
    from course_lib.models import ModelConfig, TextClassifier

    rng = np.random.default_rng(0)
    config = ModelConfig(
        vocab_size=1000, num_classes=16, max_length=64, d_model=64, num_layers=4, num_heads=4, dropout=0.0
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = TextClassifier(config)
    texts = [(rng.integers(3, 1000, size=num_tokens), int(rng.integers(16))) for _ in range(num_texts)]
    return model, collate(texts)


@functools.cache
def _gradients() -> Any:
    """The gradients between the layers that are not zero, fp32 [N]."""
    import torch
    import torch.nn.functional as F

    model, batch = _model_and_batch()
    found: list[torch.Tensor] = []

    def watch(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
        output.register_hook(lambda gradient: found.append(gradient.detach().flatten()))

    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(watch)
    F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
    gradients = torch.cat(found)
    return gradients[gradients != 0]


def underflow_share() -> float:
    """Share of the gradients between the layers, of those that are not zero, that are zero as fp16. 0 … 1."""
    return float((_gradients().half() == 0).double().mean())


def share_below_full_digits() -> float:
    """Share of them that are too small for all of fp16's digits. 0 … 1."""
    return float((_gradients().abs() < FP16_SMALLEST_NORMAL).double().mean())


def _saved_bytes_ratio(num_texts: int, num_tokens: int) -> float:
    import torch
    import torch.nn.functional as F

    from course_lib.measuring import count_events

    saved = []
    for is_mixed in (False, True):
        model, batch = _model_and_batch(num_texts, num_tokens)
        with count_events(model) as counts:
            with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"])
            loss.backward()
        saved.append(counts.peak_saved_bytes)
    return saved[1] / saved[0]


@functools.cache
def saved_bytes_ratio() -> float:
    """Bytes that autograd keeps for backward under bf16 autocast, as a share of those in fp32."""
    return _saved_bytes_ratio(num_texts=32, num_tokens=64)


@functools.cache
def saved_bytes_ratio_of_one_text() -> float:
    """The same for a single short text."""
    return _saved_bytes_ratio(num_texts=1, num_tokens=16)


MEASUREMENTS: dict[str, Callable[[], float]] = {
    "underflow_share": underflow_share,
    "share_below_full_digits": share_below_full_digits,
    "saved_bytes_ratio": saved_bytes_ratio,
    "saved_bytes_ratio_of_one_text": saved_bytes_ratio_of_one_text,
}
