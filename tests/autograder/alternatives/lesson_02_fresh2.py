# Right solutions of lesson 02 by people who saw its notebook alone, in a second round.

# %%
from collections.abc import Callable
from functools import cached_property
from typing import Any

from autograder import exercise

FP32, BF16, FP16 = KNOWN = ("32-true", "bf16-mixed", "16-mixed")


class Case:
    """One question to the machine; lives for one call."""

    def __init__(self, requested: str, facts: dict[str, Any], measure_gain: Callable[[], float]) -> None:
        self.requested, self.kind, self.device = requested, facts["device_type"], facts["device_name"]
        self.has_units, self._measure = facts["bf16_units"], measure_gain

    @cached_property
    def gain(self) -> float:
        return self._measure()


RULES: list[tuple[Callable[[Case], bool], Callable[[Case], str], Callable[[Case], str]]] = [
    (lambda c: c.requested in KNOWN, lambda c: c.requested, lambda c: f"You asked for {c.requested}."),
    (lambda c: c.kind == "cuda" and c.has_units, lambda c: BF16, lambda c: "It has units for bf16."),
    (lambda c: c.kind == "cuda", lambda c: FP16, lambda c: "It has no units for bf16, but it has fp16."),
    (lambda c: c.kind == "cpu" and not c.has_units, lambda c: FP32, lambda c: "It would only emulate bf16."),
    (lambda c: c.kind == "cpu" and c.gain >= 1.15, lambda c: BF16, lambda c: f"It gains {c.gain:.2f}x."),
    (lambda c: c.kind == "cpu", lambda c: FP32, lambda c: f"It gains only {c.gain:.2f}x."),
    (lambda c: True, lambda c: FP32, lambda c: f"Nobody has tried 16 bits on a {c.kind}."),
]


@exercise("2.1")
def resolve_precision(
    requested: str, facts: dict[str, Any], measure_gain: Callable[[], float]
) -> dict[str, Any]:
    """Rules that are read from the top; an object of this call measures lazily, and remembers."""
    if requested != "auto" and requested not in KNOWN:
        raise ValueError(f"{requested!r} is none of {KNOWN}, nor 'auto'")
    case = Case(requested, facts, measure_gain)
    precision, why = next((what(case), why(case)) for applies, what, why in RULES if applies(case))
    return {"precision": precision, "needs_scaler": precision == FP16, "reason": f"{case.device}: {why}"}


# %%
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.2")
class Fp16Trainer:
    """Clips while the gradients are scaled, to `max_norm` times the scale; the scaler's step unscales by itself."""

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
        self.loss_of = torch.autocast(self.device_type, dtype=torch.float16)(self._loss_of)

    def _loss_of(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        logits = self.model(batch["input_ids"], batch["attention_mask"])
        return F.cross_entropy(logits.float(), batch["labels"])

    def train_step(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        self.optimizer.zero_grad()
        loss = self.loss_of(batch)
        self.scaler.scale(loss).backward()
        # Everything is `scale` times too long here, so the limit is too. An infinity stays one, or becomes NaN.
        scale = self.scaler.get_scale()
        scaled_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm * scale)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return {
            "loss": loss.item(),
            "grad_norm": scaled_norm.item() / scale,
            "scale": self.scaler.get_scale(),
        }

    def state_dict(self) -> dict[str, Any]:
        return {"scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scaler.load_state_dict(state["scaler"])


# %%
import contextlib
from typing import Any

import torch

from autograder import exercise


def clip_(gradients: list[torch.Tensor], limit: float) -> torch.Tensor:
    """Make the gradients together at most `limit` long; returns their length from before."""
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
    for gradient in gradients:
        gradient.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))
    return norm


@exercise("2.3")
def mixed_step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> dict[str, Any]:
    """An ExitStack that is closed before backward; the cross-entropy is logsumexp minus the label's logit."""
    for parameter in model.parameters():
        parameter.grad = None
    with contextlib.ExitStack() as open_until_loss:
        device_type = next(model.parameters()).device.type
        open_until_loss.enter_context(torch.autocast(device_type, torch.bfloat16))
        scores = model(batch["input_ids"], batch["attention_mask"]).float()
        of_label = scores.gather(1, batch["labels"].unsqueeze(1)).squeeze(1)
        loss = (torch.logsumexp(scores, dim=1) - of_label).mean()
        open_until_loss.close()
        loss.backward()
    norm = clip_([p.grad for p in model.parameters() if p.grad is not None], max_norm)
    optimizer.step()
    return {"loss": loss.detach(), "grad_norm": norm}


# %%
import functools
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.4")
def train_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """A fold carries the sum of losses and the rows through a step; forward is wrapped by autocast as a decorator."""
    weights = tuple(model.parameters())

    @torch.autocast(weights[0].device.type, dtype=torch.bfloat16, enabled=precision != "32-true")
    def batch_loss(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])

    def step(so_far: tuple[torch.Tensor, int], batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, int]:
        loss_sum, seen = so_far
        rows = batch["labels"].shape[0]
        loss = batch_loss(batch)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(weights, max_norm)
        optimizer.step()
        return torch.add(loss_sum, loss.detach(), alpha=rows), seen + rows

    model.train()
    start = torch.zeros((), device=weights[0].device), 0
    loss_sum, seen = functools.reduce(step, batches, start)
    return {"loss": float(loss_sum) / seen if seen else float("nan"), "num_samples": seen}


# %%
import math

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.5")
class SturdyClassifier(torch.nn.Module):
    """No square is written: the length of the fp32 vector, and `hypot` puts the epsilon in."""

    def __init__(self, vocab_size: int, num_classes: int, d_model: int = 32) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocab_size, d_model)
        self.hidden = torch.nn.Linear(d_model, 2 * d_model)
        self.gain = torch.nn.Parameter(torch.ones(2 * d_model))
        self.head = torch.nn.Linear(2 * d_model, num_classes)
        torch.nn.init.normal_(self.hidden.weight, std=200.0)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
        features = F.gelu(self.hidden(self.words(input_ids)))
        pooled = torch.einsum("bth,bt->bh", features, weights).to(torch.float32)
        root_mean_square = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True) / math.sqrt(
            pooled.shape[-1]
        )
        divisor = torch.hypot(root_mean_square, torch.full_like(root_mean_square, 1e-3))
        return self.head(pooled / divisor * self.gain)
