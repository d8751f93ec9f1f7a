"""Whether anything hangs on a model's products of matrices: who counts them sees how many there are, not what for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from autograder.lessons.checking.harness_counting import see

NUM_PARTS = 12  # of which each is disturbed alone: a model of few layers has one product in each


class _Disturbed(TorchDispatchMode):
    """Makes every product of one part another one: those whose number leaves `part` when divided by `NUM_PARTS`."""

    def __init__(self, part: int) -> None:
        super().__init__()
        self.part, self.num_seen, self.flops = part, 0, 0
        self.formulas = FlopCounterMode(display=False).flop_registry

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        formula = self.formulas.get(func._overloadpacket)
        if formula is None:
            return result
        self.num_seen += 1
        if (self.num_seen - 1) % NUM_PARTS != self.part:
            return result
        self.flops += int(formula(*args, **(kwargs or {}), out_val=result))
        factors = torch.linspace(1.0, 99.0, result.numel()).sin().mul(0.5).add(1.0)
        return result * factors.view(result.shape).to(result.dtype)


def see_what_hangs(forward: Callable[[], torch.Tensor], name: str, number: int) -> None:
    """Tells of each part of a forward's products its FLOPs, and by how much another result of it changes the output,
    relative to the largest number there (`Worker.told.seen` under `name`, behind `number`)."""
    with torch.no_grad():
        right = forward().float()
        for part in range(NUM_PARTS):
            with _Disturbed(part) as disturbed:
                output = forward().float()
            if disturbed.num_seen <= part:
                break
            change = (output - right).abs().max() / right.abs().max().clamp(min=1e-30)
            see(name, number, disturbed.flops, change.nan_to_num(1.0).item())
