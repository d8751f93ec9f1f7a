"""How operators are seen: syncs, all-reduces, FLOPs, and bytes as they come and go."""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from course_lib.measuring.reads import Reads, Values, opaque_of, storage_of, tensors_of

Note = Callable[..., None]
"""`Counts.note`, or what tells somebody else too: the name of what is counted, and how much of it."""

# The fused attention of CPUs, which FlopCounterMode does not know; by the shapes of (gradient,) query, key, value.
_FUSED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_FUSED_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
_CPU_ATTENTION: dict[Any, Callable[..., int]] = {
    _FUSED: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
    _FUSED_BACKWARD: lambda *shapes, **_: sdpa_backward_flop_count(*shapes[:4]),
}

_TORCH = Path(torch.__file__).parent
_OPTIMIZER = str(_TORCH / "optim" / "optimizer.py")
_READS_LOSSES = str(_TORCH / "optim" / "lbfgs.py")  # L-BFGS, which is steered by the numbers of its closure
_OURS = (f"{_TORCH}{os.sep}", f"{Path(__file__).parent}{os.sep}")


class Operators(TorchDispatchMode):
    """Sees every operator of its thread: syncs, all-reduces, FLOPs, and storages as they are made and freed.

    `is_own(key)`: whether a storage is one that a step is there to write into, such as a weight or its gradient.

    Attributes:
        live: bytes of the tensors made since the start that are there now.
        old_bytes_written: those written into tensors that were there before, each place once.
    """

    def __init__(
        self, note: Note, values: Values | None = None, is_own: Callable[[int], bool] = lambda key: False
    ) -> None:
        super().__init__()
        self.note, self.live, self.known = note, 0, dict[int, int]()
        self.values = values or Values((), lambda key: True)
        self.is_own, self.old_bytes_written, self._places = is_own, 0, dict[int, set[tuple[int, int]]]()
        self.reads = Reads(self.values, self.note_sync)
        # Its formulas alone: the mode itself keeps hooks on tensors, and with them the memory that they would free.
        self.formulas = FlopCounterMode(display=False, custom_mapping=_CPU_ATTENTION).flop_registry
        self.num_seen = self._peak = 0
        self.is_paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        split = sys.modules.get("torch.distributed.tensor")
        if split is not None and split.DTensor in types:
            return NotImplemented  # what FSDP2 has split comes again, as operators on the part that is here
        with torch._C.DisableTorchFunction():  # `Reads` is for what the author asks of a tensor
            return self._run(func, args, kwargs or {})

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        if torch.is_inference_mode_enabled():  # where operators come whole that are made of others
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        self.num_seen += 1
        given = self._know(tensors_of((args, *kwargs.values())), share=0)  # weights, the batch: there before
        if is_read := self.values.is_read_by(func, args, kwargs, given):
            self.note_sync(given if self.values.gives_values(func) else ())
        elif func.namespace == "c10d" and "allreduce" in func.name():
            self.note("num_all_reduces")
        try:
            result = func(*args, **kwargs)
        except Exception:
            self.values.unlearn(func)
            if not is_read:  # that it fails may hang on values, as with an index out of bounds
                self.note_sync()
            raise
        self._know_opaque(opaque_of((result,)))
        self.values.follow(func, args, kwargs, given, self._know(tensors_of((result,)), share=1))
        if self.live > self._peak:
            self._peak = self.live
            self.note("peak_live_bytes", self.live)
        for tensor in self.values.written_by(func, args, kwargs):
            self._note_old(tensor)
        formula = self.formulas.get(func._overloadpacket)
        if formula and all(_is_computed_with(each) for each in args if isinstance(each, Tensor)):
            # Of the first matrix: a bias may stand before it.
            name = next(str(t.dtype) for t in tensors_of(args) if t.ndim > 1).removeprefix("torch.")
            self.note(f"flops.{name}", formula(*args, **kwargs, out_val=result))
        return result

    def note_sync(self, read: Collection[int] = ()) -> None:
        """Python waits, for a value in one of these storages. What torch's optimizers read of their own is none: their
        step counter, which lies on the host, but nothing that was computed of the model."""
        if self.is_paused or self.reads.is_within:
            return
        if self.values.are_results(read) or not _is_an_optimizers_own():
            self.note("num_syncs")

    def is_blind(self) -> bool:
        """Whether an operator of this thread, at this moment, goes unseen."""
        num_seen = self.num_seen
        torch.empty(0)
        return self.num_seen == num_seen

    def _know(self, tensors: Iterable[Tensor], *, share: int) -> set[int]:
        """The storages of these tensors, by number."""
        found = set()
        for tensor in tensors:
            storage = tensor.untyped_storage()
            found.add(key := storage._cdata)
            if key not in self.known:
                self.live += self.known.setdefault(key, share * storage.nbytes())
                # Python's view of a storage lives as long as the storage, also where autograd alone holds it.
                weakref.finalize(storage, self._forget, key).atexit = False
            elif self.known[key] and storage.nbytes() != self.known[key]:  # made here, and resized since
                self.live += storage.nbytes() - self.known[key]
                self.known[key] = storage.nbytes()
        return found

    def _know_opaque(self, tensors: Iterable[Tensor]) -> None:
        """Results without a storage that anybody can see, such as those of MKL-DNN: as large as their elements."""
        for tensor in tensors:
            num_bytes = tensor.numel() * tensor.element_size()
            self.live += num_bytes
            weakref.finalize(tensor, self._forget_opaque, num_bytes).atexit = False

    def _forget_opaque(self, num_bytes: int) -> None:
        self.live -= num_bytes

    def _note_old(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if self.known.get(key := storage._cdata) != 0 or storage.nbytes() == 0 or self.is_own(key):
            return
        place = int(tensor.storage_offset()), tensor.nbytes
        if place not in (places := self._places.setdefault(key, set())):
            places.add(place)
            self.old_bytes_written += tensor.nbytes
            self.note("old_bytes_written", tensor.nbytes)

    def _forget(self, key: int) -> None:
        self.live -= self.known.pop(key)
        self._places.pop(key, None)
        self.values.forget(key)


def _is_computed_with(tensor: Tensor) -> bool:
    """Whether an operator really works through it: one that has shapes alone, or hardly an element, costs nothing."""
    return tensor.layout is torch.strided and tensor.untyped_storage().device.type != "meta"


def _is_an_optimizers_own() -> bool:
    """Whether torch's optimizers are reading, such as their own step counter, which lives on the host.

    A closure, a hook or a number of the author's that they call is not: it stands between the reading and the step.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (file := frame.f_code.co_filename).startswith(_OURS):
        if file == _READS_LOSSES:
            return False
        if file == _OPTIMIZER and frame.f_code.co_name == "wrapper":  # what torch makes of each `step`
            return True
        frame = frame.f_back
    return False


@dataclass(eq=False)
class _Kept:
    tensor: Tensor  # as autograd keeps it: gone when autograd lets go of it


class SavedBytes:
    def __init__(self, note: Note, own: frozenset[int]) -> None:
        self.note, self.own, self.live, self.num_holders = note, own, 0, Counter[int]()
        self._peak = 0

    def pack(self, tensor: Tensor) -> _Kept:
        storage = storage_of(tensor)
        kept = _Kept(tensor.detach())  # else a result that is saved keeps itself
        if storage._cdata not in self.own:
            self.live += 0 if self.num_holders[storage._cdata] else storage.nbytes()
            self.num_holders[storage._cdata] += 1
            if self.live > self._peak:
                self._peak = self.live
                self.note("peak_saved_bytes", self.live)
            weakref.finalize(kept, self._release, storage._cdata, storage.nbytes()).atexit = False
        return kept

    def _release(self, key: int, num_bytes: int) -> None:
        self.num_holders[key] -= 1
        self.live -= 0 if self.num_holders[key] else num_bytes
