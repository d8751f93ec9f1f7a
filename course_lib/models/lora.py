"""LoRA: a frozen model learns through small matrices beside its linear layers (Hu et al., 2021)."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.models.low_bit import Int8Linear

HEAD = "head"
"""The layer that is new for each task: it is trained whole."""


class LoRALinear(nn.Module):
    """y = base(x) + alpha / rank · (x Aᵀ) Bᵀ, with A [rank, in] random and B [out, rank] zero, so that
    training starts from the base model exactly. The base is frozen."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.lora_b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))  # as nn.Linear starts its own weight

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        # Two thin products: B A, which is as large as the weight, is never formed.
        return self.base(inputs) + self.scale * F.linear(F.linear(inputs, self.lora_a), self.lora_b)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One plain layer that computes the same, W + alpha / rank · B A."""
        base = self.base.to_linear() if isinstance(self.base, Int8Linear) else self.base
        base.weight += self.scale * (self.lora_b @ self.lora_a)
        return base


def add_lora(model: Any, rank: int, alpha: float | None = None) -> Any:
    """Freeze `model` and put adapters of `rank` beside its linear layers, in place; returns it.

    Adapters and the layer `head` learn, nothing else does. `alpha` is `rank` unless given. A Hugging Face model
    gets the adapters of PEFT.
    """
    alpha = float(rank if alpha is None else alpha)
    if hasattr(model, "add_peft_lora"):
        return model.add_peft_lora(rank, alpha)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(HEAD in name.split("."))
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Linear) and HEAD not in name.split("."):
            model.set_submodule(name, LoRALinear(layer, rank, alpha))
    return model


def merge_lora(model: Any) -> Any:
    """Fold the adapters into the weights, in place; returns a model with the layers it had before them. What was kept
    in 8 bits is then in fp32 again, as rounded as before."""
    if hasattr(model, "merge_peft_lora"):
        return model.merge_peft_lora()
    for name, layer in list(model.named_modules()):
        if isinstance(layer, LoRALinear):
            model.set_submodule(name, layer.merged())
    return model.requires_grad_(True)
