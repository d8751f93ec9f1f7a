"""Harness of 5.2: a task that remembers what a runner of trials did with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, small_batches, weights_of
from course_lib.models import ModelConfig, TextClassifier


class _Trial:
    """One model that was made, and its life."""

    def __init__(self, config: dict[str, Any], model: TextClassifier) -> None:
        self.config, self.model = dict(config), model
        self.first_weights: torch.Tensor | None = None
        self.batches: list[int] = []
        self.train_modes: list[bool] = []
        self.eval_modes: list[bool] = []
        self.num_steps = 0
        self.num_optimizers = 0
        self.old_state = False


class _Task:
    """What a runner is given."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._splits = {
            name: small_batches(seed + at, 4) for at, name in enumerate(("validation", "test"), 1)
        }
        self._asked: dict[str, int] = dict.fromkeys(("validation", "test"), 0)
        self._trials: list[_Trial] = []
        self._names = {_mark(b): name for name, batches in self._splits.items() for b in batches}

    def make_model(self, config: dict[str, Any]) -> TextClassifier:
        sizes: Any = {"vocab_size": 60, "num_classes": 5, "max_length": 32, "d_model": 16}
        model = TextClassifier(
            ModelConfig(num_layers=1, num_heads=2, dropout=float(config["dropout"]), **sizes)
        )
        trial = _Trial(config, model)
        self._trials.append(trial)

        def note(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._note(trial, args[0] if args else kwargs["input_ids"])

        model.register_forward_pre_hook(note, with_kwargs=True)
        return model

    def make_optimizer(self, model: TextClassifier, config: dict[str, Any]) -> torch.optim.Optimizer:
        (trial,) = (trial for trial in self._trials if trial.model is model)
        trial.num_optimizers += 1
        optimizer = torch.optim.SGD(model.parameters(), lr=float(config["learning_rate"]), momentum=0.9)

        def note_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            trial.old_state |= trial.num_steps == 0 and len(optimizer.state) > 0
            trial.num_steps += 1

        optimizer.register_step_pre_hook(note_step)
        return optimizer

    def train_batches(self, seed: int) -> Iterator[dict[str, torch.Tensor]]:
        yield from _stream(self._seed, seed)

    def validation_batches(self) -> list[dict[str, torch.Tensor]]:
        self._asked["validation"] += 1
        return self._splits["validation"]

    def test_batches(self) -> list[dict[str, torch.Tensor]]:
        self._asked["test"] += 1
        return self._splits["test"]

    def _note(self, trial: _Trial, input_ids: torch.Tensor) -> None:
        mark = _mark({"input_ids": input_ids})
        if torch.is_grad_enabled() and mark not in self._names:
            if trial.first_weights is None:
                trial.first_weights = weights_of(trial.model)
            trial.batches.append(mark)
            trial.train_modes.append(trial.model.training)
        else:
            trial.eval_modes.append(trial.model.training)


def _stream(task_seed: int, seed: int) -> Iterator[dict[str, torch.Tensor]]:
    """Endless batches, whose order the seed decides."""
    batches = small_batches(task_seed, 12)[:-1]  # without the short one of a single class
    rng = np.random.default_rng([task_seed, seed])
    while True:
        for index in rng.permutation(len(batches)):
            yield {name: tensor.clone() for name, tensor in batches[index].items()}


def _mark(batch: dict[str, torch.Tensor]) -> int:
    """A number that names a batch by its ids."""
    ids = batch["input_ids"].flatten()
    return int((ids * torch.arange(1, len(ids) + 1)).sum()) * 1000 + len(ids)


def _loss(model: TextClassifier, batches: list[dict[str, torch.Tensor]]) -> float:
    """Mean over samples of the cross-entropy."""
    model.eval()
    total, rows = 0.0, 0
    with torch.no_grad():
        for batch in batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            total += float(F.cross_entropy(logits, batch["labels"], reduction="sum"))
            rows += len(batch["labels"])
    return total / rows


def run_all(seed: int, configs: list[dict[str, Any]], seeds: list[int], num_steps: int) -> dict[str, Any]:
    """The learner's table of losses, and for each model that was trained what became of it."""
    task = _Task(seed)
    torch.manual_seed(seed)  # the state in which a notebook happens to be
    losses = np.asarray(learner(task, [dict(c) for c in configs], list(seeds), num_steps), dtype=np.float64)
    streams = {s: [_mark(b) for b, _ in zip(_stream(seed, s), range(num_steps), strict=False)] for s in seeds}
    lives = []
    asked, made = dict(task._asked), len(task._trials)
    for trial in [trial for trial in task._trials if trial.num_steps]:
        found = [s for s, marks in streams.items() if trial.batches == marks]
        lives.append(
            {
                "config": configs.index(trial.config) if trial.config in configs else -1,
                "seed": seeds.index(found[0]) if found else -1,
                "first_weights": trial.first_weights,
                "num_steps": trial.num_steps,
                "num_batches": len(trial.batches),
                "trains_in_train_mode": all(trial.train_modes),
                "judged_in_train_mode": any(trial.eval_modes),
                "old_state": trial.old_state,
                "validation": _loss(trial.model, task._splits["validation"]),
                "test": _loss(trial.model, task._splits["test"]),
                "train": _loss(trial.model, small_batches(seed, 12)[:-1]),
            }
        )
    optimizers = sum(trial.num_optimizers for trial in task._trials)
    return {"losses": losses, "lives": lives, "asked": asked, "made": made, "optimizers": optimizers}
