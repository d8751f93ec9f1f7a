"""AdamW in two parameter groups, and the warmup + cosine schedule."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

AUTO_STEPS = 500
AUTO_EPOCHS = (3, 100)
FUSED_DEVICES = frozenset({"cpu", "cuda", "mps", "xpu"})


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Matrices decay; biases and norm gains (all that has fewer than two dimensions) do not.

    Pulling a norm's gain towards 0 shrinks the signal without regularising anything.
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]


def resolve_fused(model: nn.Module) -> tuple[bool, str]:
    """Whether one kernel can update all parameters, and why."""
    for name, parameter in model.named_parameters():
        if parameter.device.type not in FUSED_DEVICES:
            return False, f"not fused: {name} is on {parameter.device.type}, which has no fused AdamW"
        if not parameter.is_floating_point():
            return False, f"not fused: {name} is {parameter.dtype}"
    return True, "fused: one kernel updates each group of parameters"


def make_optimizer(
    model: nn.Module,
    name: str = "adamw",
    *,
    layer_decay: float = 1.0,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter, 2019), fused where torch has a fused kernel for the device."""
    is_fused, _reason = resolve_fused(model)
    groups = [group for group in parameter_groups(model, weight_decay) if group["params"]]
    if not groups:
        raise ValueError("the model has no parameter that requires a gradient: unfreeze one before training")
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=is_fused)


def warmup_cosine_factor(step: int, *, warmup_steps: int, max_steps: int, final_ratio: float = 0.0) -> float:
    """Share of the peak learning rate at `step`, counted from 0.

    Rises linearly to 1 over `warmup_steps`, then falls along half a cosine to `final_ratio` at `max_steps`.
    Source of the cosine: Loshchilov and Hutter, "SGDR", 2017.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, max_steps - warmup_steps))
    return final_ratio + (1.0 - final_ratio) * 0.5 * (1.0 + math.cos(math.pi * progress))


def warmup_cosine(
    optimizer: torch.optim.Optimizer, *, warmup_steps: int, max_steps: int, final_ratio: float = 0.0
) -> LambdaLR:
    """The schedule of `warmup_cosine_factor`. Call `.step()` once after each `optimizer.step()`."""
    if max_steps < 1 or not 0 <= warmup_steps <= max_steps:
        raise ValueError(
            f"need 0 <= warmup_steps <= max_steps and max_steps >= 1, "
            f"got warmup_steps={warmup_steps}, max_steps={max_steps}"
        )

    def factor(step: int) -> float:
        return warmup_cosine_factor(
            step, warmup_steps=warmup_steps, max_steps=max_steps, final_ratio=final_ratio
        )

    return LambdaLR(optimizer, factor)


def resolve_epochs(
    steps_per_epoch: int, *, max_epochs: int | None = None, max_steps: int | None = None
) -> tuple[int, str]:
    """Number of epochs to train, and why: as asked for, as `max_steps` needs, else by the size of the data."""
    if max_epochs is not None:
        return max_epochs, f"{max_epochs}: asked for"
    if max_steps is not None:
        return math.ceil(max_steps / steps_per_epoch), f"as many as {max_steps} steps need"
    low, high = AUTO_EPOCHS
    epochs = min(high, max(low, math.ceil(AUTO_STEPS / steps_per_epoch)))
    return (
        epochs,
        f"auto: {epochs} × {steps_per_epoch} steps; {low} to {high} epochs, {AUTO_STEPS} steps if they can",
    )


def resolve_optimizer(name: str, model: nn.Module) -> str:
    return f"{name}, {resolve_fused(model)[1]}"
