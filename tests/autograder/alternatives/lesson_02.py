# Another right solution of each exercise of lesson 02, in another style than the reference.

# %%
import enum
from collections.abc import Callable
from typing import Any

from autograder import exercise


class Precision(enum.StrEnum):
    FULL = "32-true"
    BRAIN = "bf16-mixed"
    HALF = "16-mixed"


@exercise("2.1")
def resolve_precision(
    requested: str, facts: dict[str, Any], measure_gain: Callable[[], float]
) -> dict[str, Any]:
    """The table as one `match`: each case is a row of it."""
    where = facts["device_name"]
    match requested, facts["device_type"], facts["bf16_units"]:
        case (("32-true" | "bf16-mixed" | "16-mixed"), _, _):
            chosen, why = Precision(requested), f"{requested} was asked for, by name"
        case "auto", "cuda", True:
            chosen, why = Precision.BRAIN, "its tensor cores multiply bf16"
        case "auto", "cuda", _:
            chosen, why = Precision.HALF, "it is a GPU, but one from before bf16"
        case "auto", "cpu", True:
            gain = measure_gain()
            chosen = Precision.BRAIN if gain >= 1.15 else Precision.FULL
            why = f"a layer in bf16 is {gain:.2f} times as fast as in fp32, and 1.15 is the limit"
        case "auto", "cpu", _:
            chosen, why = Precision.FULL, "bf16 would be emulated, slower than fp32"
        case "auto", kind, _:
            chosen, why = Precision.FULL, f"nobody tried 16 bits on {kind}"
        case _:
            raise ValueError(f"{requested!r} is none of auto, {', '.join(Precision)}")
    return {
        "precision": str(chosen),
        "needs_scaler": chosen is Precision.HALF,
        "reason": f"{where}: {why}.",
    }


# %%
import math
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.2")
class Fp16Trainer:
    """The scaler of the lesson by hand, with the weights' gradients as one flat vector."""

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
        self.exponent, self.rest = math.frexp(init_scale)[1], math.frexp(init_scale)[0]
        self.growth_interval, self.good_in_a_row = growth_interval, 0

    @property
    def scale(self) -> float:
        return math.ldexp(self.rest, self.exponent)

    def train_step(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        with torch.autocast(self.device_type, torch.float16):
            logits = self.model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, batch["labels"])
        trained = [p for p in self.model.parameters() if p.requires_grad]
        found = torch.autograd.grad(loss * self.scale, trained, materialize_grads=True)
        flat = torch.cat([gradient.flatten() for gradient in found]).div_(self.scale)
        norm = torch.linalg.vector_norm(flat)
        if math.isfinite(norm.item()):
            flat *= (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
            pieces = flat.split([p.numel() for p in trained])
            for parameter, piece in zip(trained, pieces, strict=True):
                parameter.grad = piece.view_as(parameter)
            self.optimizer.step()
            self.good_in_a_row += 1
            if self.good_in_a_row == self.growth_interval:
                self.exponent, self.good_in_a_row = self.exponent + 1, 0
        else:
            self.exponent, self.good_in_a_row = self.exponent - 1, 0
        return {"loss": loss.detach(), "grad_norm": norm, "scale": self.scale}

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "good_in_a_row": self.good_in_a_row}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rest, self.exponent = math.frexp(state["scale"])
        self.good_in_a_row = state["good_in_a_row"]


# %%
from typing import Any

import torch

from autograder import exercise


class Criterion(torch.nn.Module):
    """Forward and loss as one module, so that autocast can be a decorator around both."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, torch.nn.CrossEntropyLoss()

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.loss(self.model(batch["input_ids"], batch["attention_mask"]), batch["labels"])


@exercise("2.3")
def mixed_step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> dict[str, Any]:
    """Autocast as a decorator, gradients by `torch.autograd.grad`, the clip in its two halves."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    in_bf16 = torch.autocast(parameters[0].device.type, torch.bfloat16)
    loss = in_bf16(Criterion(model))(batch)
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    norm = torch.nn.utils.get_total_norm([g for g in gradients if g is not None])
    torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    optimizer.step()
    return {"loss": loss.detach(), "grad_norm": norm}


# %%
import contextlib
from collections.abc import Iterable, Iterator

import torch

from autograder import exercise


def steps(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float,
) -> Iterator[tuple[torch.Tensor, int]]:
    """Trains while it is iterated; yields each batch's loss, as a sum, and its size."""
    kind = next(model.parameters()).device.type
    for batch in batches:
        in_16_bits = (
            torch.autocast(kind, torch.bfloat16) if precision == "bf16-mixed" else contextlib.nullcontext()
        )
        with in_16_bits:
            logits = model(batch["input_ids"], batch["attention_mask"])
        log_probabilities = torch.log_softmax(logits.float(), dim=-1)
        total = torch.nn.functional.nll_loss(log_probabilities, batch["labels"], reduction="sum")
        model.zero_grad()
        total.div(len(logits)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, foreach=True)
        optimizer.step()
        yield total.detach(), len(logits)


@exercise("2.4")
def train_epoch(
    model: torch.nn.Module,
    batches: Iterable[dict[str, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    precision: str,
    max_norm: float = 1.0,
) -> dict[str, float]:
    """A generator does the steps; the loss is in fp32 by `.float()`, outside autocast."""
    totals, sizes = zip(*steps(model.train(), batches, optimizer, precision, max_norm), strict=True)
    number = sum(sizes)
    return {"loss": torch.stack(totals).sum().item() / number, "num_samples": number}


# %%
import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.5")
class SturdyClassifier(torch.nn.Module):
    """The normalisation by torch's own `rms_norm`, which works in fp32 inside."""

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
        pooled = torch.einsum("bth,bt->bh", features, weights)
        normal = F.rms_norm(pooled, pooled.shape[-1:], eps=1e-6)
        return self.head(normal * self.gain)
