"""Harness of 4.3 and 4.4: sequences of metrics, and a training that begins to learn by heart."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, numbers, weights_of


def follow(
    settings: dict[str, Any], metrics: list[dict[str, float]], first_step: int, state: str | None
) -> dict[str, Any]:
    """Tell the learner's class these metrics, until it says stop; its state goes in and comes out as JSON."""
    stopper = learner(**settings)
    if state is not None:
        stopper.load_state_dict(json.loads(state))
    answers: list[bool] = []
    for step, values in enumerate(metrics, start=first_step):
        answers.append(bool(stopper.update(dict(values), 10 * step)))
        if answers[-1]:
            break
    try:
        kept: str | None = json.dumps(stopper.state_dict())
    except (TypeError, ValueError):
        kept = None
    best, best_step = stopper.best, stopper.best_step
    return {
        "answers": answers,
        "best": None if best is None else float(best),
        "best_step": None if best_step is None else int(best_step),
        "state": kept,
    }


def follow_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [follow(**case) for case in cases]


MAX_STEPS, JUDGED_EVERY = 400, 10
_ROWS, _VALIDATED = 64, 300


class _Overfitting:
    """A training whose validation loss falls, jitters, and rises: few samples, many of them wrongly labelled.

    What it draws comes from generators of its own, so that a seed gives the same training wherever it runs and
    however often it is validated.
    """

    max_steps = MAX_STEPS

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        directions = rng.normal(size=(4, 20))
        self._train, self._validation, self._test = (
            _samples(rng, directions, size, noise) for size, noise in ((200, 0.4), (800, 0.4), (4000, 0.0))
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3, weight_decay=0.0, fused=True)
        self._seed, self._rng = seed, np.random.default_rng(seed)
        self._losses: list[float] = []
        self._validated: list[dict[str, float]] = []

    @property
    def num_steps(self) -> int:
        """Steps trained so far."""
        return len(self._losses)

    def train(self, num_steps: int) -> float:
        """Train so many steps more. Returns their mean loss. Raises ValueError beyond `max_steps`."""
        if num_steps < 1 or self.num_steps + num_steps > self.max_steps:
            raise ValueError(f"{self.num_steps} + {num_steps} steps: the run may have {self.max_steps}")
        inputs, labels = self._train
        self.model.train()
        losses = []
        for _ in range(num_steps):
            rows = torch.from_numpy(self._rng.integers(len(labels), size=_ROWS))
            loss = F.cross_entropy(self.model(inputs[rows]), labels[rows])
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()
            losses.append(float(loss.detach()))
        self._losses += losses
        return sum(losses) / len(losses)

    def validate(self) -> dict[str, float]:
        """Validate the model as it is now, on a random part of the validation set: the same at the same step.

        Returns `step`, `loss`, `accuracy`, and `train_loss` of the last 20 steps.
        """
        inputs, labels = self._validation
        rng = np.random.default_rng([self._seed, self.num_steps])
        rows = torch.from_numpy(rng.choice(len(labels), _VALIDATED, replace=False))
        self.model.eval()
        with torch.no_grad():
            inputs, labels = inputs[rows], labels[rows]
            logits = self.model(inputs)
            loss = float(F.cross_entropy(logits, labels))
            accuracy = float((logits.argmax(-1) == labels).float().mean())
        recent = self._losses[-20:]
        found = {
            "step": self.num_steps,
            "loss": loss,
            "accuracy": accuracy,
            "train_loss": sum(recent) / max(1, len(recent)),
        }
        self._validated.append(found)
        return dict(found)


def _samples(
    rng: np.random.Generator, directions: np.ndarray, size: int, noise: float
) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = rng.normal(size=(size, directions.shape[1]))
    labels = (inputs @ directions.T).argmax(1)
    wrong = rng.random(size) < noise
    labels[wrong] = rng.integers(len(directions), size=int(wrong.sum()))
    return torch.from_numpy(inputs).float(), torch.from_numpy(labels)


def _whole_loss(run: _Overfitting) -> float:
    inputs, labels = run._validation
    with torch.no_grad():
        return float(F.cross_entropy(run.model(inputs), labels))


def _test_accuracy(run: _Overfitting) -> float:
    inputs, labels = run._test
    with torch.no_grad():
        return 100.0 * float((run.model(inputs).argmax(-1) == labels).float().mean())


def stop_early(seed: int) -> dict[str, Any]:
    """The learner's loop on one run: what it took, and the weights that it left."""
    run = _Overfitting(seed)
    report = learner(run)
    return {
        "num_steps": run.num_steps,
        "validated": [found["step"] for found in run._validated],
        "weights": weights_of(run.model),
        "report": numbers(report),
    }


def judge(seed: int, validated: list[int], weights: np.ndarray) -> dict[str, Any]:
    """In a worker of ours: the same run to its end, validated at the same steps.

    Says which of these steps the weights are of, what was validated, and the test accuracies, in points, of the
    weights and of the step whose loss on the whole validation set is the lowest.
    """
    run, seen, weights_at, lowest, accuracy_at_best = _Overfitting(seed), [], -1, float("inf"), 0.0
    judged = range(JUDGED_EVERY, MAX_STEPS + 1, JUDGED_EVERY)
    for step in sorted({step for step in validated if 0 <= step <= MAX_STEPS} | set(judged)):
        if step > run.num_steps:
            run.train(step - run.num_steps)
        if step in judged and (loss := _whole_loss(run)) < lowest:
            lowest, accuracy_at_best = loss, _test_accuracy(run)
        if step in validated:
            seen.append(run.validate())
            if np.array_equal(weights_of(run.model).numpy(), weights):
                weights_at = step
    torch.nn.utils.vector_to_parameters(torch.from_numpy(weights.copy()), run.model.parameters())
    return {
        "seen": seen,
        "weights_at": weights_at,
        "accuracy": _test_accuracy(run),
        "accuracy_at_best": accuracy_at_best,
        "max_steps": MAX_STEPS,
    }
