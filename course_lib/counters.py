"""Costs that can be counted: no clock, no noise, the same number on every machine.

A *sync* is a place where Python asks for the value of a tensor. On a GPU the program then waits until all
queued work is done; on a CPU it costs little, but it is the same line of code, so it is counted alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# `.item()`, `float(t)`, `bool(t)`, `if t:` all end in this one operator.
_SCALAR_READ = torch.ops.aten._local_scalar_dense.default
# These copy values out without any operator, so they are seen one level higher.
_BULK_READS = frozenset({Tensor.tolist, Tensor.numpy, Tensor.__array__})


@dataclass
class Counts:
    """What happened inside `count_events`. Readable while it runs."""

    num_syncs: int = 0
    """Values read from tensors by Python: `.item()`, `float()`, `if tensor`, `.tolist()`, `.numpy()`."""
    num_optimizer_steps: int = 0
    num_forwards: int = 0
    """Calls of the model that was given to `count_events`; 0 when none was given."""
    _inside_optimizer: int = 0


class _ScalarReads(TorchDispatchMode):
    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts = counts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Optimizers read their own step counter, which lives on the host: that is no device sync.
        if func is _SCALAR_READ and not self.counts._inside_optimizer:
            self.counts.num_syncs += 1
        return func(*args, **(kwargs or {}))


class _BulkReads(TorchFunctionMode):
    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts = counts

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _BULK_READS and not self.counts._inside_optimizer:
            self.counts.num_syncs += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def count_events(model: nn.Module | None = None) -> Iterator[Counts]:
    """Count syncs, optimizer steps and forward calls of `model` in this thread until the block ends.

    Slows the code inside by a factor of its own: count and time in different runs. Code compiled by
    `torch.compile` is not seen.
    """
    counts = Counts()

    def before_step(_optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        counts._inside_optimizer += 1

    def after_step(_optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        counts._inside_optimizer -= 1
        counts.num_optimizer_steps += 1

    def before_forward(_module: nn.Module, _args: Any) -> None:
        counts.num_forwards += 1

    with ExitStack() as stack:
        handles = [
            register_optimizer_step_pre_hook(before_step),
            register_optimizer_step_post_hook(after_step),
        ]
        if model is not None:
            handles.append(model.register_forward_pre_hook(before_forward))
        for handle in handles:
            stack.callback(handle.remove)
        stack.enter_context(_BulkReads(counts))
        stack.enter_context(_ScalarReads(counts))
        yield counts
