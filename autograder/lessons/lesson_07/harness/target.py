"""Harness of 7.6: a real training up to a target, billed by the tariff of a made-up machine.

What is learned is real: weights, steps and accuracy. Only the seconds are worked out from what was computed, so that
the bill is the same on every machine. The lesson calls `run_to_target` too.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import counted
from autograder.lessons.checking.harness_shared import learner
from course_lib.data import BucketBatchSampler, TokenStore, docstring_store
from course_lib.models import ModelConfig, TextClassifier
from course_lib.training import make_optimizer, train_step

Settings = dict[str, Any]
BASELINE: Settings = {
    "machine": "small",
    "padding": "maximum",
    "learning_rate": 1e-4,
    "micro_batch_size": 16,
    "evaluate_every_steps": 5,
    "save_every_steps": 5,
}
TARGET_ACCURACY = 0.65
MAX_SAMPLES = 8000  # then the run ends without the target
MAX_LENGTH = 96
CLASSES = 4
NUM_TRAIN, NUM_HELD_OUT = 3000, 200
# The tariff. A position is one token or one place of padding going through the model; backward costs two more.
POSITIONS_PER_SECOND = {"small": 20_000.0, "large": 50_000.0}
PRICE_PER_HOUR = {"small": 1.20, "large": 4.80}  # EUR
START_SECONDS = 5.0
SECONDS_PER_STEP, SECONDS_PER_EVALUATION, SECONDS_PER_SAVE = 0.2, 0.05, 0.6  # besides the positions


@functools.cache
def _texts() -> tuple[TokenStore, TokenStore]:
    """Texts of the four largest classes, none longer than `MAX_LENGTH`."""
    train, held_out = docstring_store(max_length=1024, progress=False)
    largest = np.argsort(-np.bincount(train.labels))[:CLASSES]
    chosen = [
        store.subset(np.flatnonzero(np.isin(store.labels, largest) & (store.lengths <= MAX_LENGTH)))
        for store in (train, held_out)
    ]
    return chosen[0], chosen[1]


def _labelled_batch(store: TokenStore, indices: Any) -> dict[str, torch.Tensor]:
    batch = store.batch(np.asarray(indices))
    names = np.unique(_texts()[0].labels)
    return batch | {"labels": torch.from_numpy(np.searchsorted(names, batch["labels"].numpy()))}


def _order(settings: Settings, lengths: np.ndarray, seed: int, epoch: int) -> list[list[int]]:
    rows = int(settings["micro_batch_size"])
    if settings["padding"] == "buckets":
        sampler = BucketBatchSampler(lengths, rows, seed=seed, pool_batches=10)
        sampler.set_epoch(epoch)
        return list(sampler)
    order = np.random.default_rng([seed, epoch]).permutation(len(lengths))
    return [order[start : start + rows].tolist() for start in range(0, len(order), rows)]


def _positions(settings: Settings, lengths: np.ndarray, batches: list[list[int]]) -> int:
    """Places that go through the model, padding among them."""
    if settings["padding"] == "maximum":
        return MAX_LENGTH * sum(map(len, batches))
    return sum(int(lengths[batch].max()) * len(batch) for batch in batches)


def run_to_target(settings: Settings, seed: int) -> dict[str, Any]:
    """Train until an evaluation finds `TARGET_ACCURACY`, and work out the bill.

    Returns `is_reached`, `num_steps`, `num_evaluations`, `seconds` and `cost` (EUR) up to there, `accuracy`, and
    `epoch_seconds`, what one pass over the texts would take without evaluating and saving.
    """
    rng = np.random.default_rng(seed)
    train, held_out = (
        store.subset(rng.choice(len(store), size=size, replace=False))
        for store, size in zip(_texts(), (NUM_TRAIN, NUM_HELD_OUT), strict=True)
    )
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"d_model": 32, "num_layers": 1, "num_heads": 2, "max_length": MAX_LENGTH}
    model = TextClassifier(
        ModelConfig(vocab_size=train.vocab_size, num_classes=CLASSES, dropout=0.0, **sizes)
    )
    optimizer = make_optimizer(model, learning_rate=float(settings["learning_rate"]), embedding_lr_ratio=5.0)
    by_length = np.argsort(held_out.lengths, kind="stable")
    judging = [by_length[start : start + 32] for start in range(0, len(by_length), 32)]
    judged = [_labelled_batch(held_out, indices) for indices in judging]
    # Evaluating is padded as training is; in order of length, buckets hold what they should.
    evaluated = _positions(settings, held_out.lengths, [indices.tolist() for indices in judging])
    rate = POSITIONS_PER_SECOND[settings["machine"]]
    seconds, accuracy, evaluations, epoch_seconds, step, epoch = START_SECONDS, 0.0, 0, 0.0, 0, 0
    rows = int(settings["micro_batch_size"])
    while step * rows < MAX_SAMPLES and accuracy < TARGET_ACCURACY:
        order = _order(settings, train.lengths, seed, epoch)
        if not epoch:
            epoch_seconds = 3 * _positions(settings, train.lengths, order) / rate + SECONDS_PER_STEP * len(
                order
            )
        epoch += 1
        for indices in order:
            step += 1
            model.train()
            train_step(model, _labelled_batch(train, indices), optimizer)
            seconds += 3 * _positions(settings, train.lengths, [indices]) / rate + SECONDS_PER_STEP
            seconds += SECONDS_PER_SAVE * (step % int(settings["save_every_steps"]) == 0)
            if step % int(settings["evaluate_every_steps"]) == 0:
                accuracy, evaluations = _accuracy(model, judged), evaluations + 1
                seconds += evaluated / rate + SECONDS_PER_EVALUATION
            if step * rows >= MAX_SAMPLES or accuracy >= TARGET_ACCURACY:
                break
    return {
        "is_reached": accuracy >= TARGET_ACCURACY,
        "num_steps": step,
        "num_evaluations": evaluations,
        "accuracy": accuracy,
        "seconds": seconds,
        "epoch_seconds": epoch_seconds,
        "cost": seconds / 3600 * PRICE_PER_HOUR[settings["machine"]],
    }


@torch.no_grad()
def _accuracy(model: Any, batches: list[dict[str, torch.Tensor]]) -> float:
    model.eval()
    right = sum(
        int((model(b["input_ids"], b["attention_mask"]).argmax(1) == b["labels"]).sum()) for b in batches
    )
    return right / sum(len(batch["labels"]) for batch in batches)


def changed_settings(baseline: Settings) -> Settings:
    """What the learner's function makes of the baseline's settings: `settings` as plain values, or `malformed`; and how
    many steps of optimizers it took for that."""
    with counted(operators=False) as counts:
        found = learner(dict(baseline))
        if not isinstance(found, dict):
            return {"malformed": f"a {type(found).__name__}"}
        # Still counted: a value may be worked out when it is looked at.
        settings = {str(key): _plain(value) for key, value in found.items()}
    return {"malformed": "", "settings": settings, "num_steps": counts.num_optimizer_steps}


def _plain(value: Any) -> str | float:
    try:
        return value if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return repr(value)


def baseline_settings() -> Settings:
    """The settings to start from."""
    return dict(BASELINE)
