"""Harness of 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

import contextlib
import operator
import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import elsewhere, learner, plain_step, small
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


def collate_each(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The learner's batches, the samples afterwards, and once more after a write into the batches.

    All of them are held, as by a loader that is some batches ahead.
    """
    given = [
        [(row.copy(), int(label)) for row, label in zip(batch["ids"], batch["labels"], strict=True)]
        for batch in batches
    ]
    made = [_collated(samples) for samples in given]
    for answer, tensors in made:
        # A meta tensor has no values to compare; what becomes of it is said where it is handed on.
        answer["is_kept"] = all(
            tensor.is_meta or torch.equal(tensor, answer["batch"][name]) for name, tensor in tensors.items()
        )
    for (answer, tensors), samples in zip(made, given, strict=True):
        # Of an expanded tensor, which has no memory for each element.
        with contextlib.suppress(KeyError, RuntimeError):
            tensors["input_ids"].add_(1)
        answer["samples_after_write"] = [row for row, _ in samples]
    return [answer for answer, _ in made]


def _collated(samples: list[tuple[np.ndarray, int]]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A copy of the learner's batch of these samples and the samples afterwards; and its tensors themselves."""
    given = list(samples)
    made = learner(given)
    tensors = {}
    if isinstance(made, dict):
        tensors = {str(name): value for name, value in made.items() if isinstance(value, torch.Tensor)}
    answer = {
        "type": "dict" if isinstance(made, dict) else type(made).__name__,
        "batch": {name: tensor.clone() for name, tensor in tensors.items()},
        "samples": [row.copy() for row, _ in samples],
        "is_list_kept": len(given) == len(samples) and all(map(operator.is_, given, samples)),
    }
    return answer, tensors


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


def sampler_passes(samplers: list[list[Any]], passes: list[list[int]]) -> list[dict[str, Any]]:
    """The batches of one pass after the other, flattened: a pass is `[number of the sampler, epoch, global seed]`.

    All samplers are there at once, and every pass finds the global generators in another state, and a pass before it
    that was broken off.
    """
    made = [learner(*arguments) for arguments in samplers]
    return [_one_pass(made[number], epoch, state) for number, epoch, state in passes]


def _one_pass(sampler: Any, epoch: int, state: int) -> dict[str, Any]:
    random.seed(state), np.random.seed(state), torch.manual_seed(state)
    sampler.set_epoch(epoch)
    looked = list(next(iter(sampler), ()))  # as somebody does who wants to see a batch
    batches = [list(batch) for batch in sampler]
    strange = next((i for batch in batches for i in batch if not hasattr(type(i), "__index__")), None)
    if strange is not None:
        return {"strange": type(strange).__name__}
    return {
        "indices": np.array([operator.index(i) for batch in batches for i in batch], dtype=np.int64),
        "sizes": np.array([len(batch) for batch in batches], dtype=np.int64),
        "len": len(sampler),
        "looked": [operator.index(i) for i in looked],
    }


_PASS = """
sampler = learner(*request["arguments"])
sampler.set_epoch(request["epoch"])
print(json.dumps([[int(index) for index in batch] for batch in sampler]))
"""


def passes_elsewhere(
    source: str, entry: str, arguments: list[Any], epoch: int, hash_seeds: list[int]
) -> dict[str, Any]:
    """Whether fresh interpreters, where texts have other hashes, make the same batches; or what one ended with."""
    request = {"arguments": arguments, "epoch": epoch}
    try:
        first, *others = [elsewhere(_PASS, source, entry, request, hash_seed) for hash_seed in hash_seeds]
    except RuntimeError as error:
        return {"is_same": False, "trouble": str(error)}
    return {"is_same": all(other == first for other in others), "trouble": ""}


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
