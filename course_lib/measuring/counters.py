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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

# Operators whose result is a Python number (`.item()`, `if t:`, `torch.equal`) or has a shape that hangs on values
# (`x[mask]`, `nonzero`, `unique`): torch marks both kinds.
_VALUE_TAGS = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})
# These copy values out without any operator, so they are seen one level higher.
_BULK_READS = frozenset({Tensor.tolist, Tensor.numpy, Tensor.__array__})
# The fused attention of CPUs, which FlopCounterMode does not know; by the shapes of (gradient,) query, key, value.
_FUSED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_FUSED_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
_CPU_ATTENTION: dict[Any, Callable[..., int]] = {
    _FUSED: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
    _FUSED_BACKWARD: lambda *shapes, **_: sdpa_backward_flop_count(*shapes[:4]),
}


@dataclass(eq=False)
class Counts:
    """What happened inside `count_events`. Readable while it runs."""

    num_forwards: int = 0
    """Calls of the model that was given to `count_events`; this and the rest of its paragraph are 0 without one."""
    num_rows: int = 0
    """Rows of all its inputs."""
    max_rows: int = 0
    """Of the largest input."""
    num_positions: int = 0
    """Rows × width, real or padded, of inputs that came with an `attention_mask`."""
    num_gradient_all_reduces: int = 0
    """Buckets of gradients that DDP reduced across processes, counted by a communication hook."""

    num_optimizer_steps: int = 0
    """Of optimizers that hold a parameter of the model; of all without a model. One that GradScaler skips is none."""
    num_syncs: int = 0
    """Values that Python waited for: `.item()`, `float()`, `if tensor`, `.tolist()`, `.numpy()`, `x[mask]`, …"""
    num_all_reduces: int = 0
    """All-reduces of any tensor, DDP's buckets among them."""
    flops: dict[str, int] = field(default_factory=dict)
    """Floating-point operations of matrix products, convolutions and attention by the dtype of their inputs
    (`"float32"`, `"bfloat16"`, …), a multiply-add being 2; with what activation checkpointing computes twice."""
    peak_live_bytes: int = 0
    """The most bytes that were live at one time in tensors made since the start; see `peak_bytes`."""
    peak_saved_bytes: int = 0
    """The most bytes that autograd kept for backward at one time, each storage once, parameters of the model not
    counted. Their copies in a lower precision are: they take memory too."""
    num_unwatched: int = 0
    """Forwards and optimizer steps that ran where operators are not seen (another thread, modes switched off):
    above 0, the counts of this paragraph are lower bounds."""

    _real_tokens: Tensor | int = 0

    @property
    def num_tokens(self) -> int:
        """Real tokens among `num_positions`. Reading it is a sync."""
        return int(self._real_tokens)

    @property
    def num_padded_tokens(self) -> int:
        return self.num_positions - self.num_tokens

    @property
    def pad_fraction(self) -> float:
        """Padded tokens as a share of the positions; 0 … 1, and 0 without positions."""
        return self.num_padded_tokens / max(1, self.num_positions)

    @property
    def total_flops(self) -> int:
        return sum(self.flops.values())

    def share_of_flops(self, *dtypes: str) -> float:
        """Share of the floating-point operations that ran in these dtypes, such as `"bfloat16"`; 0 … 1."""
        return sum(self.flops.get(dtype, 0) for dtype in dtypes) / max(1, self.total_flops)


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
        watch = _Operators(counts) if operators else None
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
            saved = _SavedBytes(counts, hooks.own_storages)
            stack.enter_context(saved_tensors_hooks(saved.pack, lambda kept: kept.tensor))
            stack.enter_context(_BulkReads(watch.note_sync))
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
    with _Operators(counts):
        step()
    return counts.peak_live_bytes


class _Operators(TorchDispatchMode):
    """Sees every operator of its thread: syncs, all-reduces, FLOPs, and storages as they are made and freed."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts, self.live, self.known = counts, 0, dict[int, int]()
        # Its formulas alone: the mode itself keeps hooks on tensors, and with them the memory that they would free.
        self.formulas = FlopCounterMode(display=False, custom_mapping=_CPU_ATTENTION).flop_registry
        self.num_seen = self.inside_optimizer = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled():  # where operators come whole that are made of others
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        self.num_seen += 1
        if not _VALUE_TAGS.isdisjoint(func.tags):
            self.note_sync()
        elif func.namespace == "c10d" and "allreduce" in func.name():
            self.counts.num_all_reduces += 1
        self._note(args, share=0)  # weights, the batch: there before
        self._note(kwargs.values(), share=0)
        result = func(*args, **kwargs)
        self._note([result], share=1)
        self.counts.peak_live_bytes = max(self.counts.peak_live_bytes, self.live)
        if formula := self.formulas.get(func._overloadpacket):
            # Of the first matrix: a bias may stand before it.
            name = next(str(t.dtype) for t in _tensors(args) if t.ndim > 1).removeprefix("torch.")
            flops = formula(*args, **kwargs, out_val=result)
            self.counts.flops[name] = self.counts.flops.get(name, 0) + flops
        return result

    def note_sync(self) -> None:
        if not self.inside_optimizer:  # optimizers read their own step counter, which lives on the host
            self.counts.num_syncs += 1

    def is_blind(self) -> bool:
        """Whether an operator of this thread, at this moment, goes unseen."""
        num_seen = self.num_seen
        torch.empty(0)
        return self.num_seen == num_seen

    def _note(self, values: Iterable[Any], *, share: int) -> None:
        for storage in (tensor.untyped_storage() for tensor in _tensors(values)):
            if storage._cdata not in self.known:
                self.live += self.known.setdefault(storage._cdata, share * storage.nbytes())
                # Python's view of a storage lives as long as the storage, also where autograd alone holds it.
                weakref.finalize(storage, self._forget, storage._cdata).atexit = False

    def _forget(self, key: int) -> None:
        self.live -= self.known.pop(key)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Those among the arguments of an operator, which nests them one deep in lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


class _BulkReads(TorchFunctionMode):
    def __init__(self, note_sync: Callable[[], None]) -> None:
        super().__init__()
        self.note_sync = note_sync

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _BULK_READS:
            self.note_sync()
        return func(*args, **(kwargs or {}))


@dataclass(eq=False)
class _Kept:
    tensor: Tensor  # as autograd keeps it: gone when autograd lets go of it


class _SavedBytes:
    def __init__(self, counts: Counts, own: frozenset[int]) -> None:
        self.counts, self.own, self.live, self.num_holders = counts, own, 0, Counter[int]()

    def pack(self, tensor: Tensor) -> _Kept:
        storage = tensor.untyped_storage()
        kept = _Kept(tensor.detach())  # else a result that is saved keeps itself
        if storage._cdata not in self.own:
            self.live += 0 if self.num_holders[storage._cdata] else storage.nbytes()
            self.num_holders[storage._cdata] += 1
            self.counts.peak_saved_bytes = max(self.counts.peak_saved_bytes, self.live)
            weakref.finalize(kept, self._release, storage._cdata, storage.nbytes()).atexit = False
        return kept

    def _release(self, key: int, num_bytes: int) -> None:
        self.num_holders[key] -= 1
        self.live -= 0 if self.num_holders[key] else num_bytes


class _Hooks:
    """What is told of the model's calls and of all optimizers' steps, whatever thread they run in."""

    def __init__(self, counts: Counts, model: nn.Module | None, watch: _Operators | None) -> None:
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

    def before_step(self, *_: Any) -> None:
        if self.watch is not None:
            self.counts.num_unwatched += self.watch.is_blind()
            self.watch.inside_optimizer += 1

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
