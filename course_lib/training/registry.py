"""The names of optimizers, schedules and precisions, each written once: configs, the command line and the functions
that make them read them here. Nothing of torch is loaded before something is made.

A new optimizer is one more entry of `OPTIMIZERS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_lib.base import UserError, require

SGD_MOMENTUM = 0.9


@dataclass(frozen=True, kw_only=True)
class Request:
    """What an optimizer is made of.

    Attributes:
        groups: of parameters, each with `params`, `lr`, `weight_decay`.
        betas: decay of the averages of gradient and square, where it keeps them.
        fused: True for one kernel per group; None where that cannot be: torch then updates many tensors per call where
            it can, instead of one by one, as False would.
        is_sharded: whether the parameters are split by FSDP2.
    """

    groups: list[dict[str, Any]]
    learning_rate: float
    betas: tuple[float, float]
    fused: bool | None
    is_sharded: bool


@dataclass(frozen=True, kw_only=True)
class OptimizerEntry:
    """An optimizer by its name.

    Attributes:
        about: where it comes from, and what it does with the decay.
        make: makes it.
        resolves_to: what it comes to, in words; "" for torch's own, which are fused where that can be.
        can_shard: whether it can update parts of a matrix, as FSDP asks for.
        is_for_matrices: whether it is for the matrices of the model's blocks alone; `adamw` then updates the rest.
    """

    about: str
    make: Callable[[Request], Any]
    resolves_to: str = ""
    can_shard: bool = False
    is_for_matrices: bool = False


def _sgd(asked: Request) -> Any:
    from torch.optim import SGD

    fused = None if asked.is_sharded else asked.fused  # of split parameters torch fuses Adam alone
    return SGD(asked.groups, lr=asked.learning_rate, momentum=SGD_MOMENTUM, fused=fused)


def _adam(asked: Request) -> Any:
    from torch.optim import Adam

    return Adam(asked.groups, lr=asked.learning_rate, betas=asked.betas, fused=asked.fused)


def _adamw(asked: Request) -> Any:
    from torch.optim import AdamW

    return AdamW(asked.groups, lr=asked.learning_rate, betas=asked.betas, fused=asked.fused)


def _adafactor(asked: Request) -> Any:
    from torch.optim import Adafactor

    return Adafactor(asked.groups, lr=asked.learning_rate)


def _muon(asked: Request) -> Any:
    import torch

    if not hasattr(torch.optim, "Muon"):
        raise UserError(
            f"muon needs torch 2.9 or later, here is {torch.__version__}: upgrade torch, or take adamw"
        )
    # Scaled so that an entry moves about as far as with AdamW: one learning rate and decay suit both.
    return torch.optim.Muon(asked.groups, lr=asked.learning_rate, adjust_lr_fn="match_rms_adamw")


def _lamb(asked: Request) -> Any:
    package = require("pytorch_optimizer", extra="optimizers")
    return package.Lamb(asked.groups, lr=asked.learning_rate, betas=asked.betas)


def _adamw_8bit(asked: Request) -> Any:
    # torchao's 8-bit AdamW compiles its step when it first runs, which fails where there is no C++ compiler.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it warns of kernels nobody asked for
    package = require("bitsandbytes", extra="optimizers")
    return package.optim.AdamW8bit(asked.groups, lr=asked.learning_rate, betas=asked.betas)


OPTIMIZERS = {
    "sgd": OptimizerEntry(about=f"with momentum {SGD_MOMENTUM}", make=_sgd, can_shard=True),
    "adam": OptimizerEntry(
        about="Kingma and Ba, 2015: decay as an L2 penalty",
        make=_adam,
        can_shard=True,
    ),
    "adamw": OptimizerEntry(
        about="Loshchilov and Hutter, 2019: decay apart from the gradient",
        make=_adamw,
        can_shard=True,
    ),
    "adafactor": OptimizerEntry(
        about="Shazeer and Stern, 2018",
        make=_adafactor,
        resolves_to="not fused: torch.optim.Adafactor keeps a row and a column of second moments per matrix",
    ),
    "muon": OptimizerEntry(
        about="Jordan et al., 2024 (scaled as by Liu et al., 2025), for the matrices of blocks; `adamw` for the rest",
        make=_muon,
        resolves_to="torch.optim.Muon, one matrix of the blocks after the other; adamw for the rest",
        is_for_matrices=True,
    ),
    "lamb": OptimizerEntry(
        about="You et al., 2020; needs the extra `optimizers`",
        make=_lamb,
        resolves_to="not fused: pytorch_optimizer's Lamb, with a trust ratio per parameter",
    ),
    "adamw-8bit": OptimizerEntry(
        about="Dettmers et al., 2022; needs the extra `optimizers`",
        make=_adamw_8bit,
        resolves_to="bitsandbytes: two bytes of state per weight in tensors of 4,096 or more, eight in others",
    ),
}

SCHEDULES = ("constant", "linear", "cosine", "cosine-restarts", "step", "one-cycle", "plateau")
"""Their formulas stand in `schedules.Schedule`."""

LR_SCALING_POWERS = {"none": 0.0, "sqrt": 0.5, "linear": 1.0}
"""With what power of the batch size the learning rate grows (`schedules.scaled_learning_rate`)."""

PRECISIONS = {"32-true": "float32", "tf32-mixed": "float32", "bf16-mixed": "bfloat16", "16-mixed": "float16"}
"""The number format in which matrix products are computed, by its name in torch (`precision`)."""
