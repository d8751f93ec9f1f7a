"""Harness of 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.lesson_01.harness.shared import (
    BATCHES_PER_STEP,
    MICRO_BATCH_SIZE,
    corpus,
    learner,
    new_model,
    probe,
    secret_samples,
    small,
    train_step,
)
from course_lib.data import collate


def collate_once(ids: list[np.ndarray], labels: list[int]) -> dict[str, Any]:
    """The learner's batch of these samples, and the samples afterwards."""
    samples = [(row.copy(), int(label)) for row, label in zip(ids, labels, strict=True)]
    batch = learner(samples)
    return {
        "type": "dict" if isinstance(batch, dict) else type(batch).__name__,
        "batch": {k: v for k, v in batch.items() if isinstance(v, torch.Tensor)}
        if isinstance(batch, dict)
        else {},
        "samples": [row for row, _ in samples],
    }


def collate_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """Train on batches of secret samples that the learner's function collates."""
    store = corpus()
    rng = np.random.default_rng(seed)
    model, optimizer = new_model(seed)
    losses = []
    num_batches = num_steps * BATCHES_PER_STEP["1.1"]
    for chosen in secret_samples(rng, num_batches * MICRO_BATCH_SIZE).reshape(num_batches, -1):
        batch = learner([store[int(index)] for index in chosen])
        losses.append(train_step(model, optimizer, batch))
    return {"losses": torch.stack(losses), "logits": probe(model, store, rng)}


def sampler_epochs(
    lengths: np.ndarray, micro_batch_size: int, seed: int, epochs: list[int]
) -> list[dict[str, Any]]:
    """The batches of each of these epochs, flattened, from one sampler."""
    sampler = learner(lengths.copy(), micro_batch_size, small(seed))
    answers = []
    for epoch in epochs:
        sampler.set_epoch(epoch)
        batches = [[int(index) for index in batch] for batch in sampler]
        answers.append(
            {
                "indices": np.array([index for batch in batches for index in batch], dtype=np.int64),
                "sizes": np.array([len(batch) for batch in batches], dtype=np.int64),
                "len": len(sampler),
            }
        )
    return answers


def sampler_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One epoch over secret samples in the learner's batches."""
    store = corpus()
    rng = np.random.default_rng(seed)
    model, optimizer = new_model(seed)
    chosen = secret_samples(rng, num_steps * BATCHES_PER_STEP["1.2"] * MICRO_BATCH_SIZE)
    sampler = learner(store.lengths[chosen], MICRO_BATCH_SIZE, small(seed))
    sampler.set_epoch(1)
    used: list[int] = []
    losses: list[torch.Tensor] = []
    for batch_indices in sampler:
        batch = collate([store[int(chosen[index])] for index in batch_indices])
        losses.append(train_step(model, optimizer, batch))
        used.extend(int(index) for index in batch_indices)
    return {"used": np.array(used, dtype=np.int64), "losses": torch.stack(losses)}
