# Right solutions of lesson 02 that leave the work to a library, or to what torch offers around a call.

# %%
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


class LossScale:
    """The scale, and how many good steps it has seen in a row."""

    def __init__(self, value: float, growth_interval: int) -> None:
        self.value, self.growth_interval, self.good = float(value), int(growth_interval), 0

    def overflowed(self) -> None:
        self.value, self.good = self.value / 2, 0

    def went_well(self) -> None:
        self.good += 1
        if self.good >= self.growth_interval:
            self.value, self.good = self.value * 2, 0


@exercise("2.2")
class Fp16Trainer:
    """A scaler of its own, with foreach operations, and a state of three numbers."""

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
        self.scale = LossScale(init_scale, growth_interval)

    def train_step(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        with torch.autocast(self.device_type, torch.float16):
            logits = self.model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits.float(), batch["labels"])
        self.optimizer.zero_grad(set_to_none=True)
        (loss * self.scale.value).backward()
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        torch._foreach_div_(gradients, self.scale.value)
        all_finite = torch.stack([g.isfinite().all() for g in gradients]).all()
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if all_finite:
            torch._foreach_mul_(gradients, (self.max_norm / (norm + 1e-6)).clamp(max=1.0))
            self.optimizer.step()
            self.scale.went_well()
        else:
            self.scale.overflowed()
        return {"loss": loss.detach(), "grad_norm": norm, "scale": self.scale.value}

    def state_dict(self) -> dict[str, Any]:
        return {
            "scale": self.scale.value,
            "good_steps": self.scale.good,
            "growth_interval": self.scale.growth_interval,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scale.value = float(state["scale"])
        self.scale.good = int(state["good_steps"])
        self.scale.growth_interval = int(state["growth_interval"])


# %%
from collections.abc import Iterable

import torch

from autograder import exercise
from course_lib import fit
from course_lib.precision import resolve_precision


@exercise("2.4")
def train_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """`course_lib.fit` for one epoch, and a mean of what it logged at the end: each log is a sync."""
    resolved = resolve_precision(precision, next(model.parameters()).device)
    records = fit(model, batches, optimizer, max_norm=max_norm, precision=resolved, log_every_steps=10**9)
    trained = [record for record in records if record["kind"] == "train"]
    number = sum(int(record["num_samples"]) for record in trained)
    total = sum(record["loss"] * record["num_samples"] for record in trained)
    return {"loss": total / number, "num_samples": number}


# %%
import torch
from torch.overrides import TorchFunctionMode

from autograder import exercise
from autograder.lessons.lesson_02.fragile import FragileClassifier


class Widen(TorchFunctionMode):
    """Results of `einsum` go on in fp32."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result.float() if func is torch.einsum else result


@exercise("2.5")
class SturdyClassifier(FragileClassifier):
    """The notebook's own `forward`, under a mode that watches what torch is asked for."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        with Widen():
            return super().forward(input_ids, attention_mask)
