"""Harness of 4.4: loops that end a training which begins to learn by heart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, numbers
from autograder.lessons.lesson_04.harness.overfitting import Overfitting
from autograder.lessons.lesson_04.harness.stored_run import handed, put_back, state_of

JUDGED_EVERY, JUDGED_UNTIL = 10, 0.24  # steps, the last over the rate: the lowest comes at some 0.17


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
    held_out: list[np.ndarray], rows_seed: int, num_validated: int, max_steps: int, level: float
) -> dict[str, Any]:
    """The learner's loop on the run that is stored: the weights that it left. What it took is asked of the storage."""
    inputs, labels = map(torch.from_numpy, held_out)
    run, refusals, weights = handed((inputs, labels), rows_seed, num_validated, max_steps, level)
    try:
        report = learner(run)
    except ValueError as error:
        if str(error) not in refusals:
            raise
        return {"refusal": str(error)}
    return {
        "refusal": "",
        "state": weights(),
        "report": numbers(report) if isinstance(report, dict) else {},
    }


def recorded(
    seed: int, rate: float, is_exact: bool, turns_at: int, max_steps: int, level: float
) -> dict[str, Any]:
    """In a worker of ours: a whole run, as `handed` reads it step by step, and what its validations look at."""
    run, losses, states = Overfitting(seed, rate, is_exact, turns_at, max_steps, level), [0.0], []
    found = []
    for step in range(max_steps + 1):
        if step:
            losses.append(losses[-1] + run.train(1) - level)
        states.append(state_of(run.model))
        found.append([losses[-1], run.recent_loss, float(step > turns_at)])
    return {
        "records": np.concatenate([np.array(found), np.array(states)], axis=1),
        "broken": list(run.broken),
        "held_out": [values.numpy() for values in run.held_out],
        "rows_seed": run.rows_seed,
        "num_validated": run.num_validated,
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
            now = state_of(run.model)
            fits = {
                "weights_at": np.array_equal(now, state),
                "parameters_at": np.array_equal(now[:num_weights], state[:num_weights]),
                "nearly_at": np.allclose(now, state, rtol=0.01, atol=1e-6),
            }
            found_at |= {name: step for name, is_so in fits.items() if is_so}
    put_back(run.model, state)
    return {
        "seen": seen,
        **found_at,
        "again": math.nan if run.is_broken(num_steps) else run.validated_as_at(num_steps)["loss"],
        "accuracy": _test_accuracy(run),
        "accuracy_at_best": accuracy_at_best,
    }
