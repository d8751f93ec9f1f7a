"""Harness of 2.4 and 2.5: an epoch in the precision that is asked for, and a model that must stand fp16."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, numbers, weights_of
from autograder.lessons.lesson_02.harness.shared import (
    VOCABULARY,
    DeepClassifier,
    Recorder,
    deep_model,
    dtypes_of,
    full_batch,
)
from course_lib.data import TokenStore, collate, docstring_store
from course_lib.measuring import count_events
from course_lib.training import resolve_precision, train_step

ROWS, WIDTH, D_MODEL = 16, 64, 256  # of a timed step: wide enough for 16-bit units to show


def _uneven_batches(
    model: DeepClassifier, rng: np.random.Generator, number: int
) -> list[dict[str, torch.Tensor]]:
    """Likely labels, but for a short last batch of unlikely ones: a mean of batch means is 4 % too high or more."""
    batches = [full_batch(rng, 12, 16) for _ in range(number - 1)] + [full_batch(rng, 3, 16)]
    for batch in batches:
        with torch.no_grad():
            logits = model(batch["input_ids"], batch["attention_mask"])
        batch["labels"] = logits.argmin(-1) if batch is batches[-1] else logits.argmax(-1)
    return batches


def epoch_once(seed: int, num_batches: int, precision: str) -> dict[str, Any]:
    """One epoch of the learner's loop on a small model: weights, report, and what was counted."""
    rng = np.random.default_rng(seed)
    model = deep_model(seed)
    with torch.no_grad():
        model.head.weight.mul_(3.0)  # else all labels are about as likely
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    recorder = Recorder(model, optimizer)
    batches = _uneven_batches(model, rng, num_batches)
    model.eval()  # as an evaluation before it may have left it
    with count_events(model) as counts:
        report = learner(model, iter(batches), optimizer, precision, 0.5)
    return {
        "weights": weights_of(model).float(),
        "report": numbers(report),
        "flops": counts.flops,
        "forwards": counts.num_forwards,
        "steps": counts.num_optimizer_steps,
        "syncs": counts.num_syncs,
        "unwatched": counts.num_unwatched,
        "weight_dtypes": sorted(recorder.weight_dtypes | set(dtypes_of(model))),
        "train_mode": model.training,
    }


@functools.cache
def _wide() -> tuple[DeepClassifier, dict[str, torch.Tensor]]:
    """The model of the timed steps, made once, and its first weights."""
    model = deep_model(0, d_model=D_MODEL)
    return model, {name: value.clone() for name, value in model.state_dict().items()}


def epoch_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """An epoch of that many batches in bf16; the baseline takes no notice and computes in fp32."""
    model, first = _wide()
    model.load_state_dict(first)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    batches = [full_batch(rng, ROWS, WIDTH) for _ in range(num_steps)]
    report = learner(model, iter(batches), optimizer, "bf16-mixed", 1.0)
    probe = full_batch(rng, 4, 8)
    with torch.no_grad():
        logits = model(probe["input_ids"], probe["attention_mask"])
    return {"report": numbers(report), "logits": logits}


def _fragile(seed: int, loudness: float) -> torch.nn.Module:
    """The learner's classifier with its word vectors made louder or quieter."""
    torch.manual_seed(seed)
    model: torch.nn.Module = learner(VOCABULARY, 6)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                module.weight.mul_(loudness)
    return model


def fragile_once(seed: int, loudness: float, scale: float, precision: str) -> dict[str, Any]:
    """Logits and gradients of the learner's classifier on secret texts of uneven lengths; the loss times `scale`."""
    rng = np.random.default_rng(seed)
    model = _fragile(seed, loudness)
    samples = [
        (rng.integers(3, VOCABULARY, size=rng.integers(4, 40)), int(rng.integers(6))) for _ in range(12)
    ]
    batch = collate(samples)
    with count_events(model) as counts:
        with resolve_precision(precision, torch.device("cpu")).autocast():
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
        (loss * scale).backward()
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return {
        "logits": logits.float(),
        "gradients": torch.cat([g.flatten() / scale for g in gradients]),
        "num_weights": [p.numel() for p in model.parameters()],
        "weights": weights_of(model),
        "float16_share": counts.share_of_flops("float16"),
    }


@functools.cache
def _short_texts() -> tuple[TokenStore, TokenStore, list[np.ndarray]]:
    train, validation = docstring_store(progress=False)
    return train, validation, [np.flatnonzero(np.asarray(s.lengths) <= 48) for s in (train, validation)]


def quality(seed: int, num_samples: int, num_epochs: int, precision: str) -> float:
    """Validation accuracy, in points of 100, after training on short texts of the corpus in this precision."""
    train, validation, short = _short_texts()
    rng = np.random.default_rng(seed)
    samples = train.subset(rng.choice(short[0], size=num_samples, replace=False))
    held_out = validation.subset(rng.permutation(short[1])[:600])
    torch.manual_seed(seed)
    model: torch.nn.Module = learner(train.vocab_size, len(train.label_names))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    resolved = resolve_precision(precision, torch.device("cpu"))
    for _ in range(num_epochs):
        order = rng.permutation(num_samples)
        for start in range(0, num_samples, 16):
            batch = collate([samples[int(index)] for index in order[start : start + 16]])
            train_step(model, batch, optimizer, precision=resolved)
    model.eval()
    correct = 0
    for start in range(0, len(held_out), 250):
        batch = collate([held_out[i] for i in range(start, min(start + 250, len(held_out)))])
        with torch.no_grad(), resolved.autocast():
            logits = model(batch["input_ids"], batch["attention_mask"])
        correct += int((logits.argmax(-1) == batch["labels"]).sum())
    return 100.0 * correct / len(held_out)
