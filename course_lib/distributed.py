"""Several processes that train one model."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Ranks:
    """Which of the processes this is."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1

    @property
    def is_main_process(self) -> bool:
        return self.rank == 0


def setup() -> Ranks:
    return Ranks()


def world_size() -> int:
    """Number of processes that train together; 1 without a process group."""
    is_on = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if is_on else 1


def sum_across_ranks(tensor: Tensor) -> Tensor:
    """Sum over all processes; the tensor itself when there is one."""
    if world_size() > 1:
        tensor = tensor.clone()
        torch.distributed.all_reduce(tensor)
    return tensor


def gather_objects(value: Any) -> list[Any]:
    return [value]


def no_sync(model: nn.Module, *, is_last: bool) -> AbstractContextManager[None]:
    """Gradients are averaged over processes only in the backward of the last micro-batch of an update."""
    return contextlib.nullcontext()
