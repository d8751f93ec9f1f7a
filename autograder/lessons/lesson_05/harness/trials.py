"""Harness of 5.2: a task that remembers what a runner of trials did with it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import (
    NotCopied,
    in_groups,
    learner,
    small_batches,
    weights_of,
)
from course_lib.data.tokenizer import PAD_ID
from course_lib.models import ModelConfig, TextClassifier


class _Classifier(TextClassifier):
    """In float64, so that the order of a sum plays no part.

    `broken` are rows on which, when it is judged, its loss is no finite number, or one beyond all bounds, and what is
    added to the logits there.
    """

    broken: tuple[torch.Tensor, torch.Tensor] | None = None
    lift, steep = 0.0, 1.0
    """While it trains: how much too high the logit of the first class is, so that its loss is high, and falls; and
    what its logits are multiplied by, so that gradients are large."""
    learnt: tuple[torch.Tensor, torch.Tensor] | None = None
    """Rows, and the label of each, that it knows from the beginning: its loss on them is next to 0."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = super().forward(input_ids, attention_mask)
        if self.training and self.learnt:
            rows, labels = self.learnt
            is_known = _row_marks(input_ids)[:, None] == rows
            return logits + 30.0 * (is_known.double() @ torch.eye(5, dtype=logits.dtype)[labels]).clamp(
                max=1.0
            )
        if self.training:
            return self.steep * logits + self.lift * torch.eye(5, dtype=logits.dtype)[0]
        if self.broken:
            rows, added = self.broken
            logits = torch.where(torch.isin(_row_marks(input_ids), rows)[:, None], logits + added, logits)
        return logits


class _Trial:
    """One model that was made, and its life."""

    def __init__(self, config: dict[str, Any], model: TextClassifier) -> None:
        self.config, self.model = dict(config), model
        self.first_weights: torch.Tensor | None = None
        self.batches: list[int] = []
        self.train_modes: list[bool] = []
        self.states: list[int] = []
        self.eval_modes: list[bool] = []
        self.num_steps = 0
        self.optimizer_config: dict[str, Any] = {}
        self.old_state = False


class _Task(NotCopied):
    """What a runner is given."""

    why = "what is asked of it is counted, of this one alone. Each trial has a model and an optimizer of its own"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._splits = {
            name: _with_pads(small_batches(seed + at, 3 + (seed + at) % 3))
            for at, name in enumerate(("validation", "test"), 1)
        }
        self._asked: dict[str, int] = dict.fromkeys(("validation", "test"), 0)
        self._trials: list[_Trial] = []
        self._num_optimizers = 0
        self._names = {_mark(b): name for name, batches in self._splits.items() for b in batches}

    def make_model(self, config: dict[str, Any]) -> TextClassifier:
        sizes: Any = {"vocab_size": 60, "num_classes": 5, "max_length": 32, "d_model": 16}
        model = _Classifier(
            ModelConfig(num_layers=1, num_heads=2, dropout=float(config["dropout"]), **sizes)
        ).double()
        if "breaks" in config:
            model.broken = self._broken(sum("breaks" in trial.config for trial in self._trials))
            model.steep = 100.0
        elif "towers" in config:
            model.broken, model.lift = self._towering(), 1e4
        elif "knows" in config:
            texts = _train_texts(self._seed)
            model.learnt = (
                torch.cat([_row_marks(batch["input_ids"]) for batch in texts]),
                torch.cat([batch["labels"] for batch in texts]),
            )
        model.train(len(self._trials) % 2 == 1)  # nothing says in which mode it comes
        trial = _Trial(config, model)
        self._trials.append(trial)

        def note(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._note(trial, called, args[0] if args else kwargs["input_ids"])

        model.register_forward_pre_hook(note, with_kwargs=True)
        return model

    def make_optimizer(self, model: TextClassifier, config: dict[str, Any]) -> torch.optim.Optimizer:
        found = [trial for trial in self._trials if trial.model is model]
        if not found:
            raise TypeError(
                "make_optimizer(model, config): the model must be one that `task.make_model` made"
            )
        trial = found[0]
        trial.optimizer_config = dict(config)
        self._num_optimizers += 1
        optimizer = torch.optim.SGD(in_groups(model), lr=float(config["learning_rate"]), momentum=0.9)

        def note_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            trial.old_state |= trial.num_steps == 0 and len(optimizer.state) > 0
            trial.num_steps += 1

        optimizer.register_step_pre_hook(note_step)
        return optimizer

    def _broken(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of one class in one validation batch, and what makes their loss infinite, or NaN, and no other's."""
        batch = self._splits["validation"][(0, -1, 1)[number % 3]]
        label = int(batch["labels"][0])
        added = torch.full((5,), math.nan if number % 3 == 1 else -1.7e308, dtype=torch.float64)
        added[(label + 1) % 5] *= -1
        return _row_marks(batch["input_ids"][batch["labels"] == label]), added

    def _towering(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of one class in one validation batch, and what makes their loss as high as few numbers are."""
        batch = self._splits["validation"][0]
        label = int(batch["labels"][0])
        added = torch.zeros(5, dtype=torch.float64)
        added[(label + 1) % 5] = 1e30
        return _row_marks(batch["input_ids"][batch["labels"] == label]), added

    def train_batches(self, seed: int) -> Iterator[dict[str, torch.Tensor]]:
        yield from _stream(self._seed, seed)

    def validation_batches(self) -> list[dict[str, torch.Tensor]]:
        self._asked["validation"] += 1
        return self._splits["validation"]

    def test_batches(self) -> list[dict[str, torch.Tensor]]:
        self._asked["test"] += 1
        return self._splits["test"]

    def _note(self, trial: _Trial, called: torch.nn.Module, input_ids: torch.Tensor) -> None:
        """`called` is the trial's model, or a copy of it."""
        mark = _mark({"input_ids": input_ids})
        modes = [module.training for module in called.modules()]
        if mark in self._names:
            trial.eval_modes.append(any(modes))
        elif torch.is_grad_enabled():
            if trial.first_weights is None:
                trial.first_weights = weights_of(trial.model)
            trial.batches.append(mark)
            trial.train_modes.append(all(modes))
            trial.states.append(zlib.crc32(torch.get_rng_state().numpy().tobytes()))


def _train_texts(task_seed: int) -> list[dict[str, torch.Tensor]]:
    """Batches of two sizes, without the short ones of a single class."""
    return _with_pads(small_batches(task_seed, 7)[:-1] + small_batches(task_seed + 1000, 6, rows=7)[:-1])


def _with_pads(batches: list[dict[str, torch.Tensor]]) -> list[dict[str, torch.Tensor]]:
    """The id of padding inside every text too: where a text ends only its mask says."""
    for batch in batches:
        batch["input_ids"][:, 0] = PAD_ID
    return batches


def _stream(task_seed: int, seed: int) -> Iterator[dict[str, torch.Tensor]]:
    """Endless batches, whose order the seed decides."""
    batches = _train_texts(task_seed)
    rng = np.random.default_rng([task_seed, seed])
    while True:
        for index in rng.permutation(len(batches)):
            yield {name: tensor.clone() for name, tensor in batches[index].items()}


def _row_marks(input_ids: torch.Tensor) -> torch.Tensor:
    """A number [B] that names each text by its ids, however it is padded."""
    return (input_ids * torch.arange(1, input_ids.shape[1] + 1) ** 3).sum(dim=1)


def _mark(batch: dict[str, torch.Tensor]) -> int:
    """A number that names a batch by its ids."""
    ids = batch["input_ids"].flatten()
    return int((ids * torch.arange(1, len(ids) + 1)).sum()) * 1000 + len(ids)


def _losses(model: TextClassifier, batches: list[dict[str, torch.Tensor]]) -> list[list[float]]:
    """[sum of the samples' cross-entropies, samples] of each batch, in evaluation mode."""
    model.eval()
    with torch.no_grad():
        return [
            [
                float(
                    F.cross_entropy(
                        model(batch["input_ids"], batch["attention_mask"]), batch["labels"], reduction="sum"
                    )
                ),
                float(len(batch["labels"])),
            ]
            for batch in batches
        ]


_ran: list[_Task] = []


def run_all(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each round, {seed, configs, seeds, num_steps}: the learner's table, and what became of each model."""
    return [_run(**one) for one in rounds]


def _run(seed: int, configs: list[dict[str, Any]], seeds: list[int], num_steps: int) -> dict[str, Any]:
    task = _Task(seed)
    _ran.append(task)
    torch.manual_seed(seed)  # the state in which a notebook happens to be
    table = learner(task, [dict(c) for c in configs], list(seeds), num_steps)
    is_array = isinstance(table, np.ndarray)
    streams = {s: [_mark(b) for b, _ in zip(_stream(seed, s), range(num_steps), strict=False)] for s in seeds}
    lives = []
    asked, made = dict(task._asked), len(task._trials)
    for trial in [trial for trial in task._trials if trial.num_steps]:
        found = [s for s, marks in streams.items() if trial.batches == marks]
        lives.append(
            {
                "config": configs.index(trial.config) if trial.config in configs else -1,
                "is_own_config": trial.optimizer_config == trial.config,
                "seed": seeds.index(found[0]) if found else -1,
                "first_weights": trial.first_weights,
                "last_weights": weights_of(trial.model),
                "num_steps": trial.num_steps,
                "num_batches": len(trial.batches),
                "trains_in_train_mode": all(trial.train_modes),
                "judged_in_train_mode": any(trial.eval_modes),
                "old_state": trial.old_state,
                "states": trial.states,
                "drops": trial.config["dropout"] > 0,
                "validation": np.array(_losses(trial.model, task._splits["validation"])),
            }
        )
    return {
        "kind": f"{table.dtype} array" if is_array else type(table).__name__,
        "losses": table if is_array and table.dtype == np.float64 else None,
        "lives": lives,
        "asked": asked,
        "tokens": np.array(
            [[b["input_ids"].numel(), int(b["attention_mask"].sum())] for b in task._splits["validation"]]
        ),
        "made": made,
        "optimizers": task._num_optimizers,
    }


def train_losses(at: int) -> np.ndarray:
    """Of each trial of a round that was run: its loss on the texts that it was trained on."""
    task = _ran[at]
    found = [
        np.array(_losses(trial.model, _train_texts(task._seed))) for trial in task._trials if trial.num_steps
    ]
    return np.array([one[:, 0].sum() / one[:, 1].sum() for one in found])
