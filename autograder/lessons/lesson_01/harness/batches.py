"""Harness of 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, plain_step, small
from autograder.lessons.lesson_01.harness.shared import (
    BATCHES_PER_STEP,
    MICRO_BATCH_SIZE,
    corpus,
    new_model,
    probe,
    renamed,
    secret_samples,
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
    samples = renamed(store, secret_samples(rng, num_batches * MICRO_BATCH_SIZE), rng)
    for start in range(0, len(samples), MICRO_BATCH_SIZE):
        losses.append(plain_step(model, optimizer, learner(samples[start : start + MICRO_BATCH_SIZE])))
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
    chosen = _segment(seed, num_steps)
    sampler = learner(corpus().lengths[chosen], MICRO_BATCH_SIZE, small(seed))
    sampler.set_epoch(1)
    batches, losses = _train_on(seed, chosen, sampler)
    return {
        "seed": seed,
        "num_steps": num_steps,
        "used": np.array([index for batch in batches for index in batch], dtype=np.int64),
        "sizes": np.array([len(batch) for batch in batches], dtype=np.int64),
        "losses": losses,
    }


def sampler_replay(seed: int, num_steps: int, used: np.ndarray, sizes: np.ndarray) -> torch.Tensor:
    """The losses of training on these very batches: what `sampler_segment` must have seen."""
    return _train_on(seed, _segment(seed, num_steps), np.split(used, np.cumsum(sizes)[:-1]))[1]


def _segment(seed: int, num_steps: int) -> np.ndarray:
    number = num_steps * BATCHES_PER_STEP["1.2"] * MICRO_BATCH_SIZE
    return secret_samples(np.random.default_rng(seed), number)


def _train_on(seed: int, chosen: np.ndarray, batches: Any) -> tuple[list[list[int]], torch.Tensor]:
    store = corpus()
    model, optimizer = new_model(seed)
    used: list[list[int]] = []
    losses: list[torch.Tensor] = []
    for batch_indices in batches:
        used.append([int(index) for index in batch_indices])
        batch = collate([store[int(chosen[index])] for index in used[-1]])
        losses.append(plain_step(model, optimizer, batch))
    return used, torch.stack(losses)
