"""Frozen weights in 8 bits: a quarter of the memory of fp32, for models that learn through adapters.

The idea is QLoRA's (Dettmers et al., 2023): only what does not learn is rounded. Here to int8 with one scale
per row (absolute maximum / 127), where they take 4-bit NormalFloat in blocks.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LARGEST = 127


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """`weight` [out, in] -> int8 [out, in] and scale [out, 1]; int8 · scale is within scale / 2 of it."""
    scale = weight.abs().amax(dim=1, keepdim=True) / LARGEST
    # A row of zeros, or one so small that its scale rounds to 0, becomes zeros.
    rounded = (weight / scale.where(scale > 0, 1)).round().clamp(-LARGEST, LARGEST)
    return rounded.to(torch.int8), scale


class Int8Linear(nn.Module):
    """A frozen linear layer that keeps its weight as int8."""

    weight: Tensor
    scale: Tensor
    has_constant_buffers = True
    """Told to `wrap_ddp`: no step changes them, so no step sends them."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        weight = layer.weight if isinstance(layer, nn.Linear) else layer.weight.T
        int8, scale = quantize(weight.detach().contiguous())
        self.register_buffer("weight", int8)
        self.register_buffer("scale", scale)
        self.bias: nn.Parameter | None = layer.bias

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        if torch.is_grad_enabled():
            return _Int8Product.apply(inputs, self.weight, self.scale, self.bias)
        return F.linear(inputs, (self.weight * self.scale).to(inputs.dtype), self.bias)

    def to_linear(self) -> nn.Linear:
        """The plain layer with the rounded weights."""
        linear = nn.Linear(self.weight.shape[1], self.weight.shape[0], bias=False)
        linear.weight, linear.bias = nn.Parameter(self.weight * self.scale), self.bias  # type: ignore[assignment]
        return linear


class _Int8Product(torch.autograd.Function):
    """Widens the weight in forward and once more in backward: autograd would keep the wide copy meanwhile."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight, scale)
        return F.linear(inputs, (weight * scale).to(inputs.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        weight, scale = ctx.saved_tensors
        return grads[0] @ (weight * scale).to(grads[0].dtype), None, None, None


def is_linear(layer: nn.Module) -> bool:
    """Whether `layer` is an `nn.Linear`, or GPT-2's Conv1D: the same with its weight transposed."""
    return isinstance(layer, nn.Linear) or type(layer).__name__ == "Conv1D"


def quantize_frozen(model: nn.Module) -> nn.Module:
    """Replace every linear layer whose weight is frozen by an `Int8Linear`, in place; returns the model.

    Call it after `add_lora`. Embeddings, a head tied to them, norms and what learns stay as they are.
    """
    tied = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
    layers: list[tuple[str, Any]] = [item for item in model.named_modules() if is_linear(item[1])]
    for name, layer in layers:
        if not layer.weight.requires_grad and id(layer.weight) not in tied:
            model.set_submodule(name, Int8Linear(layer))
    return model
