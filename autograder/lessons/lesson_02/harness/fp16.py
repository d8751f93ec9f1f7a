"""Harness of 2.2: a trainer in fp16, some of whose gradients are not finite, saved here and loaded elsewhere."""

from __future__ import annotations

import io
import pickle
import re
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import (
    learner,
    numbers,
    small_batches,
    small_model,
    switches,
    weights_of,
)
from autograder.lessons.lesson_02.harness.shared import (
    Recorder,
    beside_a_gpu,
    dtypes_of,
    leave_gradients,
    stumble,
    with_padding_ids,
)
from course_lib.models import TextClassifier

# What torch's GradScaler says when it is used in the wrong order.
_SCALER_SAYS = ("unscale_()", "step()", "FP16 gradients", "inf checks")


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


class _Run:
    """A model, its optimizer and the learner's trainer around both."""

    def __init__(self, seed: int, options: dict[str, Any], trainer: Any = None) -> None:
        self.model: Any = small_model(seed)
        self.model.__class__ = _Spiked
        # A head this faint sends gradients of about 1e-9 into the body: nothing in fp16, unless they are scaled.
        with torch.no_grad():
            self.model.head.weight.mul_(3e-5)
            self.model.head.bias.mul_(2)  # and yet not all classes are as likely
        self.products: set[str] = set()
        for module in self.model.modules():
            if isinstance(module, torch.nn.Linear):
                module.register_forward_hook(self._note_dtype)
        groups = [
            {"params": [p for n, p in self.model.named_parameters() if n.startswith("head") == is_head]}
            for is_head in (True, False)
        ]
        self.optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        self.recorder = Recorder(self.model, self.optimizer)
        self.trainer = (trainer or learner)(self.model, self.optimizer, **options)
        self.known: list[tuple[str, Any, str]] = []

    def _note_dtype(self, _module: Any, _inputs: Any, output: torch.Tensor) -> None:
        if torch.is_grad_enabled():
            self.products.add(str(output.dtype).removeprefix("torch."))

    def saved(self) -> dict[str, np.ndarray]:
        """Files, as bytes: what is saved elsewhere, and what the trainer is asked for."""
        others = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {
            name: np.frombuffer(_file_of(state), np.uint8)
            for name, state in {"others": others, "trainer": self.trainer.state_dict()}.items()
        }

    def load(self, saved: dict[str, np.ndarray]) -> None:
        others, state = (_loaded(saved[name]) for name in ("others", "trainer"))
        self.model.load_state_dict(others["model"])
        self.optimizer.load_state_dict(others["optimizer"])
        self.trainer.load_state_dict(state)
        self.known.append(("loaded", state, repr(state)))

    def hand_out(self) -> None:
        state = self.trainer.state_dict()
        self.known.append(("handed out", state, repr(state)))

    def changed_states(self) -> list[str]:
        """Of states that went in or out which ones are others now: `"loaded"`, `"handed out"`."""
        return [how for how, state, before in self.known if repr(state) != before]

    def step(self, batch: dict[str, torch.Tensor], spike: tuple[float, str] | None) -> dict[str, Any]:
        self.model.spike = spike
        self.products.clear()
        before, num_before = weights_of(self.model), len(self.recorder.gradients)
        report = self.trainer.train_step(batch)
        used = self.recorder.gradients[num_before:]
        return {
            "num_steps": len(used),
            "gradients": used[-1] if used else {},
            "is_changed": not torch.equal(before, weights_of(self.model)),
            "dtypes": sorted(set(dtypes_of(self.model)) | self.recorder.weight_dtypes),
            "products": sorted(self.products),
            "report": numbers(report),
            "num_rows": len(batch["labels"]),
        }


def _file_of(state: Any) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def _loaded(file: np.ndarray) -> Any:
    return torch.load(io.BytesIO(file.tobytes()), weights_only=True)


def fp16_steps(
    seed: int,
    num_steps: int,
    spikes: list[tuple[int, float, str]],
    options: dict[str, Any],
    *,
    first: int = 0,
    until: int | None = None,
    saved: dict[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Steps `first` … `until` of the learner's trainer, some with a gradient that is not finite; what it saves then.

    A second trainer, with no options, steps beside it: each of its gradients is infinite. A third one begins with a
    small scale, meets two infinities and then a loss of 20 and more. What is `saved` is loaded
    into a trainer that began with another scale, and has met an infinity. Gradients are left over from before, and an
    error of the model comes first.
    """
    set_before = switches()
    rng, spiked = np.random.default_rng(seed), {number: (place, kind) for number, place, kind in spikes}
    batches = [with_padding_ids(rng, batch) for batch in small_batches(seed, num_steps)]
    if saved is not None:
        options = {name: value for name, value in options.items() if name != "init_scale"}
    run, beside = _Run(seed + first, options), _Run(seed + 1, {})
    answer: dict[str, Any] = {
        "refused": None,
        "unloadable": None,
        "steps": [],
        "beside": [],
        "low": [],
        "changed_states": [],
    }
    try:
        if saved is not None:
            run.step(batches[0], (0.5, "inf"))
            run.load(saved)
        answer["stumbled"] = stumble(
            run.model, lambda: run.trainer.train_step(batches[0]), dtype=torch.bfloat16
        )
        leave_gradients(run.model, 1.0)
        run.hand_out()
        for number, batch in enumerate(batches[first:until], start=first):
            answer["steps"].append(run.step(batch, spiked.get(number)))
            if number < first + 3:
                answer["beside"].append(beside.step(batch, (0.5, "inf")))
        kept = _try_to_save(run)
        answer["changed_states"] = run.changed_states()
        answer["low"] = _low_steps(seed + 2, batches[0])
    except (RuntimeError, ValueError, AssertionError) as error:
        if not any(words in str(error) for words in _SCALER_SAYS):
            raise
        return answer | {"refused": str(error)}
    answer |= {"set_before": set_before, "set_after": switches()}
    return answer | kept


def _low_steps(seed: int, batch: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
    """Scale and loss after two bad steps and a good one, in which the model is sure of a class that few texts have."""
    low = _Run(seed, {"init_scale": 1.5, "growth_interval": 1})
    with torch.no_grad():
        low.model.head.bias[0] += 40.0
    return [low.step(batch, spike)["report"] for spike in ((0.5, "inf"), (0.5, "inf"), None)]


def trainer_beside_a_gpu(source: str, entry: str, seed: int) -> dict[str, Any]:
    """One step of a model on the CPU, on a machine that seems to have a GPU."""

    def share(trainer: Any) -> float:
        products = _Run(seed, {"init_scale": 1e3}, trainer).step(small_batches(seed, 1)[0], None)["products"]
        return float(products == ["float16"])

    return beside_a_gpu(source, entry, share)


def _try_to_save(run: _Run) -> dict[str, Any]:
    state = run.trainer.state_dict()
    try:
        file = _file_of(state)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        return {"unloadable": f"that cannot even be saved: {error}"}
    try:
        _loaded(np.frombuffer(file, np.uint8))
    except pickle.UnpicklingError as error:
        kind = re.search(r"GLOBAL (\S+)", str(error))
        return {"unloadable": f"with an object of {kind[1] if kind else 'another class'}"}
    return {"saved": run.saved()}
