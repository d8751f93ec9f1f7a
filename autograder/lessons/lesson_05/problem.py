"""A small training problem for 5.5, trained and billed in the grader's own process, where no solution can reach it.

A network of one hidden layer learns a secret teacher from few, partly mislabelled samples. The unit of its loss and
the scale of its inputs are secret too, and move the best learning rate by decades: no value that suits one problem
suits the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FULL_STEPS = 81
SPACE: dict[str, dict[str, Any]] = {
    "learning_rate": {"kind": "log", "low": 1e-4, "high": 10.0},
    "weight_decay": {"kind": "log", "low": 1e-5, "high": 1e-1},
}
GRID_SIZES = {"learning_rate": 4, "weight_decay": 3}
NUM_INPUTS, NUM_HIDDEN, NUM_CLASSES = 16, 24, 4
BATCH_SIZE, NUM_TRAIN, NUM_HELD_OUT = 32, 512, 512
MISLABELLED = 0.1

Config = dict[str, float]


def grid() -> list[Config]:
    """The 12 points, ends of the ranges among them, evenly spaced by ratio."""
    rates, decays = (
        np.geomspace(SPACE[name]["low"], SPACE[name]["high"], size).tolist()
        for name, size in GRID_SIZES.items()
    )
    return [{"learning_rate": rate, "weight_decay": decay} for rate in rates for decay in decays]


class Problem:
    """Samples of a secret teacher: some to train on, some to validate on, some to judge the winner on."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        # A loss in another unit wants a learning rate that is as many times smaller.
        self.unit = 10 ** rng.uniform(-1.5, 1.5)
        scale = 10 ** rng.uniform(-0.5, 0.5)
        inner = rng.normal(size=(NUM_INPUTS, 8)) / np.sqrt(NUM_INPUTS)
        outer = rng.normal(size=(8, NUM_CLASSES))
        self.inputs, self.labels = {}, {}
        for name, number in {
            "train": NUM_TRAIN,
            "validation": NUM_HELD_OUT,
            "test": 4 * NUM_HELD_OUT,
        }.items():
            plain = rng.normal(size=(number, NUM_INPUTS))
            labels = np.argmax(np.tanh(2 * plain @ inner) @ outer, axis=1)
            is_wrong = rng.random(number) < MISLABELLED
            self.inputs[name] = scale * plain
            self.labels[name] = np.where(is_wrong, rng.integers(NUM_CLASSES, size=number), labels)

    def losses(
        self, configs: list[Config], *, split: str, seed: int, num_steps: int = FULL_STEPS
    ) -> np.ndarray:
        """Loss of each configuration [n] after `num_steps` from fresh weights."""
        trials = Trials(self, configs, seed)
        trials.train(num_steps)
        return trials.loss(split)


class Trials:
    """Networks [n] of one problem and one seed, each with a configuration of its own, trained side by side."""

    def __init__(self, problem: Problem, configs: list[Config], seed: int) -> None:
        self.problem, num = problem, len(configs)
        self.rate, self.decay = (
            np.array([config[name] for config in configs])[:, None, None]
            for name in ("learning_rate", "weight_decay")
        )
        self.rng = np.random.default_rng(seed)
        first = self.rng.normal(size=(NUM_INPUTS, NUM_HIDDEN)) / np.sqrt(NUM_INPUTS)
        last = self.rng.normal(size=(NUM_HIDDEN, NUM_CLASSES)) / np.sqrt(NUM_HIDDEN)
        self.weights = [np.repeat(matrix[None], num, axis=0) for matrix in (first, last)]
        self.speeds = [np.zeros_like(matrix) for matrix in self.weights]
        self.order = np.empty(0, dtype=np.int64)

    def train(self, num_steps: int) -> None:
        """Go on for `num_steps`: SGD with momentum 0.9, the decay in the gradient."""
        inputs, labels = self.problem.inputs["train"], self.problem.labels["train"]
        with np.errstate(all="ignore"):  # a rate that is too high ends in infinities, as it would anywhere
            for _ in range(num_steps):
                if len(self.order) < BATCH_SIZE:
                    self.order = self.rng.permutation(NUM_TRAIN)
                rows, self.order = self.order[:BATCH_SIZE], self.order[BATCH_SIZE:]
                self._step(inputs[rows], labels[rows])

    def _step(self, inputs: np.ndarray, labels: np.ndarray) -> None:
        first, last = self.weights
        hidden = np.tanh(inputs @ first)
        errors = _probabilities(hidden @ last)
        errors[:, np.arange(len(labels)), labels] -= 1.0
        errors /= len(labels)
        back = (errors @ last.transpose(0, 2, 1)) * (1.0 - hidden**2)
        gradients = [inputs.T @ back, hidden.transpose(0, 2, 1) @ errors]
        for weights, speeds, gradient in zip(self.weights, self.speeds, gradients, strict=True):
            speeds *= 0.9
            speeds += self.problem.unit * (gradient + self.decay * weights)
            weights -= self.rate * speeds

    def loss(self, split: str) -> np.ndarray:
        """Mean cross-entropy of each network [n] on a split; NaN for one that diverged."""
        inputs, labels = self.problem.inputs[split], self.problem.labels[split]
        with np.errstate(all="ignore"):
            logits = np.tanh(inputs @ self.weights[0]) @ self.weights[1]
            shifted = logits - logits.max(axis=2, keepdims=True)
            chosen = shifted[:, np.arange(len(labels)), labels]
            losses = np.log(np.exp(shifted).sum(axis=2)) - chosen
            return np.asarray(losses.mean(axis=1))


def _probabilities(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=2, keepdims=True))
