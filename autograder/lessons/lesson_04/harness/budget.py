"""Harness of 4.4: loops that end a training which begins to learn by heart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_counting import see
from autograder.lessons.checking.harness_shared import NotCopied, learner, numbers
from autograder.lessons.lesson_04.harness.overfitting import Overfitting

JUDGED_EVERY, JUDGED_UNTIL = 10, 0.24  # steps, the last over the rate: the lowest comes at some 0.17


def _handed(run: Overfitting) -> Any:
    """What a loop gets of a run. Its steps and validations are told as they happen, and all that they need stands here,
    where no attribute leads: what could be copied would train, and tell what is ahead, uncounted."""

    class Run(NotCopied):
        why = "a copy would train beside the run, and its steps count, too. Copy `run.model.state_dict()`"

        @property
        def num_steps(self) -> int:
            """Steps trained so far."""
            return run.num_steps

        @property
        def max_steps(self) -> int:
            return run.max_steps

        @property
        def model(self) -> torch.nn.Module:
            return run.model

        @model.setter
        def model(self, model: torch.nn.Module) -> None:
            run.model = model

        def train(self, num_steps: int) -> float:
            """Train so many steps more. Returns their mean loss. Raises ValueError beyond `max_steps`."""
            loss = run.train(num_steps)
            see("trained", run.num_steps)
            return loss

        def validate(self) -> dict[str, float]:
            """Validate the model as it is now, on a random part of the validation set: the same at the same step.

            Returns `step`, `loss`, `accuracy`, and `train_loss` of the last 20 steps.
            """
            see("validated", run.num_steps)
            return run.validate()

    return Run()


def _state_of(model: Any) -> np.ndarray:
    """All parameters in one row, then all buffers."""
    both = (*model.parameters(), *model.buffers())
    return torch.cat([value.detach().double().flatten() for value in both]).numpy()


def _put_back(model: Any, state: np.ndarray) -> None:
    """Give the model this state, as `_state_of` tells it."""
    at, row = 0, torch.from_numpy(state.copy())
    with torch.no_grad():
        for value in (*model.parameters(), *model.buffers()):
            value.copy_(row[at : at + value.numel()].view_as(value))
            at += value.numel()


def _whole_loss(run: Overfitting) -> float:
    inputs, labels = run._validation
    run.model.eval()
    with torch.no_grad():
        return float(F.cross_entropy(run.model(inputs), labels))


def _test_accuracy(run: Overfitting) -> float:
    inputs, labels = run._test
    run.model.eval()
    with torch.no_grad():
        return 100.0 * float((run.model(inputs).argmax(-1) == labels).float().mean())


def stop_early(
    seed: int, rate: float, is_exact: bool, turns_at: int, max_steps: int, level: float
) -> dict[str, Any]:
    """The learner's loop on one run: the weights that it left. What it took is told."""
    run = Overfitting(seed, rate, is_exact, turns_at, max_steps, level)
    try:
        report = learner(_handed(run))
    except ValueError as error:
        if str(error) != run.refusal:
            raise
        return {"refusal": run.refusal}
    return {
        "refusal": "",
        "state": _state_of(run.model),
        "report": numbers(report) if isinstance(report, dict) else {},
    }


def judge(
    seed: int,
    rate: float,
    is_exact: bool,
    turns_at: int,
    max_steps: int,
    level: float,
    validated: list[int],
    num_steps: int,
    state: np.ndarray,
) -> dict[str, Any]:
    """In a worker of ours: the same run, validated at the same steps, and beyond them.

    Says after which of these steps, or of all that were trained, the state was such, or nearly, or its parameters
    were; what was validated; what a validation after the last step says of the weights; and the test accuracies, in
    points, of the weights and of the step whose loss on the whole validation set is the lowest, where they jitter.
    """
    run, seen = Overfitting(seed, rate, is_exact, turns_at, max_steps, level), []
    found_at = {"weights_at": -1, "parameters_at": -1, "nearly_at": -1}
    lowest, accuracy_at_best = float("inf"), 0.0
    num_weights = sum(p.numel() for p in run.model.parameters())
    judged = range(JUDGED_EVERY, 0 if is_exact else int(JUDGED_UNTIL / rate) + 1, JUDGED_EVERY)
    for step in sorted({step for step in (*validated, num_steps) if 0 <= step <= max_steps} | set(judged)):
        if step > run.num_steps:
            run.train(step - run.num_steps)
        if step in judged and (loss := _whole_loss(run)) < lowest:
            lowest, accuracy_at_best = loss, _test_accuracy(run)
        if step in validated:
            seen.append(run.validate())
        if step in (*validated, num_steps):
            now = _state_of(run.model)
            fits = {
                "weights_at": np.array_equal(now, state),
                "parameters_at": np.array_equal(now[:num_weights], state[:num_weights]),
                "nearly_at": np.allclose(now, state, rtol=0.01, atol=1e-6),
            }
            found_at |= {name: step for name, is_so in fits.items() if is_so}
    _put_back(run.model, state)
    return {
        "seen": seen,
        **found_at,
        "again": math.nan if run.is_broken(num_steps) else run.validated_as_at(num_steps)["loss"],
        "accuracy": _test_accuracy(run),
        "accuracy_at_best": accuracy_at_best,
    }
