"""Optimizers by name, with the parameters in groups: what decays and what does not, and how fast each layer learns.

No update rule is written here: they come from torch, pytorch_optimizer (LAMB) and bitsandbytes (8-bit AdamW);
`registry` names them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from course_lib.base import UserError
from course_lib.training.registry import OPTIMIZERS, Request

AUTO_STEPS = 500
AUTO_EPOCHS = (3, 100)
FUSED_DEVICES = frozenset({"cpu", "cuda", "mps", "xpu"})


def make_optimizer(
    model: nn.Module,
    name: str = "adamw",
    *,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.01,
    layer_decay: float = 1.0,
    embedding_lr_ratio: float = 1.0,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Optimizer:
    """The optimizer `name` over the trainable parameters, in the groups of `parameter_groups`.

    Raises UserError for an unknown name, or when no parameter requires a gradient. The names:
    """
    if name not in OPTIMIZERS:
        raise UserError(f"there is no optimizer {name!r}: take one of {', '.join(OPTIMIZERS)}")
    found = parameter_groups(model, weight_decay, layer_decay, embedding_lr_ratio)
    groups: Any = [group for group in found if group["params"]]
    if not groups:
        raise UserError("the model has no parameter that requires a gradient: unfreeze one before training")
    for group in groups:
        group["lr"] = learning_rate * group["lr_scale"]
    asked = Request(
        groups=groups,
        learning_rate=learning_rate,
        betas=betas,
        fused=resolve_fused(model)[0] or None,
        is_sharded=hasattr(groups[0]["params"][0], "full_tensor"),
    )
    optimizer: torch.optim.Optimizer = OPTIMIZERS[name].make(asked)
    return optimizer


_LISTED = "\n".join(f"    - `{name}`: {entry.about}" for name, entry in OPTIMIZERS.items())
make_optimizer.__doc__ = f"{make_optimizer.__doc__}\n{_LISTED}\n"  # for help(course_lib.make_optimizer)


def resolve_optimizer(name: str, model: nn.Module) -> str:
    """What `name` comes to for this model, in words, for the record of a run."""
    return f"{name} ({OPTIMIZERS[name].resolves_to or resolve_fused(model)[1]})"


def parameter_groups(
    model: nn.Module, weight_decay: float, layer_decay: float = 1.0, embedding_lr_ratio: float = 1.0
) -> list[dict[str, Any]]:
    """Groups with `name`, `params`, `weight_decay` and `lr_scale`: for each depth one that decays and one that
    does not; either may be empty.

    Matrices decay; biases and norm gains (all that has fewer than two dimensions) do not: pulling a gain towards 0
    shrinks the signal without regularising anything. Embeddings are matrices and decay, as in BERT and GPT-2; the
    row of a token that is seldom seen shrinks meanwhile.
    `layer_decay` below 1 slows the layers near the input (Howard and Ruder, 2018): the learning rate's scale is 1
    for all that stands after the last block, `layer_decay` for that block, and so on down to the embeddings.
    At 1 there is a single depth.
    `embedding_lr_ratio` other than 1 puts the weights of `nn.Embedding`s into groups of their own, that many times
    as fast: in a model trained from scratch, a token's row moves only in the few batches that hold the token, and at
    the rate that suits matrices, which move in all, most rows end near where they began.
    """
    rows = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    rows = rows if embedding_lr_ratio != 1.0 else set()
    prefixes = [] if layer_decay == 1.0 else _block_prefixes(model)
    names = ["embeddings.", *prefixes, "head."] if prefixes else [""]
    depths: list[list[nn.Parameter]] = [[] for _ in names]
    depth = 0
    for path, parameter in model.named_parameters():
        # In order of registration: embeddings stand before the blocks, the last norm and the head after them.
        inside = [at for at, prefix in enumerate(prefixes, start=1) if path.startswith(prefix)]
        depth = inside[0] if inside else len(names) - 1 if depth else 0
        if parameter.requires_grad:
            depths[depth].append(parameter)
    groups = []
    for at, (name, parameters) in enumerate(zip(names, depths, strict=True)):
        scale = layer_decay ** (len(names) - 1 - at)
        kinds = [("decay", weight_decay, scale), ("no_decay", 0.0, scale)]
        if rows:
            kinds.append(("tokens", weight_decay, scale * embedding_lr_ratio))
        for kind, decay, lr_scale in kinds:
            chosen = [p for p in parameters if _kind(p, rows) == kind]
            groups.append(
                {"name": name + kind, "params": chosen, "weight_decay": decay, "lr_scale": lr_scale}
            )
    return groups


def _kind(parameter: nn.Parameter, rows: set[int]) -> str:
    if id(parameter) in rows:
        return "tokens"
    return "decay" if parameter.ndim >= 2 else "no_decay"


def _block_prefixes(model: nn.Module) -> list[str]:
    """Paths of the model's blocks, input first: the `ModuleList` that holds the most parameters, be it called
    `blocks`, `encoder.layer`, `h` or otherwise."""
    stacks = [(path, module) for path, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    if not stacks:
        raise UserError("layer_decay needs a model with an nn.ModuleList of blocks; set layer_decay to 1")
    path, stack = max(stacks, key=lambda item: sum(p.numel() for p in item[1].parameters()))
    return [f"{path}.{index}." for index in range(len(stack))]


def resolve_fused(model: nn.Module) -> tuple[bool, str]:
    """Whether one kernel can update all trainable parameters, and why."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.device.type not in FUSED_DEVICES:
            return False, f"not fused: {name} is on {parameter.device.type}, which has no fused kernel"
    return True, "fused: one kernel updates each group of parameters"


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
    reason = f"{low} to {high} epochs, {AUTO_STEPS} steps if they can"
    return epochs, f"auto: {epochs} × {steps_per_epoch} steps; {reason}"
