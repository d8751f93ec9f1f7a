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
        self.to(device=base.weight.device, dtype=base.weight.dtype)

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
            "adapters in float32 whatever the base is": (
                "must have the same dtype",
                "dtype=base.weight.dtype",
                "dtype=torch.float32",
            ),
            "adapters in float32, their product cast back": (
                "adapters of another dtype than their base's",
                ("        self.to(device=base.weight.device, dtype=base.weight.dtype)\n", ""),
                (
                    "self.scale * F.linear(F.linear(inputs, self.a), self.b)",
                    "(self.scale * F.linear(F.linear(inputs.float(), self.a), self.b)).to(inputs.dtype)",
                ),
                (
                    "self.scale * (self.b @ self.a)",
                    "(self.scale * (self.b @ self.a)).to(self.base.weight.dtype)",
                ),
            ),
            "computed in float32, whatever the base is": (
                "in another precision than the base's",
                "self.scale * F.linear(F.linear(inputs, self.a), self.b)",
                "self.scale * F.linear(F.linear(inputs.float(), self.a.float()), self.b.float()).to(inputs.dtype)",
            ),
            "adapters on the CPU, wherever the base is": (
                "adapters on the CPU",
                "device=base.weight.device, ",
                "",
            ),
            "one row of A for all": (
                "all rows of A are the same",
                "torch.randn(rank, base.in_features)",
                "torch.randn(1, base.in_features).repeat(rank, 1)",
            ),
            "left in evaluation mode": (
                "was called on the way",
                "    return model\n",
                "    return model.eval()\n",
            ),
            "merged in the default dtype": (
                "a merged layer of float64",
                "return self.base\n",
                "return self.base.float()\n",
            ),
            "every layer with head in its name left out": (
                "a layer is left out for its name",
                'name != "head"',
                '"head" not in name',
            ),
            "every layer whose own name is head left out": (
                "a layer is left out for its name",
                'name != "head"',
                'name.split(".")[-1] != "head"',
            ),
            "every name that begins like the head left out": (
                "a layer is left out for its name",
                'name != "head"',
                'not name.startswith("head")',
            ),
            "merged with a bias that the base does not have": (
                "a bias where the base has none",
                "        return self.base\n",
                "        if self.base.bias is None:\n"
                "            self.base.bias = nn.Parameter(torch.randn_like(self.base.weight[:, 0]))\n"
                "        return self.base\n",
            ),
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
            "alpha left out": ("is not multiplied by alpha", "alpha / rank\n", "1 / rank\n"),
            "a whole number for the scale": (
                "is scaled by a whole number",
                "alpha / rank\n",
                "alpha // rank\n",
            ),
            "one scale for all models": (
                "is scaled as another model's",
                (
                    "self.base, self.scale = base, alpha / rank",
                    "self.base, Adapted.scale = base, alpha / rank",
                ),
            ),
            "a rank of its own": (
                "of another rank",
                "(module, rank, alpha)",
                "(module, 5, alpha * 5 / rank)",
            ),
            "an adapter with a bias": (
                "more than A and B learns",
                (
                    "        self.b = nn",
                    "        self.c = nn.Parameter(torch.zeros(base.out_features))\n        self.b = nn",
                ),
                ("self.a), self.b)", "self.a), self.b, self.c)"),
            ),
            "biases left to learn": (
                "LoRA base not frozen",
                "    model.head.requires_grad_(True)\n",
                "    for name, p in model.named_parameters():\n"
                '        p.requires_grad_(name.endswith("bias") or name.startswith("head."))\n',
            ),
            "norms left to learn": (
                "LoRA base not frozen",
                "    model.head.requires_grad_(True)\n",
                "    for name, p in model.named_parameters():\n"
                '        p.requires_grad_("norm" in name or name.startswith("head."))\n',
            ),
            "half of the head": (
                "the head is frozen",
                "model.head.requires_grad_(True)",
                "model.head.weight.requires_grad_(True)",
            ),
            "the head as it was": (
                "the head is frozen",
                (
                    "    model.requires_grad_(False)\n    model.head.requires_grad_(True)\n",
                    "    for name, p in model.named_parameters():\n"
                    '        if not name.startswith("head."):\n            p.requires_grad_(False)\n',
                ),
            ),
            "the head adapted too": ("a kind of layer is left out", ' and name != "head"', ""),
            "dropout before the adapter": (
                "such as by dropout",
                "F.linear(F.linear(inputs, ",
                "F.linear(F.linear(F.dropout(inputs, 0.1, self.training), ",
            ),
            "batches of texts alone": (
                "a value or a shape there that the code does not expect",
                "F.linear(F.linear(inputs, self.a), self.b)",
                'torch.einsum("bti,ri,or->bto", inputs, self.a, self.b)',
            ),
            "one A for layers of one size": (
                "layers share a matrix",
                (
                    "        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)\n",
                    "        self.a = known.setdefault(base.in_features, nn.Parameter("
                    "torch.randn(rank, base.in_features) / base.in_features**0.5))\n",
                ),
                ("def __init__(self, base, rank, alpha)", "def __init__(self, base, rank, alpha, known)"),
                ("(module, rank, alpha)", "(module, rank, alpha, known)"),
                ("    for name, module in list", "    known = {}\n    for name, module in list"),
            ),
            "the path of the adapter cut": (
                "cut off from backward",
                "F.linear(F.linear(inputs, self.a), self.b)",
                "F.linear(F.linear(inputs, self.a.detach()), self.b)",
            ),
            "the dtype of the model's first layer": (
                "of another dtype than their base's",
                ("self, base, rank, alpha):", "self, base, rank, alpha, dtype):"),
                (
                    "self.to(device=base.weight.device, dtype=base.weight.dtype)",
                    "self.a.data, self.b.data = self.a.data.to(dtype), self.b.data.to(dtype)",
                ),
                ("(module, rank, alpha)", "(module, rank, alpha, next(model.parameters()).dtype)"),
                (
                    "self.scale * F.linear(F.linear(inputs, self.a), self.b)",
                    "(self.scale * F.linear(F.linear(inputs.to(self.a.dtype), self.a), self.b)).to(inputs.dtype)",
                ),
            ),
            "the device of the model's first layer": (
                "where the model's first layer is",
                ("self, base, rank, alpha):", "self, base, rank, alpha, device):"),
                (
                    "self.to(device=base.weight.device, dtype=base.weight.dtype)",
                    "self.a.data, self.b.data = (\n"
                    "            one.data.to(device, base.weight.dtype) for one in (self.a, self.b))",
                ),
                ("(module, rank, alpha)", "(module, rank, alpha, next(model.parameters()).device)"),
            ),
            "the base outside of the graph": (
                "cut off from backward",
                "        return self.base(inputs) + ",
                "        with torch.no_grad():\n            frozen = self.base(inputs)\n        return frozen + ",
            ),
            "the adapter's input cut off": (
                "cut off from backward",
                "F.linear(F.linear(inputs, ",
                "F.linear(F.linear(inputs.detach(), ",
            ),
            "inputs in one piece of memory": (
                "a value or a shape there that the code does not expect",
                "F.linear(F.linear(inputs, self.a), self.b)",
                "F.linear(inputs.view(-1, inputs.shape[-1]) @ self.a.T, self.b).view(*inputs.shape[:-1], -1)",
            ),
            "three dimensions at most": (
                "taken for granted",
                "        return self.base(inputs) + ",
                "        if inputs.ndim > 3:\n            return self.base(inputs)\n"
                "        return self.base(inputs) + ",
            ),
            "no more columns than the layer has": (
                "of another rank",
                "(module, rank, alpha)",
                "(module, min(rank, *module.weight.shape), alpha * min(rank, *module.weight.shape) / rank)",
            ),
            "a copy adapted": (
                "a copy is adapted",
                "    model.requires_grad_(False)\n",
                "    import copy\n    model = copy.deepcopy(model)\n    model.requires_grad_(False)\n",
            ),
            "layers in the mode of the whole": (
                "`eval()` or `train()` was called",
                "    return model\n",
                "    return model.train(model.training)\n",
            ),
            "nothing returned": ("nothing is returned", "    return model\n", ""),
            "the base written while it learns": (
                "something writes into its weights",
                "        return self.base(inputs) +",
                "        if torch.is_grad_enabled():\n            self.base.weight.data *= 1.0001\n"
                "        return self.base(inputs) +",
            ),
            "merged is another kind of layer": (
                "`merged` is missing, or returns",
                "        return self.base\n",
                "        return self\n",
            ),
            "merged under another name": ("`merged` is missing", "def merged", "def merge"),
            "merged without the bias": (
                "the bias is lost",
                "        return self.base\n",
                "        self.base.bias = nn.Parameter(torch.zeros_like(self.base.weight[:, 0]))\n"
                "        return self.base\n",
            ),
            "the layers on the way out left alone": (
                "a kind of layer is left out",
                'name != "head"',
                'name != "head" and "out" not in name',
            ),
        },
    )
}
