"""Harness of 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

import contextlib
import operator
import random
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner, plain_step, same_everywhere, small
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

    All of them are held, as by a loader that is some batches ahead. Equal samples of a batch are one and the same.
    """
    given = [
        [(row.copy(), int(label)) for row, label in zip(batch["ids"], batch["labels"], strict=True)]
        for batch in batches
    ]
    for samples in given:
        one = {(row.tobytes(), label): (row, label) for row, label in samples}
        samples[:] = [one[row.tobytes(), label] for row, label in samples]
    made = [_collated(samples) for samples in given]
    for answer, batch in made:
        tensors = _tensors_of(batch)  # what is in it now: one dict may serve every call as well
        # A meta tensor has no values to compare; what becomes of it is said where it is handed on.
        answer["is_kept"] = tensors.keys() == answer["batch"].keys() and all(
            tensor.is_meta or torch.equal(tensor, answer["batch"][name]) for name, tensor in tensors.items()
        )
    owners: dict[int, int] = {}
    for number, (answer, batch) in enumerate(made):
        places = {tensor.untyped_storage().data_ptr() for tensor in _tensors_of(batch).values()} - {0}
        answer["is_kept"] &= all(owners.setdefault(place, number) == number for place in places)
    for (answer, batch), samples in zip(made, given, strict=True):
        # Of an expanded tensor, which has no memory for each element.
        with contextlib.suppress(KeyError, RuntimeError):
            _tensors_of(batch)["input_ids"].add_(1)
        answer["samples_after_write"] = [row.copy() for row, _ in samples]
        answer["is_anew"] = _is_anew(samples)
    return [answer for answer, _ in made]


def _is_anew(samples: list[tuple[np.ndarray, int]]) -> bool:
    """Whether another batch of the same samples holds their ids, which have changed since."""
    for row in {id(row): row for row, _ in samples}.values():
        row ^= 1
    again = _tensors_of(learner(list(samples))).get("input_ids")
    # Of a tensor without values, or that is missing, others speak.
    return (
        again is None
        or again.is_meta
        or again.ndim != 2
        or all(
            np.array_equal(got[: len(row)], row)
            for got, (row, _) in zip(again.numpy(), samples, strict=False)
        )
    )


def _tensors_of(batch: Any) -> dict[str, torch.Tensor]:
    items = batch.items() if isinstance(batch, dict) else ()
    return {str(name): value for name, value in items if isinstance(value, torch.Tensor)}


def _collated(samples: list[tuple[np.ndarray, int]]) -> tuple[dict[str, Any], Any]:
    """A copy of the learner's batch of these samples and the samples afterwards; and the batch itself."""
    given = list(samples)
    made = learner(given)
    tensors = _tensors_of(made)
    answer = {
        "type": "dict" if isinstance(made, dict) else type(made).__name__,
        "batch": {name: tensor.clone() for name, tensor in tensors.items()},
        "others": [str(name) for name in made if name not in tensors] if isinstance(made, dict) else [],
        "samples": [row.copy() for row, _ in samples],
        "is_list_kept": len(given) == len(samples) and all(map(operator.is_, given, samples)),
    }
    return answer, made


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
    that was broken off and is gone on with after.
    """
    # What comes here may be read only; what a learner's caller has may be written.
    samplers = [[x.copy() if isinstance(x, np.ndarray) else x for x in arguments] for arguments in samplers]
    given = [np.array(arguments[0]) for arguments in samplers]
    made = [learner(*arguments) for arguments in samplers]
    answers = [_one_pass(made[number], epoch, state) for number, epoch, state in passes]
    for answer, (number, *_) in zip(answers, passes, strict=True):
        answer["is_kept"] = np.array_equal(samplers[number][0], given[number])
    return answers


def _one_pass(sampler: Any, epoch: int, state: int) -> dict[str, Any]:
    random.seed(state), np.random.seed(state), torch.manual_seed(state)
    sampler.set_epoch(epoch)
    said = len(sampler)
    look = iter(sampler)  # as somebody has who wants to see a batch
    looked: list[int] = next(look, [])
    batches = list(sampler)
    for batch in (looked, *batches):
        strange = [type(i).__name__ for i in batch if type(i) is not int]
        if strange or not isinstance(batch, list):
            return {"strange": strange[0] if strange else type(batch).__name__}
    rest = list(look)
    is_first, is_rest = looked == (batches or [[]])[0], rest == batches[1:]
    first, indices = [*looked], [i for batch in batches for i in batch]
    sizes = [len(batch) for batch in batches]
    for batch in (looked, *batches, *rest):  # they are their taker's
        batch.clear()
    return {
        "indices": np.array(indices, dtype=np.int64),
        "sizes": np.array(sizes, dtype=np.int64),
        "len": len(sampler),
        "len_before": said,
        "looked": first,
        "is_first": is_first,
        "is_rest": is_rest,
    }


_PASS = """
sampler = learner(*request["arguments"])
sampler.set_epoch(request["epoch"])
say([[int(index) for index in batch] for batch in sampler])
"""


def passes_elsewhere(
    source: str, entry: str, arguments: list[Any], epoch: int, hash_seeds: list[int]
) -> dict[str, Any]:
    """Whether fresh interpreters, where texts have other hashes, make the same batches; or what one ended with."""
    request = {"arguments": arguments, "epoch": epoch}
    return same_everywhere(_PASS, source, entry, request, hash_seeds)


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
