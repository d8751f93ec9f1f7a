"""How operators are seen: syncs, all-reduces, FLOPs, and bytes as they come and go."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from course_lib.measuring.counts import Counts

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


class Operators(TorchDispatchMode):
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

    def outside_optimizer(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """The closure that a step calls: forward and backward are its author's, and no part of the optimizer."""

        def counted() -> Any:
            inside, self.inside_optimizer = self.inside_optimizer, 0
            try:
                return closure()
            finally:
                self.inside_optimizer = inside

        return counted

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


class BulkReads(TorchFunctionMode):
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


class SavedBytes:
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
