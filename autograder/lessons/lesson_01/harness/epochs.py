"""Harness of 1.6: whole epochs under the clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import learner, numbers, small, weights_of
from autograder.lessons.lesson_01.harness.shared import (
    BATCHES_PER_STEP,
    MAX_LENGTH,
    MICRO_BATCH_SIZE,
    corpus,
    new_model,
    secret_samples,
    sizes,
)
from course_lib.data import TokenStore, collate, docstring_store
from course_lib.models import TextClassifier


def epoch_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """One pass of the learner's loop over secret samples of the corpus. It is counted."""
    model, optimizer = new_model(seed)
    samples = _secret_epoch(seed, num_steps)
    forwards: list[tuple[torch.Tensor, ...]] = []
    steps: list[int] = []  # number of forwards before each
    model.register_forward_pre_hook(
        lambda _, args, kwargs: forwards.append((*args, *kwargs.values())[:2]), with_kwargs=True
    )
    optimizer.register_step_post_hook(lambda *_: steps.append(len(forwards)))
    with counted(model, operators=False):
        report = learner(model, samples, optimizer, MICRO_BATCH_SIZE, small(seed))
    return {
        "seed": seed,
        "num_steps": num_steps,
        "report": numbers(report),
        "batches": _batches_of(samples, forwards, steps),
        "weights": weights_of(model),
    }


def _batches_of(
    samples: TokenStore, forwards: list[tuple[torch.Tensor, ...]], steps: list[int]
) -> list[list[int]]:
    """Indices of the samples that went through the model before each step; -1 for a row that is none of them."""
    place = {np.asarray(samples[i][0], dtype=np.int64).tobytes(): i for i in range(len(samples))}
    batches = []
    for first, last in zip([0, *steps], steps, strict=False):
        rows = [
            row[:length].tobytes()
            for ids, mask in forwards[first:last]
            for row, length in zip(ids.long().numpy(), mask.sum(dim=1).tolist(), strict=True)
        ]
        batches.append([place.get(row, -1) for row in rows])
    return batches


def segment_replay(seed: int, num_steps: int, batches: list[list[int]]) -> dict[str, Any]:
    """The weights that the steps of the naive loop reach with these batches, and those before them."""
    model, optimizer = new_model(seed)
    samples, before = _secret_epoch(seed, num_steps), weights_of(model).clone()
    model.train()
    for indices in batches:
        batch = collate([samples[index] for index in indices])
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {"before": before, "after": weights_of(model)}


def _secret_epoch(seed: int, num_steps: int) -> TokenStore:
    number = num_steps * BATCHES_PER_STEP["1.6"] * MICRO_BATCH_SIZE
    return corpus().subset(secret_samples(np.random.default_rng(seed), number))


def quality(seed: int, num_samples: int, num_epochs: int) -> float:
    """Validation accuracy, in points of 100, after training on short texts of the corpus."""
    train, validation = docstring_store(max_length=MAX_LENGTH, progress=False)
    rng = np.random.default_rng(seed)
    short = [np.flatnonzero(np.asarray(s.lengths) <= 48) for s in (train, validation)]
    samples = train.subset(rng.choice(short[0], size=num_samples, replace=False))
    held_out = validation.subset(rng.permutation(short[1])[:1500])
    torch.manual_seed(seed)
    model = TextClassifier(sizes(num_classes=len(train.label_names), max_length=48))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(num_epochs):
        learner(model, samples, optimizer, 2 * MICRO_BATCH_SIZE, small(seed) * 100 + epoch)
    model.eval()
    correct = 0
    with torch.no_grad():
        for start in range(0, len(held_out), 128):
            batch = collate([held_out[i] for i in range(start, min(start + 128, len(held_out)))])
            logits = model(batch["input_ids"], batch["attention_mask"])
            correct += int((logits.argmax(-1) == batch["labels"]).sum())
    return 100.0 * correct / len(held_out)
