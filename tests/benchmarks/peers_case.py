"""What every system of `peers` is given: the same texts, model, optimizer, schedule and seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.data import TokenStore, docstring_store
from course_lib.data.batching import evaluation_batches
from course_lib.models.transformers import ModelConfig, make_model
from course_lib.training.evaluation import evaluate
from course_lib.training.optim import make_optimizer, parameter_groups
from course_lib.training.precision import resolve_precision
from course_lib.training.schedules import make_schedule


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task for all systems. The defaults are those of `TrainConfig`."""

    max_length: int = 256
    num_train: int | None = None
    """Texts to train on; None for all."""
    num_validation: int | None = None
    d_model: int = 64
    num_layers: int = 2
    num_heads: int = 4
    dropout: float = 0.1
    micro_batch_size: int = 32
    learning_rate: float = 1e-3
    embedding_lr_ratio: float = 20.0
    schedule: str = "linear"
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    label_smoothing: float = 0.0
    max_norm: float = 1.0
    max_steps: int = 100
    precision: str = "32-true"
    optimizer: str = "adamw"
    """One for all systems: AdamW as each library's documentation has it, any other as `course_lib` makes it."""
    seed: int = 0
    num_workers: int = 0
    is_fused: bool = True
    """Whether the peers' AdamW is told to be fused; the hand-written loop of the tutorial does not know of it."""


_stores: dict[int, tuple[TokenStore, TokenStore]] = {}


def stores(case: Case) -> tuple[TokenStore, TokenStore]:
    """(train, validation) of the docstring corpus. Opened once in a process."""
    if case.max_length not in _stores:
        _stores[case.max_length] = docstring_store(max_length=case.max_length, progress=False)
    train, validation = _stores[case.max_length]
    # In random order: neighbours come from one module, and the first of them would all be of one class.
    if case.num_train is not None:
        train = train.subset(np.random.default_rng(0).permutation(len(train))[: case.num_train])
    if case.num_validation is not None:
        chosen = np.random.default_rng(0).permutation(len(validation))[: case.num_validation]
        validation = validation.subset(chosen)
    return train, validation


class Job:
    """One training run, for a system to carry out. A system calls `on_step` after each update and stops when it
    says so, or after `case.max_steps`."""

    def __init__(
        self, case: Case, on_step: Callable[[Job], bool], order: list[list[int]] | None = None
    ) -> None:
        self.case = case
        self.order = order
        """Batches of indices that all systems must use; None: the system batches as it thinks best."""
        self.train, self.validation = stores(case)
        torch.manual_seed(case.seed)
        self.model = make_model(
            ModelConfig(
                vocab_size=self.train.vocab_size,
                num_classes=len(self.train.label_names),
                max_length=case.max_length,
                d_model=case.d_model,
                num_layers=case.num_layers,
                num_heads=case.num_heads,
                dropout=case.dropout,
            )
        )
        torch.manual_seed(case.seed + 1)  # dropout: each system draws from the same state
        self.step = 0
        self.details: dict[str, Any] = {}
        self._on_step = on_step

    def optimizer(self, *, is_fused: bool = True) -> torch.optim.Optimizer:
        case = self.case
        if case.optimizer != "adamw":
            return make_optimizer(
                self.model,
                case.optimizer,
                learning_rate=case.learning_rate,
                weight_decay=case.weight_decay,
                embedding_lr_ratio=case.embedding_lr_ratio,
            )
        groups = [
            {
                "params": group["params"],
                "weight_decay": group["weight_decay"],
                "lr": case.learning_rate * group["lr_scale"],
            }
            for group in parameter_groups(
                self.model, case.weight_decay, embedding_lr_ratio=case.embedding_lr_ratio
            )
        ]
        return torch.optim.AdamW(groups, lr=case.learning_rate, fused=(case.is_fused and is_fused) or None)

    def scheduler(self, optimizer: torch.optim.Optimizer) -> Any:
        warmup_steps = round(self.case.warmup_fraction * self.case.max_steps)
        return make_schedule(
            optimizer, self.case.schedule, max_steps=self.case.max_steps, warmup_steps=warmup_steps
        )

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=self.case.label_smoothing)

    def on_step(self) -> bool:
        """After an update; True when the system must stop now."""
        self.step += 1
        return self._on_step(self) or self.step >= self.case.max_steps

    def macro_f1(self) -> float:
        """On the validation split, by the one function that judges all systems, in the run's own precision."""
        precision = resolve_precision(self.case.precision, torch.device("cpu"))
        return evaluate(self.model, evaluation_batches(self.validation, 128), precision=precision)["macro_f1"]


class Clock:
    """Seconds since it was made, less those in `pause`: of the wall's clock and of this process's own, which other
    programs on the machine disturb less (loader processes are not in it)."""

    def __init__(self) -> None:
        self.start = self._now()

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def seconds(self) -> tuple[float, float]:
        wall, own = self._now()
        return wall - self.start[0], own - self.start[1]

    def pause(self, work: Callable[[], Any]) -> Any:
        """`work()` off the clock."""
        before = self.seconds()
        result = work()
        wall, own = self._now()
        self.start = wall - before[0], own - before[1]
        return result


class Texts(torch.utils.data.Dataset[dict[str, Any]]):
    """The samples as libraries like them: a dictionary each, without padding."""

    def __init__(self, samples: TokenStore) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> dict[str, Any]:
        ids, label = self.samples[index]
        return {"input_ids": torch.from_numpy(ids), "labels": label}


def pad_batch(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Dynamic padding, as the PyTorch and Hugging Face guides teach it: to the longest of the batch."""
    ids = [row["input_ids"] for row in rows]
    lengths = torch.tensor([len(row) for row in ids])
    input_ids = nn.utils.rnn.pad_sequence(ids, batch_first=True)
    return {
        "input_ids": input_ids,
        "attention_mask": torch.arange(input_ids.shape[1]) < lengths[:, None],
        "labels": torch.tensor([row["labels"] for row in rows]),
    }
