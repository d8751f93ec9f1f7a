"""Right solutions of lesson 07 by unusual roads."""

# %%
import torch
from torch import nn

from autograder import exercise


class SideTrack(nn.Module):
    """base(x) + scale * up(down(x))."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        place = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.base = base
        self.thin = nn.Sequential(
            nn.Linear(base.in_features, rank, bias=False, **place),
            nn.Linear(rank, base.out_features, bias=False, **place),
        )
        nn.init.zeros_(self.thin[1].weight)
        self.scale = alpha / rank

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.base(inputs) + self.scale * self.thin(inputs)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        down, up = (layer.weight for layer in self.thin)
        old = self.base.weight
        layer = nn.Linear(
            self.base.in_features,
            self.base.out_features,
            bias=self.base.bias is not None,
            dtype=old.dtype,
            device=old.device,
        )
        layer.weight.copy_(old + self.scale * (up @ down))
        if self.base.bias is not None:
            layer.bias.copy_(self.base.bias)
        return layer


@exercise("7.5")
def add_lora(model: nn.Module, rank: int, alpha: float) -> nn.Module:
    """A and B are two thin layers in a Sequential; a recursive walk over a module's own parts replaces the layers."""
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    made: dict[nn.Linear, SideTrack] = {}  # a layer that is used twice keeps one adapter

    def walk(parent: nn.Module) -> None:
        # _modules and not named_children(): the latter leaves out the second name of a layer
        for name, child in list(parent._modules.items()):
            if child is None or child is model.head or isinstance(child, SideTrack):
                continue
            if isinstance(child, nn.Linear):
                if child not in made:
                    made[child] = SideTrack(child, rank, alpha)
                setattr(parent, name, made[child])
            else:
                walk(child)

    walk(model)
    return model
