"""The run that a loop of 4.4 gets: its training was made elsewhere, and each step is asked for there.

Nothing in this process knows more of the training than was asked for, and what was asked for is counted by the process
that has it: to copy the run, or to look behind it, tells nothing of what is ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import NotCopied
from autograder.lessons.checking.harness_storage import Served
from autograder.lessons.lesson_04.harness.overfitting import Samples, new_model, rows_at, validated

NUMBER = 0  # of what is stored: a record for each step from 0 to `max_steps`, then one for each validation
_NUM_TOLD = (
    3  # numbers ahead of the weights in a record: sum of losses, mean of the last 20, whether all is NaN
)


def state_of(model: Any) -> np.ndarray:
    """All parameters in one row, then all buffers."""
    both = (*model.parameters(), *model.buffers())
    return torch.cat([value.detach().double().flatten() for value in both]).numpy()


def put_back(model: Any, state: np.ndarray) -> None:
    """Give the model this state, as `state_of` tells it."""
    at, row = 0, torch.from_numpy(state.copy())
    with torch.no_grad():
        for value in (*model.parameters(), *model.buffers()):
            value.copy_(row[at : at + value.numel()].view_as(value))
            at += value.numel()


def handed(
    held_out: Samples, rows_seed: int, num_validated: int, max_steps: int, level: float
) -> tuple[Any, list[str], Callable[[], np.ndarray]]:
    """What a loop gets of the run; what it refused, with these words; and the weights of its model, when asked.

    A training step puts the weights of that step into the model, in place, as an optimizer does.
    """
    stored, refusals, model = Served(NUMBER), list[str](), new_model()
    trained, told, broken = 0, np.zeros(_NUM_TOLD), dict[int, bool]()

    def go_to(step: int) -> None:
        nonlocal trained, told
        record = np.frombuffer(stored.fetch(step))
        put_back(model, record[_NUM_TOLD:])
        trained, told = step, record[:_NUM_TOLD]

    go_to(0)

    class Run(NotCopied):
        why = "a copy would train beside the run, and its steps count, too. Copy `run.model.state_dict()`"

        @property
        def num_steps(self) -> int:
            """Steps trained so far."""
            return trained

        @property
        def max_steps(self) -> int:
            return max_steps

        @property
        def model(self) -> torch.nn.Module:
            return model

        @model.setter
        def model(self, other: torch.nn.Module) -> None:
            nonlocal model
            model = other  # type: ignore[assignment]

        def train(self, num_steps: int) -> float:
            """Train so many steps more. Returns their mean loss. Raises ValueError beyond `max_steps`."""
            if num_steps < 1 or trained + num_steps > max_steps:
                refusals.append(f"{trained} + {num_steps} steps: the run may have {max_steps}")
                raise ValueError(refusals[-1])
            before = told[0]
            go_to(trained + num_steps)
            model.train()
            return float(told[0] - before) / num_steps + level

        def validate(self) -> dict[str, float]:
            """Validate the model as it is now, on a random part of the validation set: the same at the same step.

            Returns `step`, `loss`, `accuracy`, and `train_loss` of the last 20 steps.
            """
            at = len(broken.keys() - {trained})
            is_broken = stored.fetch(max_steps + 1 + at) == b"\1" or bool(told[2])
            broken[trained] = is_broken
            rows = rows_at(rows_seed, trained, len(held_out[1]), num_validated)
            found = {
                "step": trained,
                **validated(model, held_out, rows, level),
                "train_loss": float(told[1]),
            }
            return found | ({"loss": math.nan} if is_broken else {})

    return Run(), refusals, lambda: state_of(model)
