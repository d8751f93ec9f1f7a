"""Harness of 2.2: a trainer in fp16 with a model some of whose gradients are not finite."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_counting import looking_on
from autograder.lessons.checking.harness_shared import (
    learner,
    numbers,
    small_model,
    weights_of,
)
from autograder.lessons.lesson_02.harness.handed import Watched, kinds_of
from autograder.lessons.lesson_02.harness.shared import (
    Recorder,
    dtypes_of,
)
from course_lib.models import TextClassifier


class _Spiked(TextClassifier):
    """Its loss is finite; the gradient of one weight is not, while `spike` says which: (place, kind).

    With the kind "loss" the loss is NaN, and with it every gradient.

    It comes out of the mathematics, so that it reaches whatever a solution differentiates with.
    """

    spike: tuple[float, str] | None = None

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits = super().forward(input_ids, attention_mask)
        if self.spike is None:
            return logits
        place, kind = self.spike
        if kind == "loss":
            return logits * float("nan")
        parameters = list(self.parameters())
        row = parameters[round(place * (len(parameters) - 1))].flatten()
        weight = row[round(place * (len(row) - 1))]
        zero = torch.sqrt(weight - weight.detach()) * {"inf": 1.0, "-inf": -1.0, "nan": 0.0}[kind]
        return logits + (zero * torch.eye(logits.shape[-1])[0]).to(logits.dtype)


class Fp16Run:
    """A model, its optimizer and the learner's trainer around both."""

    def __init__(self, seed: int, options: dict[str, Any], trainer: Any = None) -> None:
        self.model: Any = small_model(seed)
        self.model.__class__ = _Spiked
        # A head this faint sends gradients of about 1e-9 into the body: nothing in fp16, unless they are scaled.
        with torch.no_grad():
            self.model.head.weight.mul_(3e-5)
            self.model.head.bias.mul_(2)  # and yet not all classes are as likely
        self.products: set[str] = set()
        self.linears = [module for module in self.model.modules() if isinstance(module, torch.nn.Linear)]
        groups = [
            {"params": [p for n, p in self.model.named_parameters() if n.startswith("head") == is_head]}
            for is_head in (True, False)
        ]
        self.optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        self.recorder = Recorder(self.model, self.optimizer)
        self.handed = Watched(self.model, self.optimizer)
        self.reports: list[tuple[Any, str]] = []
        self.is_state_alone = self.is_state_left = True
        self.trainer = (trainer or learner)(self.model, self.optimizer, **options)
        self.known: list[tuple[str, Any, str]] = []

    def _note_dtype(self, _module: Any, _inputs: Any, _named: Any, output: torch.Tensor) -> None:
        if torch.is_grad_enabled():
            self.products.add(str(output.dtype).removeprefix("torch."))

    def saved(self) -> dict[str, np.ndarray]:
        """Files, as bytes: what is saved elsewhere, and what the trainer is asked for."""
        others = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {
            name: np.frombuffer(file_of(state), np.uint8)
            for name, state in {"others": others, "trainer": self.trainer.state_dict()}.items()
        }

    def load(self, saved: dict[str, np.ndarray]) -> None:
        others, state = (loaded(saved[name]) for name in ("others", "trainer"))
        before, handed = (weights_of(self.model), self._averages()), repr(state)
        self.trainer.load_state_dict(state)
        self.is_state_left &= repr(state) == handed
        after = weights_of(self.model), self._averages()
        self.is_state_alone = all(map(torch.equal, before, after))
        self.model.load_state_dict(others["model"])
        self.optimizer.load_state_dict(others["optimizer"])
        self.known.append(("loaded", state, repr(state)))

    def hand_out(self) -> None:
        state = self.trainer.state_dict()
        self.known.append(("handed out", state, repr(state)))

    def _averages(self) -> torch.Tensor:
        """The momentum of all parameters in one row; a number for each that has none."""
        kept = [
            self.optimizer.state[p].get("momentum_buffer")
            for p in self.model.parameters()
            if p in self.optimizer.state
        ]
        return torch.cat(
            [torch.ones(1), *(torch.ones(1) if each is None else each.flatten() for each in kept)]
        )

    def changed_reports(self) -> list[str]:
        """The numbers of reports that are others now than when the step had ended: before, and now."""
        now = [(before, repr(numbers(report))) for report, before in self.reports]
        return [f"{after}, where it was {before}" for before, after in now if before != after]

    def changed_states(self) -> list[str]:
        """Of states that went in or out which ones are others now: `"loaded"`, `"handed out"`."""
        return [how for how, state, before in self.known if repr(state) != before]

    def step(self, batch: dict[str, torch.Tensor], spike: tuple[float, str] | None) -> dict[str, Any]:
        self.model.spike = spike
        self.products.clear()
        before, num_before = weights_of(self.model), len(self.recorder.gradients)
        averages = self._averages()
        with contextlib.ExitStack() as stack:
            for linear in self.linears:
                stack.enter_context(looking_on(linear, self._note_dtype, after=True))
            report = self.handed.call(self.trainer.train_step, batch, batches=[batch])
        self.reports.append((report, repr(numbers(report))))
        used = self.recorder.gradients[num_before:]
        return {
            "gradients": used[-1] if used else {},
            "is_changed": not torch.equal(before, weights_of(self.model)),
            "is_average_changed": not torch.equal(averages, self._averages()),
            "moved": weights_of(self.model).float() - before.float(),
            "is_evaluated": self.handed.is_evaluated,
            "kinds": kinds_of(report),
            "dtypes": sorted(set(dtypes_of(self.model)) | self.recorder.weight_dtypes),
            "products": sorted(self.products),
            "report": numbers(report),
            "num_rows": len(batch["labels"]),
        }


def file_of(state: Any) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def loaded(file: np.ndarray) -> Any:
    return torch.load(io.BytesIO(file.tobytes()), weights_only=True)
