"""Harness of 4.3 and 4.4: sequences of metrics, and a training that begins to learn by heart."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autograder.lessons.checking.harness_shared import learner, numbers, weights_of


def follow_all(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell an object of the learner's class each case's validations. All objects are there at once, and take turns.

    One that says stop hears no more, but for `after_stop` at the very end. Its state goes in and comes out as JSON;
    "changed" says whether what went in or came out is another state at the very end.
    """
    stoppers = [learner(**case["settings"]) for case in cases]
    given = [case["state"] and json.loads(case["state"]) for case in cases]
    for stopper, state in zip(stoppers, given, strict=True):
        if state is not None:
            stopper.load_state_dict(state)
    answers: list[list[bool | str]] = [[] for _ in cases]
    for number in range(max(len(case["metrics"]) for case in cases)):
        for stopper, case, said in zip(stoppers, cases, answers, strict=True):
            if number < len(case["metrics"]) and True not in said:
                said.append(_as_bool(stopper.update(dict(case["metrics"][number]), case["steps"][number])))
    found = []
    for stopper, case, state, said in zip(stoppers, cases, given, answers, strict=True):
        taken = stopper.state_dict()
        answer = {
            "answers": said,
            "best": _as_number(stopper.best),
            "best_step": _as_number(stopper.best_step),
            "state": _as_json(taken),
            "after_stop": [_as_bool(stopper.update(dict(values), 10**6)) for values in case["after_stop"]],
        }
        changed = {
            "given": case["state"] != (state and _as_json(state)),
            "taken": answer["state"] != _as_json(taken),
        }
        found.append(answer | {"changed": [name for name, is_so in changed.items() if is_so]})
    return found


def _as_bool(answer: Any) -> bool | str:
    """True or False, also NumPy's; of anything else, what it is."""
    return bool(answer) if isinstance(answer, bool | np.bool_) else type(answer).__name__


def _as_number(value: Any) -> float | str | None:
    """A number or None; of anything else, what it is."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return type(value).__name__


def _as_json(state: Any) -> str | None:
    try:
        return json.dumps(state)
    except (TypeError, ValueError):
        return None


MAX_STEPS, JUDGED_EVERY, JUDGED_UNTIL = 400, 10, 200
_BROKEN = (0, 4)  # validations of the run that gets better to its end
_ROWS, _VALIDATED = 64, 300


class _Overfitting:
    """A training whose validation loss falls, jitters, and rises: few samples, many of them wrongly labelled.

    What it draws comes from generators of its own, so that a seed gives the same training wherever it runs and
    however often it is validated. `rate` is its learning rate: at 0.005 the best comes after some 35 steps, at 0.0012
    after 140. `is_exact`: each validation looks at the whole set, and does not jitter. `turns_at`: from this step on
    it climbs, fast, and the model falls apart: validations say NaN. One that is exact and does not turn has
    two of NaN on its way.
    """

    max_steps = MAX_STEPS

    def __init__(self, seed: int, rate: float, is_exact: bool, turns_at: int) -> None:
        rng = np.random.default_rng(seed)
        directions = rng.normal(size=(4, 20))
        self._train, self._validation, self._test = (
            _samples(rng, directions, size, noise) for size, noise in ((200, 0.4), (800, 0.4), (4000, 0.0))
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate, weight_decay=0.0, fused=True)
        self._num_validated = len(self._validation[1]) if is_exact else _VALIDATED
        self._seed, self._rng, self._turns_at = seed, np.random.default_rng(seed), turns_at
        self._broken = _BROKEN if is_exact and turns_at >= MAX_STEPS else ()
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
        for step in range(self.num_steps, self.num_steps + num_steps):
            if step == self._turns_at:
                self._optimizer.state.clear()  # its averages still go down
                self._optimizer.param_groups[0].update(maximize=True, lr=0.05)
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
        found = {"step": self.num_steps, **self.validated_as_at(self.num_steps)}
        recent = self._losses[-20:]
        found["train_loss"] = sum(recent) / max(1, len(recent))
        if self.is_broken(self.num_steps):
            found["loss"] = math.nan
        self._validated.append(found)
        return dict(found)

    def is_broken(self, step: int) -> bool:
        """Whether the loss of a validation after this step is NaN; after those before it, it was asked before."""
        earlier = {found["step"] for found in self._validated if found["step"] < step}
        return step > self._turns_at or len(earlier) in self._broken

    def validated_as_at(self, step: int) -> dict[str, float]:
        """Loss and accuracy of the weights as they are, on the part of the validation set that this step sees."""
        inputs, labels = self._validation
        rng = np.random.default_rng([self._seed, step])
        rows = torch.from_numpy(rng.choice(len(labels), self._num_validated, replace=False))
        self.model.eval()
        with torch.no_grad():
            inputs, labels = inputs[rows], labels[rows]
            logits = self.model(inputs)
            accuracy = (logits.argmax(-1) == labels).float().mean()
            return {"loss": float(F.cross_entropy(logits, labels)), "accuracy": float(accuracy)}


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


def stop_early(seed: int, rate: float, is_exact: bool, turns_at: int) -> dict[str, Any]:
    """The learner's loop on one run: what it took, and the weights that it left."""
    run = _Overfitting(seed, rate, is_exact, turns_at)
    report = learner(run)
    return {
        "num_steps": run.num_steps,
        "validated": [found["step"] for found in run._validated],
        "weights": weights_of(run.model),
        "report": numbers(report) if isinstance(report, dict) else {},
    }


def judge(
    seed: int,
    rate: float,
    is_exact: bool,
    turns_at: int,
    validated: list[int],
    num_steps: int,
    weights: np.ndarray,
) -> dict[str, Any]:
    """In a worker of ours: the same run, validated at the same steps, and beyond them.

    Says after which of these steps, or of all that were trained, the weights were such, or nearly; what was
    validated; what a validation after the last step says of the weights; and the test accuracies, in points, of the
    weights and of the step whose loss on the whole validation set is the lowest, where validations jitter.
    """
    run, seen = _Overfitting(seed, rate, is_exact, turns_at), []
    weights_at, nearly_at, lowest, accuracy_at_best = -1, -1, float("inf"), 0.0
    judged = range(JUDGED_EVERY, 0 if is_exact else JUDGED_UNTIL + 1, JUDGED_EVERY)
    for step in sorted({step for step in (*validated, num_steps) if 0 <= step <= MAX_STEPS} | set(judged)):
        if step > run.num_steps:
            run.train(step - run.num_steps)
        if step in judged and (loss := _whole_loss(run)) < lowest:
            lowest, accuracy_at_best = loss, _test_accuracy(run)
        if step in validated:
            seen.append(run.validate())
        if step in (*validated, num_steps):
            now = weights_of(run.model).numpy()
            if np.allclose(now, weights, rtol=0.01, atol=1e-6):
                nearly_at = step
            if np.array_equal(now, weights):
                weights_at = step
    torch.nn.utils.vector_to_parameters(torch.from_numpy(weights.copy()), run.model.parameters())
    return {
        "seen": seen,
        "weights_at": weights_at,
        "nearly_at": nearly_at,
        "again": math.nan if run.is_broken(num_steps) else run.validated_as_at(num_steps)["loss"],
        "accuracy": _test_accuracy(run),
        "accuracy_at_best": accuracy_at_best,
        "max_steps": MAX_STEPS,
    }
