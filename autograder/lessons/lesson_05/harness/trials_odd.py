"""Harness of 5.2: searches of 0 steps, and those in which something fails."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_05.harness.trials import _losses, _Task

_MODEL, _OPTIMIZER, _STREAM, _BATCH, _FORWARD, _BACKWARD, _STEP, _VALIDATION, _JUDGING = (
    "make_model",
    "make_optimizer",
    "the next training batch",
    "a batch without labels",
    "the model in training",
    "the backward pass",
    "the optimizer's step",
    "validation_batches",
    "the model when it is judged",
)
_PLACES = (_MODEL, _OPTIMIZER, _STREAM, _FORWARD, _BACKWARD, _STEP, _VALIDATION, _JUDGING)


class SomeError(
    torch.OutOfMemoryError,
    NotImplementedError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OSError,
    FloatingPointError,
    OverflowError,
    ZeroDivisionError,
    MemoryError,
    AssertionError,
):
    """Of many kinds at once: whichever of them is caught, it is this one."""


class _FailingTask(_Task):
    """The second trial fails; up to there all is well."""

    def __init__(self, seed: int, where: str, error: type[BaseException]) -> None:
        super().__init__(seed)
        self._where, self._error, self._num_streams = where, error, 0

    def _fail(self, where: str, *, at: int) -> None:
        if where == self._where and len(self._trials) >= at:
            raise self._error("the check pretends")

    def make_model(self, config: dict[str, Any]) -> Any:
        self._fail(_MODEL, at=1)
        model = super().make_model(config)
        model.register_forward_pre_hook(
            lambda model, _: self._fail(_FORWARD if model.training else _JUDGING, at=2)
        )
        model.register_forward_hook(self._fail_backward)
        return model

    def _fail_backward(self, model: Any, _: Any, logits: torch.Tensor) -> None:
        if logits.requires_grad:
            logits.register_hook(lambda _: self._fail(_BACKWARD, at=2))

    def make_optimizer(self, model: Any, config: dict[str, Any]) -> Any:
        self._fail(_OPTIMIZER, at=2)
        optimizer = super().make_optimizer(model, config)
        optimizer.register_step_pre_hook(lambda *_: self._fail(_STEP, at=2))
        return optimizer

    def train_batches(self, seed: int) -> Iterator[dict[str, torch.Tensor]]:
        self._num_streams += 1  # the batches of a trial may be read before its model is made
        is_second = self._num_streams >= 2
        for number, batch in enumerate(super().train_batches(seed)):
            if number and is_second:
                self._fail(_STREAM, at=0)
            if number and is_second and self._where == _BATCH:
                del batch["labels"]
            yield batch

    def validation_batches(self) -> list[dict[str, torch.Tensor]]:
        self._fail(_VALIDATION, at=0)
        return super().validation_batches()


def run_failing(
    seed: int, configs: list[dict[str, Any]], seeds: list[int], num_steps: int
) -> list[dict[str, Any]]:
    """Of searches with an error in each place: what error, and what the caller got. Ctrl-C must stay Ctrl-C."""
    found = []
    for where, error in [
        *((where, SomeError) for where in _PLACES),
        (_BATCH, KeyError),
        (_FORWARD, KeyboardInterrupt),
    ]:
        said, is_heard = "a table, as if nothing had happened", False
        try:
            learner(_FailingTask(seed, where, error), [dict(c) for c in configs], list(seeds), num_steps)
        except KeyboardInterrupt:
            said, is_heard = "KeyboardInterrupt", error is KeyboardInterrupt
        except BaseException as caught:
            said, is_heard = type(caught).__name__, error is not KeyboardInterrupt
        found.append({"where": where, "error": error.__name__, "said": said, "is_heard": is_heard})
    return found


def run_in_company(seed: int, configs: list[dict[str, Any]], seeds: list[int], num_steps: int) -> list[float]:
    """The loss of the last configuration at the last seed: after all others, and alone, from another state of torch;
    and beside the others that of the second one, which is the same configuration, and that of the first seed, which is
    the same seed."""
    losses, equal = [], [math.nan]
    for number, first in enumerate((0, -1)):
        torch.manual_seed(seed + number)
        table = np.asarray(
            learner(_Task(seed), [dict(c) for c in configs[first:]], list(seeds[first:]), num_steps),
            dtype=np.float64,
        )
        losses.append(float(table[-1, -1]))
        equal = equal if number else [float(table[1, -1]), float(table[-1, 0])]
    return [*losses, *equal]


def run_untrained(seed: int, configs: list[dict[str, Any]], seeds: list[int]) -> dict[str, Any]:
    """A search of 0 steps: what was trained all the same, the losses, and those of the models that were made."""
    task = _Task(seed)
    table = learner(task, [dict(c) for c in configs], list(seeds), 0)
    losses = [np.array(_losses(trial.model, task._splits["validation"])) for trial in task._trials]
    return {
        "num_steps": sum(trial.num_steps for trial in task._trials),
        "losses": np.asarray(table, dtype=np.float64).ravel().tolist(),
        "right": [float(one[:, 0].sum() / one[:, 1].sum()) for one in losses],
    }
