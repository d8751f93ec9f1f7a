"""Number formats of a run."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Precision:
    """`name` as in a config, why it was chosen, and what a step needs of it."""

    name: str
    reason: str
    dtype: torch.dtype = torch.float32
    scaler: Any = None

    def autocast(self) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()


FULL_PRECISION = Precision("32-true", "asked for")


def resolve_precision(requested: str, device: torch.device, *, width: int = 64) -> Precision:
    return FULL_PRECISION
