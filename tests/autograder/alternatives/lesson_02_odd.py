# Right solutions of lesson 02 by roads that few people take.

# %%
from collections.abc import Callable
from typing import Any

from autograder import exercise

#: (device type, whether it has bf16 units) → precision and why; None where a measurement decides.
ROWS = {
    ("cuda", True): ("bf16-mixed", "bf16 units"),
    ("cuda", False): ("16-mixed", "no bf16 units"),
    ("cpu", True): None,
    ("cpu", False): ("32-true", "bf16 only by emulation"),
}


class UnknownPrecision(ValueError):
    pass


@exercise("2.1")
def resolve_precision(
    requested: str, facts: dict[str, Any], measure_gain: Callable[[], float]
) -> dict[str, Any]:
    """A table; the gain is written with `round` and its zeros are put back."""
    names = ["32-true", "bf16-mixed", "16-mixed"]
    kind, name = facts["device_type"], facts["device_name"]
    if requested in names:
        precision, why = requested, f"somebody wants {requested}"
    elif requested != "auto":
        raise UnknownPrecision(f"{requested} is unknown, these are known: " + " / ".join(names))
    elif row := ROWS.get((kind, facts["bf16_units"]), ("32-true", f"who knows a {kind}")):
        precision, why = row
    else:
        gain = measure_gain()
        precision = names[gain >= 1.15]
        why = "bf16 / fp32 = " + f"{gain:.2f}" + "×"
    return {
        "reason": f"({name}) {why}",
        "needs_scaler": precision.startswith("16"),
        "precision": precision,
        "requested": requested,
    }


# %%
from typing import Any

import torch
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value

from autograder import exercise


@exercise("2.2")
class Fp16Trainer:
    """Gradients by `torch.func`, with the loss inside autocast; they are clipped in a hook of the optimizer."""

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
        self.state = {"scale": init_scale, "good": 0, "interval": growth_interval}
        self.norm = torch.zeros(())
        optimizer.register_step_pre_hook(self._clip)

    def _clip(self, *_: Any) -> None:
        self.norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)

    def train_step(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        scale, weights = self.state["scale"], dict(self.model.named_parameters())

        def scaled_loss(some: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
            with torch.autocast("cpu", torch.float16):
                logits = functional_call(self.model, some, (batch["input_ids"], batch["attention_mask"]))
                loss = F.cross_entropy(logits, batch["labels"])
                return loss * scale, loss

        gradients, (_, loss) = grad_and_value(scaled_loss, has_aux=True)(weights)
        true = {name: gradient / scale for name, gradient in gradients.items()}
        self.norm = torch.tensor(float("inf"))
        if all(bool(gradient.isfinite().all()) for gradient in true.values()):
            for name, parameter in weights.items():
                parameter.grad = true[name].detach()
            self.optimizer.step()
            self.state["good"] += 1
            if self.state["good"] % self.state["interval"] == 0:
                self.state.update(scale=2 * scale, good=0)
        else:
            self.state.update(scale=scale / 2, good=0)
        return {"loss": loss.detach(), "grad_norm": self.norm, "scale": self.state["scale"]}

    def state_dict(self) -> dict[str, Any]:
        return dict(self.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = dict(state)


# %%
from typing import Any

import torch
import torch.nn.functional as F

from autograder import exercise


@exercise("2.3")
def mixed_step(
    model: torch.nn.Module,
    batch: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    max_norm: float,
) -> dict[str, Any]:
    """The optimizer calls a closure that makes the gradients."""
    norms = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits.float(), batch["labels"])
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))
        return loss

    loss = optimizer.step(closure)
    return {"loss": loss.detach(), "grad_norm": norms[0]}


# %%
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
    """Gradients by `torch.autograd.grad`, steps by closures, and a model that is left in evaluation mode."""
    losses, sizes = [], []
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for batch in batches:
        model.train()

        def closure(batch: dict[str, torch.Tensor] = batch) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16, enabled=precision.startswith("bf16")):
                logits = model(batch["input_ids"], batch["attention_mask"])
                loss = F.cross_entropy(logits, batch["labels"], reduction="none").mean()
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.grad = gradient
            torch.nn.utils.clip_grad_norm_(weights, max_norm)
            return loss

        losses.append(optimizer.step(closure).detach())
        sizes.append(batch["labels"].numel())
    model.eval()
    shares = torch.tensor(sizes, dtype=torch.float64) / sum(sizes)
    return {"loss": float(torch.stack(losses).double() @ shares), "num_samples": sum(sizes)}


# %%
import torch
import torch.nn.functional as F

from autograder import exercise
from autograder.lessons.lesson_02.fragile import FragileClassifier


@exercise("2.5")
class SturdyClassifier(FragileClassifier):
    """The notebook's own class, with another `forward`."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
        features = F.gelu(self.hidden(self.words(input_ids)))
        pooled = torch.einsum("bth,bt->bh", features, weights).to(torch.float32)
        length = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True)
        normal = pooled / torch.sqrt(length**2 / pooled.shape[-1] + 1e-6)
        return self.head(normal * self.gain)
