"""Harness of 3.1 and 3.3: several micro-batches, one update."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, numbers, small_model, weights_of
from course_lib.data import collate
from course_lib.measuring import count_events
from course_lib.models import ModelConfig, TokenClassifier


def token_model(seed: int) -> TokenClassifier:
    """A tagger of 5 tags and 60 words, without dropout, so that equal inputs give equal gradients."""
    torch.manual_seed(seed)
    sizes: Any = {"d_model": 16, "num_layers": 1, "num_heads": 2, "max_length": 32}
    return TokenClassifier(ModelConfig(vocab_size=60, num_classes=5, dropout=0.0, **sizes))


def token_batches(seed: int, num_micro_batches: int, empty: int) -> list[dict[str, torch.Tensor]]:
    """Micro-batches whose numbers of labels differ widely; the one at `empty` has none (-1: each has some)."""
    rng = np.random.default_rng(seed)
    batches = []
    for index in range(num_micro_batches):
        share = (1.0, 0.15, 0.5)[index % 3]  # of the real tokens that have a label
        samples = []
        for length in rng.integers(4, 24, size=rng.integers(2, 6)):
            tags = rng.integers(5, size=length)
            tags[rng.random(length) >= share] = -100
            tags[0] = rng.integers(5)
            if index == empty:
                tags[:] = -100
            samples.append((rng.integers(3, 60, size=length), tags))
        batches.append(collate(samples))
    return batches


def accumulated_once(seed: int, num_micro_batches: int, grad_accum_steps: int, empty: int) -> dict[str, Any]:
    """One pass of the learner's loop on a small tagger: final weights, report, and what was counted."""
    model = token_model(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    for parameter in model.parameters():  # gradients are left over: a loop that never clears them shows
        parameter.grad = torch.full_like(parameter, 0.1)
    batches = token_batches(seed, num_micro_batches, empty)
    with count_events(model) as counts:
        report = learner(model, iter(batches), optimizer, grad_accum_steps)
    return {
        "weights": weights_of(model),
        "report": numbers(report),
        "optimizer_steps": counts.num_optimizer_steps,
        "forwards": counts.num_forwards,
        "rows": counts.num_rows,
        "expected_rows": sum(len(batch["labels"]) for batch in batches),
        "saved_bytes": counts.peak_saved_bytes,
    }


def text_batches(seed: int, num_micro_batches: int) -> list[dict[str, torch.Tensor]]:
    """Micro-batches of 2 to 9 texts, so that a mean of their means is no mean over texts."""
    rng = np.random.default_rng(seed)
    batches = []
    for _ in range(num_micro_batches):
        lengths = rng.integers(3, 20, size=rng.integers(2, 10))
        batches.append(collate([(rng.integers(3, 60, size=n), int(rng.integers(5))) for n in lengths]))
    return batches


def mixed_once(
    seed: int, num_micro_batches: int, grad_accum_steps: int, max_norm: float, gradient_scale: float
) -> dict[str, Any]:
    """One pass of the learner's loop in bf16 with a scaler whose scale doubles at every update."""
    model = small_model(seed)
    with torch.no_grad():
        model.head.weight.mul_(gradient_scale)  # gradient norms well above and below `max_norm`
    before = weights_of(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    is_unscaled_twice, report = False, {}
    with count_events(model) as counts:
        try:
            report = learner(
                model,
                iter(text_batches(seed, num_micro_batches)),
                optimizer,
                scheduler,
                scaler,
                grad_accum_steps,
                max_norm,
            )
        except RuntimeError as error:
            is_unscaled_twice = "unscale_()" in str(error)
            if not is_unscaled_twice:
                raise
    return {
        "moved": weights_of(model) - before,
        "report": numbers(report),
        "is_unscaled_twice": is_unscaled_twice,
        "optimizer_steps": counts.num_optimizer_steps,
        "scheduler_steps": scheduler.last_epoch,
        "forwards": counts.num_forwards,
        "scale": float(scaler.get_scale()),
        "low_precision": counts.share_of_flops("bfloat16", "float16"),
        "dtypes": sorted({str(p.dtype) for p in model.parameters()}),
    }
