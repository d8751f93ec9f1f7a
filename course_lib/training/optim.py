"""Optimizers by name, with the parameters in groups: what decays and what does not, and how fast each layer learns.

No update rule is written here: they come from torch, pytorch_optimizer (LAMB) and bitsandbytes (8-bit AdamW);
`registry` names them.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch import nn

from course_lib.base import UserError
from course_lib.training.registry import OPTIMIZERS, Request

AUTO_STEPS = 500
AUTO_EPOCHS = (3, 100)
MATRICES = "matrices"
BY_SGD = "by_sgd"
SGD_LR_RATIO = 20_000.0
"""How many times as fast as the rest that learns which says `learns_by_sgd`: bags of inputs of length 1."""
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

    Raises UserError for an unknown name, when no parameter requires a gradient, for one that must see whole
    matrices where FSDP has split them, and for one of matrices where the model has no blocks. The names:
    """
    if name not in OPTIMIZERS:
        raise UserError(f"there is no optimizer {name!r}: take one of {', '.join(OPTIMIZERS)}")
    entry = OPTIMIZERS[name]
    found = parameter_groups(
        model, weight_decay, layer_decay, embedding_lr_ratio, matrices_apart=entry.is_for_matrices
    )
    groups: Any = [group for group in found if group["params"]]
    if not groups:
        raise UserError("the model has no parameter that requires a gradient: unfreeze one before training")
    for group in groups:
        group["lr"] = learning_rate * group["lr_scale"]
    is_sharded = hasattr(groups[0]["params"][0], "full_tensor")
    if is_sharded and not entry.can_shard:
        raise UserError(f"{name} must see whole matrices, and fsdp has split them: take adamw, or ddp")

    def make(name: str, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        fused = resolve_fused(model)[0] or None
        asked = Request(
            groups=groups, learning_rate=learning_rate, betas=betas, fused=fused, is_sharded=is_sharded
        )
        made: torch.optim.Optimizer = OPTIMIZERS[name].make(asked)
        return made

    if by_sgd := [group for group in groups if group["name"].endswith(BY_SGD)]:
        groups = [group for group in groups if not group["name"].endswith(BY_SGD)]
        if not groups:
            return make("sgd", by_sgd)
        if not entry.is_for_matrices:
            return Joined([make(name, groups), make("sgd", by_sgd)], learning_rate)
    if not entry.is_for_matrices:
        return make(name, groups)
    matrices = [group for group in groups if group["name"].endswith(MATRICES)]
    rest = [group for group in groups if not group["name"].endswith(MATRICES)]
    if not matrices:
        raise UserError(
            f"{name} needs a model with an nn.ModuleList of blocks, and matrices in them that learn; take adamw"
        )
    parts = [make(name, matrices), *([make("adamw", rest)] if rest else [])]
    parts += [make("sgd", by_sgd)] if by_sgd else []
    return Joined(parts, learning_rate)


class Joined(torch.optim.Optimizer):
    """Optimizers of different parameters as one: one step, one list of groups, one state to save."""

    def __init__(self, parts: list[torch.optim.Optimizer], learning_rate: float) -> None:
        self.parts = parts
        groups = [group for part in parts for group in part.param_groups]
        super().__init__(groups, {"lr": learning_rate})
        self._share()

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update by each part."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            # Without what torch wraps around a step: to hooks, profilers and counters all parts are one step.
            inspect.unwrap(type(part).step)(part)
        return loss

    def _share(self) -> None:
        """The parts update the groups and states that are seen, scheduled and saved here."""
        groups = iter(self.param_groups)
        for part in self.parts:
            part.param_groups = [next(groups) for _ in part.param_groups]
            part.state = self.state

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "parts": self.parts}

    def __setstate__(self, state: dict[str, Any]) -> None:  # of a copy, and of `load_state_dict`
        super().__setstate__(state)
        self._share()


_LISTED = "\n".join(f"    - `{name}`: {entry.about}" for name, entry in OPTIMIZERS.items())
make_optimizer.__doc__ = f"{make_optimizer.__doc__}\n{_LISTED}\n"  # for help(course_lib.make_optimizer)


def resolve_optimizer(name: str, model: nn.Module) -> str:
    """What `name` comes to for this model, in words, for the record of a run."""
    return f"{name} ({OPTIMIZERS[name].resolves_to or resolve_fused(model)[1]})"


def choose_optimizer(model: nn.Module, *, is_fresh: bool, is_sharded: bool = False) -> tuple[str, str]:
    """The name that `auto` comes to, and why: muon for weights that begin at random, where it can be, else adamw.

    `is_fresh`: whether all weights begin at random; what AdamW trained before goes on with AdamW (Liu et al., 2025).
    """
    obstacle = ""
    if all(hasattr(module, "learns_by_sgd") for module in _holders(model)):
        return "sgd", "auto: a linear model of n-grams"
    if not is_fresh:
        obstacle = "the weights were trained before, with an optimizer of its kind"
    elif is_sharded:
        obstacle = "fsdp splits the matrices that muon must see whole"
    elif not hasattr(torch.optim, "Muon"):
        obstacle = f"muon needs torch 2.9 or later, here is {torch.__version__}"
    elif not _inner_matrices(model):
        obstacle = "the model has no blocks whose matrices muon could update"
    return ("adamw", f"auto: {obstacle}") if obstacle else ("muon", "auto: it needs fewer steps than adamw")


def _holders(model: nn.Module) -> list[nn.Module]:
    """The outermost modules that hold all parameters."""
    return [module for module in model.children() if any(True for _ in module.parameters())] or [model]


def parameter_groups(
    model: nn.Module,
    weight_decay: float,
    layer_decay: float = 1.0,
    embedding_lr_ratio: float = 1.0,
    *,
    matrices_apart: bool = False,
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
    What a module holds that says `learns_by_sgd` is a group of its own, too, without decay.
    `matrices_apart` puts what has exactly two dimensions in a block, embeddings aside, into groups of their own.
    """
    rows = _embeddings(model) if embedding_lr_ratio != 1.0 else set[int]()
    bags = [module for module in model.modules() if getattr(module, "learns_by_sgd", False)]
    by_sgd = {id(parameter) for module in bags for parameter in module.parameters()}
    prefixes = [] if layer_decay == 1.0 else _block_prefixes(model)
    if layer_decay != 1.0 and not prefixes:
        raise UserError("layer_decay needs a model with an nn.ModuleList of blocks; set layer_decay to 1")
    inner = _inner_matrices(model) if matrices_apart else set[int]()
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
        if inner:
            kinds.append((MATRICES, weight_decay, scale))
        if by_sgd:
            kinds.append((BY_SGD, 0.0, SGD_LR_RATIO))
        for kind, decay, lr_scale in kinds:
            chosen = [p for p in parameters if _kind(p, rows, inner, by_sgd) == kind]
            groups.append(
                {"name": name + kind, "params": chosen, "weight_decay": decay, "lr_scale": lr_scale}
            )
    return groups


def _kind(parameter: nn.Parameter, rows: set[int], inner: set[int], by_sgd: set[int]) -> str:
    if id(parameter) in by_sgd:
        return BY_SGD
    if id(parameter) in rows:
        return "tokens"
    if id(parameter) in inner:
        return MATRICES
    return "decay" if parameter.ndim >= 2 else "no_decay"


def _embeddings(model: nn.Module) -> set[int]:
    return {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}


def _inner_matrices(model: nn.Module) -> set[int]:
    """Those of the blocks that learn; none where there are no blocks."""
    blocks = tuple(_block_prefixes(model))
    inner = [p for path, p in model.named_parameters() if path.startswith(blocks) and p.requires_grad]
    return {id(p) for p in inner if blocks and p.ndim == 2} - _embeddings(model)


def _block_prefixes(model: nn.Module) -> list[str]:
    """Paths of the model's blocks, input first: the `ModuleList` that holds the most parameters, be it called
    `blocks`, `encoder.layer`, `h` or otherwise. None where there is no such list."""
    stacks = [(path, module) for path, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    if not stacks:
        return []
    path, stack = max(stacks, key=lambda item: sum(p.numel() for p in item[1].parameters()))
    return [f"{path}.{index}." for index in range(len(stack))]


def resolve_fused(model: nn.Module) -> tuple[bool, str]:
    """Whether one kernel can update all trainable parameters, and why."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.device.type not in FUSED_DEVICES:
            return False, f"not fused: {name} is on {parameter.device.type}, which has no fused kernel"
    return True, "fused: one kernel updates each group of parameters"


def resolve_epochs(
    steps_per_epoch: int,
    *,
    max_epochs: int | None = None,
    max_steps: int | None = None,
    auto_steps: int = AUTO_STEPS,
    auto_epochs: tuple[int, int] = AUTO_EPOCHS,
) -> tuple[int, str]:
    """Number of epochs to train, and why: as asked for, as `max_steps` needs, else as many as make `auto_steps`,
    within `auto_epochs`."""
    if max_epochs is not None:
        return max_epochs, f"{max_epochs}: asked for"
    if max_steps is not None:
        return math.ceil(max_steps / steps_per_epoch), f"as many as {max_steps} steps need"
    low, high = auto_epochs
    epochs = min(high, max(low, math.ceil(auto_steps / steps_per_epoch)))
    reason = f"{low} to {high} epochs, {auto_steps} steps if they can"
    return epochs, f"auto: {epochs} × {steps_per_epoch} steps; {reason}"
