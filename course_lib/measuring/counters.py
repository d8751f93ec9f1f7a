"""Costs that can be counted: no clock, no noise, the same number on every machine.

A *sync* is a place where Python must know the value of a tensor, or a shape that hangs on values. A GPU program then
waits until all queued work is done; on a CPU it costs little, but it is the same line of code and counted alike.

What can be trusted: the counts live in the process of the code that they count, and Python lets code change anything
there. They tell an honest author the truth. A grader should load this module before any foreign code, have each event
told to another process as it happens (`on_event`), take `num_unwatched` > 0 for "there was more", and derive for itself
what it can: rows, tokens and steps follow from the data it handed out, FLOPs from the model's shapes.
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

from course_lib.measuring.counts import Counts, OnEvent
from course_lib.measuring.operators import Note, Operators, SavedBytes
from course_lib.measuring.reads import Values, keys_of, tensors_of
from course_lib.measuring.threads import following


@contextmanager
def count_events(
    model: nn.Module | None = None, *, operators: bool = True, on_event: OnEvent | None = None
) -> Iterator[Counts]:
    """Count what this thread does until the block ends, and those that begin meanwhile; and which steps and calls of
    `model` there are in any.

    `operators=False` counts forwards, rows, tokens, DDP's reductions and optimizer steps alone: cheap enough under
    a clock. The rest looks at every operator and makes steps several times slower: count and time in different runs.
    What `torch.compile` has compiled runs uncompiled meanwhile. A DDP keeps the hook that counts for good, and raises
    RuntimeError when it has another one already.

    `on_event(name, amount)` is called at each event, before it is in the counts, and in the thread that it happens in:
    `on_event("num_syncs", 1)`. With it each forward reads the number of its tokens, on a device a sync that is not
    counted.
    """
    counts = Counts()
    note = _noting(counts, on_event)
    with ExitStack() as stack:
        hooks = _Hooks(note, model, told=on_event is not None)
        if operators:
            values = Values(hooks.own_storages, hooks.is_of_model)
            hooks.watch = watch = Operators(note, values, hooks.is_weight)
        stack.callback(register_optimizer_step_pre_hook(hooks.before_step).remove)
        stack.callback(register_optimizer_step_post_hook(hooks.after_step).remove)
        if model is not None:
            stack.callback(model.register_forward_pre_hook(hooks.before_forward, with_kwargs=True).remove)
        if isinstance(model, nn.parallel.DistributedDataParallel):
            listeners = _listeners_of(model)
            listeners.append(note)
            stack.callback(listeners.remove, note)
        if operators:
            saved = SavedBytes(note, hooks.own_storages)
            stack.enter_context(saved_tensors_hooks(saved.pack, lambda kept: kept.tensor))
            stack.enter_context(following(watch))
            stack.enter_context(watch.reads)
            stack.enter_context(watch)
        yield counts


def _noting(counts: Counts, on_event: OnEvent | None) -> Note:
    if on_event is None:
        return counts.note

    def note(name: str, amount: int = 1) -> None:
        on_event(name, amount)
        counts.note(name, amount)

    return note


def peak_bytes(step: Callable[[], Any], device: torch.device, *, on_event: OnEvent | None = None) -> int:
    """Run `step`; returns the most bytes that were live at one time in tensors made since its start.

    On CUDA the allocator's own peak, of which `on_event` hears nothing. Elsewhere counted at each operator, so the
    number is exact and the same on each run; what an operator takes and gives back inside itself is not seen.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        return torch.cuda.max_memory_allocated(device) - before
    counts = Counts()
    with Operators(_noting(counts, on_event)):
        step()
    return counts.peak_live_bytes


class _Hooks:
    """What is told of the model's calls and of all optimizers' steps, whatever thread they run in."""

    def __init__(self, note: Note, model: nn.Module | None, *, told: bool) -> None:
        self.note, self.model, self.told = note, model, told
        self.watch: Operators | None = None
        self.parameters = parameters = [] if model is None else list(model.parameters())
        self.own = frozenset(map(id, parameters))
        self.own_storages = frozenset(keys_of(parameters))
        self.averages = set[int]()

    def __deepcopy__(self, _: dict[int, Any]) -> _Hooks:
        return self  # a copy of the model has its hooks, and is seen by the same eyes

    def is_weight(self, key: int) -> bool:
        """Whether a storage is that of a parameter that the model began with, of its gradient, or of an average that an
        optimizer has of it."""
        gradients = (parameter.grad for parameter in self.parameters if parameter.grad is not None)
        return key in self.own_storages or key in self.averages or key in keys_of(gradients)

    def is_of_model(self, key: int) -> bool:
        """Whether a storage is one of its weights, buffers or gradients, as they are now."""
        if self.model is None:
            return True
        weights = list(self.model.parameters())
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        return key in keys_of([weights, list(self.model.buffers()), gradients])

    def before_forward(self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`input_ids` [B, T] is the first tensor; `attention_mask` [B, T] comes by name or in the second place."""
        note = self.note
        note("num_forwards")
        if self.watch is not None and self.watch.is_blind():
            note("num_unwatched")
        tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim)
        inputs = next(tensors, torch.empty(0))
        note("num_rows", len(inputs))
        note("max_rows", len(inputs))
        mask = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
        if isinstance(mask, Tensor) and mask.shape == inputs.shape[:2]:
            note("num_positions", mask.numel())
            tokens = mask.bool().sum()  # stays on its device
            note("num_tokens", self._read(tokens) if self.told else tokens)

    def _read(self, number: Tensor) -> int:
        if self.watch is None:
            return int(number)
        self.watch.is_paused = True  # no sync of the author's
        try:
            return int(number)
        finally:
            self.watch.is_paused = False

    def before_step(self, optimizer: Optimizer, *_: Any) -> None:
        state = ((p, optimizer.state[p].values()) for p in self.parameters if p in optimizer.state)
        self.averages |= {
            key for p, held in state for t in tensors_of(held) if t.shape == p.shape for key in keys_of([t])
        }
        if self.watch is not None and self.watch.is_blind():
            self.note("num_unwatched")

    def after_step(self, optimizer: Optimizer, *_: Any) -> None:
        held = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        if self.model is None or not self.own.isdisjoint(held):
            self.note("num_optimizer_steps")


_listeners: weakref.WeakKeyDictionary[nn.Module, list[Note]] = weakref.WeakKeyDictionary()


def _listeners_of(model: nn.parallel.DistributedDataParallel) -> list[Note]:
    """Those who hear of each bucket of gradients that `model` reduces; a DDP takes one hook in its life."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    def tell_and_reduce(listeners, bucket):  # type: ignore[no-untyped-def]  # DDP takes no annotation as a string
        for note in listeners:
            note("num_gradient_all_reduces")
        return allreduce_hook(None, bucket)  # type: ignore[arg-type]

    if model not in _listeners:
        _listeners[model] = []
        model.register_comm_hook(_listeners[model], tell_and_reduce)
    return _listeners[model]
