"""A training that begins to learn by heart, of 4.4."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

_BROKEN = (0, 4)  # validations of the run that gets better to its end
_CRAWLS_AT, _CRAWL = 120, 1e-3  # that one, from this step on, at so much of its rate: most loops see it
_BROKEN_DOWNHILL = (2,)  # of the one that only gets worse: what comes after it is no best
_ROWS, _VALIDATED = 64, 300


class _Centred(torch.nn.Module):
    """Takes the mean of the inputs so far away from them: buffers that a validation reads, as those of a BatchNorm."""

    mean: torch.Tensor
    num_seen: torch.Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("num_seen", torch.tensor(0))
        self.momentum = 5e-3

    def seen(self, inputs: np.ndarray) -> np.ndarray:
        """What a training step makes of these inputs."""
        self.num_seen.add_(len(inputs))
        mean = self.mean.numpy()  # the same memory
        mean += self.momentum * (inputs.mean(axis=0) - mean)
        centred: np.ndarray = inputs - mean.astype(np.float32)
        return centred

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs - self.mean.float()


Samples = tuple[torch.Tensor, torch.Tensor]


def new_model() -> torch.nn.Sequential:
    """What is trained, with first weights that torch draws."""
    return torch.nn.Sequential(_Centred(20), torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))


def validated(model: torch.nn.Module, held_out: Samples, rows: np.ndarray, level: float) -> dict[str, float]:
    """Loss and accuracy of the model as it is, on these rows of what was held out."""
    inputs, labels = (values[torch.from_numpy(rows)] for values in held_out)
    model.eval()
    with torch.no_grad():
        logits = model(inputs)
        accuracy = (logits.argmax(-1) == labels).float().mean()
        loss = level + float(F.cross_entropy(logits.double(), labels))
        return {"loss": loss, "accuracy": float(accuracy)}


def rows_at(seed: int, step: int, num_held_out: int, num_validated: int) -> np.ndarray:
    """The rows that a validation after this step looks at."""
    return np.random.default_rng([seed, step]).choice(num_held_out, num_validated, replace=False)


class Overfitting:
    """A training whose validation loss falls, jitters, and rises: few samples, many of them wrongly labelled.

    What it draws comes from generators of its own, so that a seed gives the same training wherever it runs and
    however often it is validated. `rate` is its learning rate: at 0.005 the best comes after some 35 steps, at 0.0012
    after 140. `is_exact`: each validation looks at the whole set, and does not jitter. `turns_at`: from this step on
    it climbs, fast, and the model falls apart: validations say NaN. One that is exact and does not turn has
    two of NaN on its way, and soon crawls: each is better by very little. With a rate below 0 it climbs from the
    beginning, slowly, and has one of NaN. `level` is added to each loss.
    """

    def __init__(
        self, seed: int, rate: float, is_exact: bool, turns_at: int, max_steps: int, level: float
    ) -> None:
        rng = np.random.default_rng(seed)
        directions = rng.normal(size=(4, 20))
        self._train, self._validation, self._test = (
            _samples(rng, directions, size, noise) for size, noise in ((200, 0.4), (800, 0.4), (4000, 0.0))
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = new_model()
        self._centred: _Centred = self.model[0]  # type: ignore[assignment]
        self._rate, self._num_averaged = rate, 0
        self._averages = [np.zeros((2, *p.shape), dtype=np.float32) for p in self.model.parameters()]
        self.num_validated = len(self._validation[1]) if is_exact else _VALIDATED
        self._rng, self._turns_at = np.random.default_rng(seed), turns_at
        # A seed of its own: who knows which rows are validated knows nothing of what is trained.
        self.rows_seed = int(np.random.default_rng([seed, 1]).integers(2**62))
        self.max_steps, self._level = max_steps, level
        self._is_crawling = is_exact and turns_at >= max_steps and rate > 0
        self.broken: tuple[int, ...] = _BROKEN if self._is_crawling else _BROKEN_DOWNHILL if rate < 0 else ()
        self._losses: list[float] = []
        self.refusal = ""
        self._validated: list[dict[str, float]] = []

    @property
    def num_steps(self) -> int:
        """Steps trained so far."""
        return len(self._losses)

    @property
    def recent_loss(self) -> float:
        """The mean training loss of the last 20 steps."""
        recent = self._losses[-20:]
        return sum(recent) / max(1, len(recent))

    @property
    def held_out(self) -> Samples:
        """What validations look at."""
        return self._validation

    def train(self, num_steps: int) -> float:
        """Train so many steps more. Returns their mean loss. Raises ValueError beyond `max_steps`."""
        if num_steps < 1 or self.num_steps + num_steps > self.max_steps:
            self.refusal = f"{self.num_steps} + {num_steps} steps: the run may have {self.max_steps}"
            raise ValueError(self.refusal)
        inputs, labels = (values.numpy() for values in self._train)
        self.model.train()
        losses = []
        for step in range(self.num_steps, self.num_steps + num_steps):
            if step == self._turns_at:
                self._rate, self._num_averaged = -0.05, 0
                self._averages = [np.zeros_like(both) for both in self._averages]  # they still go down
            if step == _CRAWLS_AT and self._is_crawling:
                self._rate *= _CRAWL
                self._centred.momentum *= _CRAWL
            rows = self._rng.integers(len(labels), size=_ROWS)
            losses.append(self._level + self._step(inputs[rows], labels[rows]))
        self._losses += losses
        return sum(losses) / len(losses)

    def _step(self, inputs: np.ndarray, labels: np.ndarray) -> float:
        """One step of Adam, by hand and by NumPy: with `backward` it would take most of the time of the check.

        Up where the rate is below 0. Returns the loss.
        """
        weights = [p.detach().numpy() for p in self.model.parameters()]  # the same memory
        centred = self._centred.seen(inputs)
        hidden = np.maximum(centred @ weights[0].T + weights[1], 0.0)
        logits = hidden @ weights[2].T + weights[3]
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=1, keepdims=True)
        chosen = np.arange(len(labels)), labels
        loss = float(np.mean(np.log(sums[:, 0]) - logits[chosen]))
        shares /= sums
        shares[chosen] -= 1.0
        shares /= len(labels)
        back = (shares @ weights[2]) * (hidden > 0.0)
        gradients = (back.T @ centred, back.sum(axis=0), shares.T @ hidden, shares.sum(axis=0))
        self._num_averaged += 1
        scales = [1.0 - beta**self._num_averaged for beta in (0.9, 0.999)]
        for weight, gradient, (mean, square) in zip(weights, gradients, self._averages, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            weight -= self._rate / scales[0] * mean / (np.sqrt(square / scales[1]) + 1e-8)
        return loss

    def validate(self) -> dict[str, float]:
        """Validate the model as it is now, on a random part of the validation set: the same at the same step.

        Returns `step`, `loss`, `accuracy`, and `train_loss` of the last 20 steps.
        """
        found = {"step": self.num_steps, **self.validated_as_at(self.num_steps)}
        found["train_loss"] = self.recent_loss
        if self.is_broken(self.num_steps):
            found["loss"] = math.nan
        self._validated.append(found)
        return dict(found)

    def is_broken(self, step: int) -> bool:
        """Whether the loss of a validation after this step is NaN; after those before it, it was asked before."""
        earlier = {found["step"] for found in self._validated if found["step"] < step}
        return step > self._turns_at or len(earlier) in self.broken

    def validated_as_at(self, step: int) -> dict[str, float]:
        """Loss and accuracy of the weights as they are, on the part of the validation set that this step sees."""
        rows = rows_at(self.rows_seed, step, len(self._validation[1]), self.num_validated)
        return validated(self.model, self._validation, rows, self._level)


def _samples(
    rng: np.random.Generator, directions: np.ndarray, size: int, noise: float
) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = rng.normal(size=(size, directions.shape[1]))
    labels = (inputs @ directions.T).argmax(1)
    wrong = rng.random(size) < noise
    labels[wrong] = rng.integers(len(directions), size=int(wrong.sum()))
    return torch.from_numpy(inputs).float(), torch.from_numpy(labels)
