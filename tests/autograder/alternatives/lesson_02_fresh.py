# Right solutions of lesson 02 as people wrote them who had seen its notebook alone.

# %%
from collections.abc import Callable
from typing import Any

from autograder import exercise

FULL, BF16, FP16 = "32-true", "bf16-mixed", "16-mixed"
NAMES = (FULL, BF16, FP16)
MIN_GAIN = 1.15


def once(function):
    kept = []

    def ask():
        if not kept:
            kept.append(function())
        return kept[0]

    return ask


# (requested, type of the device, bf16 units, gain as a function) -> whether this row applies; precision; why
RULES = [
    (lambda r, d, u, g: r in NAMES, None, "{requested} was requested by name, so {device} trains in it."),
    (lambda r, d, u, g: d == "cuda" and u, BF16, "{device} has bf16 units."),
    (lambda r, d, u, g: d == "cuda", FP16, "{device} has no bf16 units, but GPUs compute in fp16."),
    (lambda r, d, u, g: d != "cpu", FULL, "Nobody has tried 16 bits on {device}, a device of type {kind}."),
    (lambda r, d, u, g: not u, FULL, "{device} would emulate bf16, which is slower."),
    (lambda r, d, u, g: g() >= MIN_GAIN, BF16, "{device} has bf16 units, and a layer gains {gain:.2f}x."),
    (lambda r, d, u, g: True, FULL, "{device} has bf16 units, but a layer gains only {gain:.2f}x."),
]


@exercise("2.1")
def resolve_precision(
    requested: str, facts: dict[str, Any], measure_gain: Callable[[], float]
) -> dict[str, Any]:
    """A table of rules, walked in order; the gain is a function that measures when it is first asked."""
    if requested != "auto" and requested not in NAMES:
        raise ValueError(f"unknown precision {requested!r}: expected 'auto' or one of {', '.join(NAMES)}")
    gain = once(measure_gain)
    kind, device, units = facts["device_type"], facts["device_name"], facts["bf16_units"]
    _, outcome, sentence = next(row for row in RULES if row[0](requested, kind, units, gain))
    values = {"requested": requested, "device": device, "kind": kind}
    if "{gain" in sentence:
        values["gain"] = gain()
    precision = outcome or requested
    return {
        "precision": precision,
        "needs_scaler": precision == FP16,
        "reason": sentence.format(**values),
    }


# %%
import contextlib
from typing import Any

import torch

from autograder import exercise


def mean_cross_entropy(logits, labels):
    logits = logits.float()
    right = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
    return (torch.logsumexp(logits, dim=1) - right).mean()


@exercise("2.2")
class Fp16Trainer:
    """A context manager does the work when it is left; the norm is in double, the state in tensors."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        max_norm: float = 1.0,
        init_scale: float = 2.0**16,
        growth_interval: int = 2000,
    ) -> None:
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.device_type = next(model.parameters()).device.type
        self.scaler = torch.amp.GradScaler(
            self.device_type, init_scale=init_scale, growth_interval=growth_interval
        )

    @contextlib.contextmanager
    def _update(self):
        """Takes a dict with the loss in it, and fills in the rest."""
        self.optimizer.zero_grad(set_to_none=True)
        report = {}
        yield report
        self.scaler.scale(report["loss"]).backward()
        self.scaler.unscale_(self.optimizer)
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = torch.sqrt(sum(g.double().square().sum() for g in gradients))
        factor = torch.clamp(self.max_norm / (norm + 1e-6), max=1.0).float()
        for gradient in gradients:
            gradient.mul_(factor)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        report.update(loss=report["loss"].detach(), grad_norm=norm.item(), scale=self.scaler.get_scale())

    def train_step(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        with self._update() as report, torch.autocast(self.device_type, torch.float16):
            logits = self.model(batch["input_ids"], batch["attention_mask"])
            report["loss"] = mean_cross_entropy(logits, batch["labels"])
        return report

    def state_dict(self) -> dict[str, Any]:
        # float64 holds each of these numbers exactly
        state = self.scaler.state_dict()
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        counts = {"growth_interval", "_growth_tracker"}
        self.scaler.load_state_dict(
            {name: (int if name in counts else float)(value.item()) for name, value in state.items()}
        )


# %%
from operator import itemgetter
from typing import Any

import torch

from autograder import exercise
from course_lib import loop, precision


@exercise("2.3")
def mixed_step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> dict[str, Any]:
    """The step of `course_lib`, with the precision resolved by name."""
    device = next(model.parameters()).device
    bf16 = precision.resolve_precision("bf16-mixed", device)
    result = loop.train_step(model, batch, optimizer, max_norm=max_norm, precision=bf16)
    names = ("loss", "grad_norm")
    return dict(zip(names, itemgetter(*names)(result), strict=True))


# %%
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from autograder import exercise


class Closure:
    """What `optimizer.step` calls: gradients of the batch in `self.batch`, and the sums of the report."""

    def __init__(self, model, optimizer, autocast, max_norm):
        self.model, self.optimizer, self.max_norm = model, optimizer, max_norm
        self.forward = autocast(self._forward)  # autocast is a decorator, too
        self.batch, self.loss_sum, self.num_samples = None, 0.0, 0

    def _forward(self):
        logits = self.model(self.batch["input_ids"], self.batch["attention_mask"])
        return F.cross_entropy(logits.float(), self.batch["labels"])

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        rows = self.batch["input_ids"].size(0)
        self.loss_sum = self.loss_sum + rows * loss.detach()
        self.num_samples += rows
        return loss


@exercise("2.4")
def train_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """A closure that is an object: the loop assigns each batch to its attribute."""
    is_mixed = {"32-true": False, "bf16-mixed": True}[precision]
    device_type = next(model.parameters()).device.type
    autocast = torch.autocast(device_type, torch.bfloat16, enabled=is_mixed)
    closure = Closure(model, optimizer, autocast, max_norm)
    model.train()
    for closure.batch in batches:
        optimizer.step(closure)
    mean = float(closure.loss_sum) / closure.num_samples if closure.num_samples else float("nan")
    return {"loss": mean, "num_samples": closure.num_samples}


# %%
import torch

from autograder import exercise
from autograder.lessons.lesson_02.fragile import FragileClassifier


class Wide(torch.Tensor):
    """What `einsum` makes of it is fp32, and a plain tensor again."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result.as_subclass(torch.Tensor).float() if func is torch.einsum else result


class LinearToWide(torch.nn.Linear):
    """The product in whatever autocast wants."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().forward(inputs).as_subclass(Wide)


@exercise("2.5")
class SturdyClassifier(FragileClassifier):
    """The notebook's own `forward`; the wide layer hands on tensors that widen what is summed of them."""

    def __init__(self, vocab_size: int, num_classes: int, d_model: int = 32) -> None:
        super().__init__(vocab_size, num_classes, d_model)
        self.hidden.__class__ = LinearToWide
