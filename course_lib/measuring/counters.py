"""Costs that can be counted: no clock, no noise, the same number on every machine.

A *sync* is a place where Python must know the value of a tensor, or a shape that hangs on values. A GPU program then
waits until all queued work is done; on a CPU it costs little, but it is the same line of code and counted alike.

What can be trusted: the counts live in the process of the code that they count, and Python lets code change anything
there. They tell an honest author the truth. A grader should load this module before any foreign code, take
`num_unwatched` > 0 for "there was more", and derive for itself what it can: rows, tokens and steps follow from the
data it handed out, FLOPs from the model's shapes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from course_lib.measuring.counts import Counts
from course_lib.measuring.operators import BulkReads, Operators, SavedBytes


@contextmanager
def count_events(model: nn.Module | None = None, *, operators: bool = True) -> Iterator[Counts]:
    """Count what this thread does until the block ends, and which steps and calls of `model` there are in any.

    `operators=False` counts forwards, rows, tokens, DDP's reductions and optimizer steps alone: cheap enough under
    a clock. The rest looks at every operator and makes steps several times slower: count and time in different runs.
    What `torch.compile` has compiled runs uncompiled meanwhile. A DDP keeps the hook that counts for good, and raises
    RuntimeError when it has another one already.
    """
    counts = Counts()
    with ExitStack() as stack:
        watch = Operators(counts) if operators else None
        hooks = _Hooks(counts, model, watch)
        stack.callback(register_optimizer_step_pre_hook(hooks.before_step).remove)
        stack.callback(register_optimizer_step_post_hook(hooks.after_step).remove)
        if model is not None:
            stack.callback(model.register_forward_pre_hook(hooks.before_forward, with_kwargs=True).remove)
        if isinstance(model, nn.parallel.DistributedDataParallel):
            listeners = _listeners_of(model)
            listeners.append(counts)
            stack.callback(listeners.remove, counts)
        if watch is not None:
            saved = SavedBytes(counts, hooks.own_storages)
            stack.enter_context(saved_tensors_hooks(saved.pack, lambda kept: kept.tensor))
            stack.enter_context(BulkReads(watch.note_sync))
            stack.enter_context(watch)
        yield counts


def peak_bytes(step: Callable[[], Any], device: torch.device) -> int:
    """Run `step`; returns the most bytes that were live at one time in tensors made since its start.

    On CUDA the allocator's own peak. Elsewhere counted at each operator, so the number is exact and the same on
    each run; what an operator takes and gives back inside itself is not seen.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        return torch.cuda.max_memory_allocated(device) - before
    counts = Counts()
    with Operators(counts):
        step()
    return counts.peak_live_bytes


class _Hooks:
    """What is told of the model's calls and of all optimizers' steps, whatever thread they run in."""

    def __init__(self, counts: Counts, model: nn.Module | None, watch: Operators | None) -> None:
        self.counts, self.model, self.watch = counts, model, watch
        parameters = [] if model is None else list(model.parameters())
        self.own = frozenset(map(id, parameters))
        self.own_storages = frozenset(parameter.untyped_storage()._cdata for parameter in parameters)

    def before_forward(self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`input_ids` [B, T] is the first tensor; `attention_mask` [B, T] comes by name or in the second place."""
        counts = self.counts
        counts.num_forwards += 1
        counts.num_unwatched += self.watch is not None and self.watch.is_blind()
        tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim)
        inputs = next(tensors, torch.empty(0))
        counts.num_rows += len(inputs)
        counts.max_rows = max(counts.max_rows, len(inputs))
        mask = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
        if isinstance(mask, Tensor) and mask.shape == inputs.shape[:2]:
            counts.num_positions += mask.numel()
            counts._real_tokens = counts._real_tokens + mask.bool().sum()  # stays on its device: no sync

    def before_step(self, _: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        if self.watch is None:
            return None
        self.counts.num_unwatched += self.watch.is_blind()
        self.watch.inside_optimizer += 1
        outside = self.watch.outside_optimizer
        return (
            tuple(outside(each) if callable(each) else each for each in args),
            {name: outside(each) if callable(each) else each for name, each in kwargs.items()},
        )

    def after_step(self, optimizer: Optimizer, *_: Any) -> None:
        if self.watch is not None:
            self.watch.inside_optimizer -= 1
        held = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        self.counts.num_optimizer_steps += self.model is None or not self.own.isdisjoint(held)


_listeners: weakref.WeakKeyDictionary[nn.Module, list[Counts]] = weakref.WeakKeyDictionary()


def _listeners_of(model: nn.parallel.DistributedDataParallel) -> list[Counts]:
    """Those who hear of each bucket of gradients that `model` reduces; a DDP takes one hook in its life."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    def tell_and_reduce(listeners, bucket):  # type: ignore[no-untyped-def]  # DDP takes no annotation as a string
        for counts in listeners:
            counts.num_gradient_all_reduces += 1
        return allreduce_hook(None, bucket)  # type: ignore[arg-type]

    if model not in _listeners:
        _listeners[model] = []
        model.register_comm_hook(_listeners[model], tell_and_reduce)
    return _listeners[model]
