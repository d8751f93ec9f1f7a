"""Wrong solutions of 7.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_LORA = """
import torch
import torch.nn.functional as F
from torch import nn

class Adapted(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, inputs):
        return self.base(inputs) + self.scale * F.linear(F.linear(inputs, self.a), self.b)

    @torch.no_grad()
    def merged(self):
        self.base.weight += self.scale * (self.b @ self.a)
        return self.base

@exercise("7.5")
def add_lora(model, rank, alpha):
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and name != "head":
            model.set_submodule(name, Adapted(module, rank, alpha))
    return model
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.5": wrong(
        _LORA,
        {
            "LoRA base not frozen": ("LoRA base not frozen", "    model.requires_grad_(False)\n", ""),
            "embeddings and norms not frozen": (
                "LoRA base not frozen",
                "    model.requires_grad_(False)\n",
                "    for module in model.modules():\n        if isinstance(module, nn.Linear):\n"
                "            module.requires_grad_(False)\n",
            ),
            "adapters not zero-initialised": (
                "adapters not zero-initialised",
                "torch.zeros(base.out_features, rank)",
                "torch.randn(base.out_features, rank)",
            ),
            "both matrices zero": (
                "both matrices are zero",
                "torch.randn(rank, base.in_features) / base.in_features**0.5",
                "torch.zeros(rank, base.in_features)",
            ),
            "not divided by the rank": ("not divided by the rank", "alpha / rank\n", "alpha\n"),
            "head frozen": ("the head is frozen", "    model.head.requires_grad_(True)\n", ""),
            "merged without the scale": (
                "the merged weight is not",
                "self.base.weight += self.scale * (",
                "self.base.weight += (",
            ),
            "the layers on the way out left alone": (
                "a kind of layer is left out",
                'name != "head"',
                'name != "head" and "out" not in name',
            ),
        },
    )
}
