"""Where values leave torch: which calls read them, and which memory Python can look into without a call.

Between a device and Python stands one rule: a value that the device computed is there when Python has waited for it.
On a CPU nobody waits, and memory that NumPy shares is read without torch's knowledge. So that the same line counts
alike on both, a *result* (what was computed of the model's weights) that is written into such memory is a sync. A copy
by `.cpu()` is one where a device would hold what is copied: a result, or what `.to(device)` brought there and what
comes of that. What was copied is on the host: to read it again costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

# Operators whose result is a Python number (`.item()`, `if t:`, `torch.equal`) or has a shape that hangs on values
# (`x[mask]`, `nonzero`, `unique`): torch marks most of both kinds. The others (`_pack_padded_sequence`) are found by
# trying: `_needs_values`.
_VALUE_TAGS = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})
# These draw as many random numbers as the values say, which the generator's state tells afterwards.
_DRAWING = frozenset({"aten::poisson", "aten::binomial", "aten::_standard_gamma", "aten::_sample_dirichlet"})
# These copy values out without any operator, so they are seen one level higher.
COPIES = frozenset(
    {
        *(Tensor.tolist, Tensor.__repr__, Tensor.__format__, Tensor.__reduce_ex__),
        *(Tensor.apply_, Tensor.map_, Tensor.map2_),  # call a function of Python with each value
    }
)
# A list of tensors as numbers: each is read by itself.
_FROM_LISTS = frozenset({torch.tensor, torch.as_tensor, torch.asarray})
# These are made of other operators, and read a shape from memory on the way: from which of their arguments.
_SHAPES: dict[Any, Callable[[Any, dict[str, Any]], Sequence[Any]]] = {
    torch.tensor_split: lambda args, kwargs: (*args[1:], *kwargs.values()),
    Tensor.tensor_split: lambda args, kwargs: (*args[1:], *kwargs.values()),
    torch.sparse_coo_tensor: lambda args, kwargs: () if len(args) > 2 or "size" in kwargs else args[:1],
}
# And these hand out the memory itself: whatever is written there later can be read.
HANDS_OUT = frozenset(
    {
        *(Tensor.numpy, Tensor.__array__, Tensor.__dlpack__, Tensor.data_ptr),
        *(Tensor.untyped_storage, Tensor.storage, Tensor._typed_storage, Tensor.share_memory_),
    }
)
_FRESH = torch.ops.aten.lift_fresh.default  # what `torch.tensor` and `from_numpy` have made passes through it

_ALONE = 2  # holders of a storage: a tensor, and Python's view of the storage
_INDEX = torch.ops.aten.index.Tensor


class Values:
    """Follows results through the operators of a thread. `in_model(key)`: whether a storage is the model's own, such as
    its weights, buffers and gradients."""

    def __init__(self, weights: Iterable[int], in_model: Callable[[int], bool]) -> None:
        self._results, self._in_model = set(weights), in_model
        self._host, self._open, self._made, self._moved = set[int](), set[int](), set[int](), set[int]()
        self._known: dict[Any, tuple[bool, tuple[tuple[int, str], ...]]] = {}

    def is_read_by(self, func: Any, args: Any, kwargs: dict[str, Any], given: set[int]) -> bool:
        """Whether Python waits for an operator: for its result, or for what it writes where Python can look.

        `given` are the storages of its arguments.
        """
        is_reading, written = self._about(func, args, kwargs)
        if (
            is_reading
        ):  # of an index a mask alone, not numbers of rows; of what has no storage nobody knows the place
            is_on_host = given and given <= self._host
            return not is_on_host and (func is not _INDEX or any(map(_is_mask, tensors_of(args[1]))))
        if not written or self._results.isdisjoint(given):
            return False
        return any(map(self._is_open, self._targets(written, args, kwargs)))

    def gives_values(self, func: Any) -> bool:
        """Whether its result is, or hangs on, values by torch's own word; of others it is what trying has shown."""
        return not _VALUE_TAGS.isdisjoint(func.tags)

    def follow(self, func: Any, args: Any, kwargs: dict[str, Any], given: set[int], found: set[int]) -> None:
        """What an operator has made of arguments with the storages `given`: a result with those that are `found`."""
        _, written = self._about(func, args, kwargs)
        changed = set(keys_of(self._targets(written, args, kwargs))) if written else set[int]()
        self._made |= found if func is _FRESH else found - given
        if self._host:
            if given and given <= self._host:
                self._host |= found
            else:
                self._host -= changed
        if not self._results.isdisjoint(given):
            self._results |= found | changed
        if not self._moved.isdisjoint(given):
            self._moved |= found | changed

    def written_by(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Iterator[Tensor]:
        """The tensors into which an operator writes."""
        return self._targets(self._about(func, args, kwargs)[1], args, kwargs)

    def copied(self, tensor: Tensor) -> bool:
        """A tensor is brought to the host: whether Python waits for it there."""
        key = storage_of(tensor)._cdata
        is_new = key not in self._host and (key in self._results or key in self._moved)
        self._host.add(key)
        return is_new

    def moved(self, tensor: Tensor) -> None:
        """A tensor is brought to the model's device: on a CPU it stays what it is, with the same storage."""
        key = storage_of(tensor)._cdata
        self._moved.add(key)
        self._host.discard(key)

    def are_results(self, keys: Iterable[int]) -> bool:
        """Whether one of these storages holds what was computed of the model."""
        return not self._results.isdisjoint(keys)

    def is_on_host(self, tensor: Tensor) -> bool:
        return storage_of(tensor)._cdata in self._host

    def hand_out(self, tensor: Tensor) -> None:
        """Python has the memory of this tensor."""
        self._open.add(storage_of(tensor)._cdata)

    def unlearn(self, func: Any) -> None:
        """An operator has failed, and may have been tried on what no operator takes."""
        self._known.pop(func, None)

    def forget(self, key: int) -> None:
        """A storage is gone, and its number may come again."""
        for keys in (self._results, self._host, self._open, self._made, self._moved):
            keys.discard(key)

    def _is_open(self, tensor: Tensor) -> bool:
        """Whether Python may look into its memory: it was handed out, came from elsewhere, or somebody else has held it
        since before."""
        storage = storage_of(tensor)
        if storage._cdata in self._open or storage.is_shared() or not storage.resizable():
            return True
        is_alone = torch._C._storage_Use_Count(storage._cdata) <= _ALONE
        return not (is_alone or storage._cdata in self._made or self._in_model(storage._cdata))

    def _targets(
        self, written: tuple[tuple[int, str], ...], args: Any, kwargs: dict[str, Any]
    ) -> Iterator[Tensor]:
        for place, name in written:
            yield from tensors_of([args[place] if place < len(args) else kwargs.get(name)])

    def _about(
        self, func: Any, args: Any, kwargs: dict[str, Any]
    ) -> tuple[bool, tuple[tuple[int, str], ...]]:
        """Whether an operator's result hangs on values; and place and name of the arguments that it writes into."""
        if func not in self._known:
            named = enumerate(func._schema.arguments)
            written = tuple((n, a.name) for n, a in named if _is_written(a))
            is_reading = not _VALUE_TAGS.isdisjoint(func.tags) or func._schema.name in _DRAWING
            is_reading = is_reading or _needs_values(func, args, kwargs)
            self._known[func] = is_reading, written
        return self._known[func]


def _is_written(argument: Any) -> bool:
    """Whether an operator writes into an argument: by its own word, or where torch has none. Batch norms say nothing of
    the averages that they move."""
    says = argument.alias_info is not None and argument.alias_info.is_write
    return says or bool(argument.name.startswith("running_"))


def _needs_values(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether an operator of torch's own cannot do with shapes alone, as tensors without memory have them."""
    given, treespec = tree_flatten((args, kwargs))
    if func.namespace != "aten" or any(isinstance(each, torch.UntypedStorage) for each in given):
        return False
    args, kwargs = tree_unflatten([_without_memory(each) for each in given], treespec)
    try:
        func(*args, **kwargs)
    except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError):
        return True
    return False


def _without_memory(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to("meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


class Reads(TorchFunctionMode):
    """Sees the calls that read values without an operator."""

    def __init__(self, values: Values, note_sync: Callable[[], None]) -> None:
        super().__init__()
        self.values, self.note_sync, self.is_within = values, note_sync, False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        read: Sequence[Tensor] = ()
        if func in COPIES or func in HANDS_OUT:
            read = args[:1]
        elif shape := _SHAPES.get(func):
            read = [each for each in shape(args, kwargs) if isinstance(each, Tensor)]
        if read:
            tensor = read[0]
            if not self.values.is_on_host(tensor):
                self.note_sync()
            self.is_within = True  # what is read on the way is read once
            try:
                return func(*args, **kwargs)
            finally:
                self.is_within = False
                if func in HANDS_OUT:
                    self.values.hand_out(tensor)
        copied: Iterable[Tensor] = ()
        if func is Tensor.cpu or (func is Tensor.to and _to_cpu(*args[1:], **kwargs)):
            copied = args[:1]
        elif func in _FROM_LISTS and args and isinstance(args[0], list | tuple):
            copied = tensors_of(args[0])
        elif func is Tensor.to and any(
            isinstance(each, torch.device) for each in (*args[1:], kwargs.get("device"))
        ):
            self.values.moved(args[0])
        for tensor in copied:
            if self.values.copied(tensor):
                self.note_sync()
        return func(*args, **kwargs)


def _to_cpu(*args: Any, device: Any = None, non_blocking: bool = False, **_: Any) -> bool:
    """Whether `tensor.to(…)` names the CPU, and waits. A `torch.device` in a variable says where the model is."""
    return not non_blocking and any(isinstance(each, str) and each == "cpu" for each in (device, *args))


def _is_mask(index: Tensor) -> bool:
    return index.dtype in (torch.bool, torch.uint8)


def storage_of(tensor: Tensor) -> Any:
    """The storage, without this module's seeing it asked for."""
    with torch._C.DisableTorchFunction():
        return tensor.untyped_storage()


def keys_of(values: Iterable[Any]) -> Iterator[int]:
    return (storage_of(tensor)._cdata for tensor in tensors_of(values))


def tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    """Those among the arguments of an operator, which nests them one deep in lists; of sparse ones their parts are."""
    for value in values:
        if isinstance(value, Tensor):
            if value.layout is torch.strided:
                yield value
        elif isinstance(value, list | tuple):
            yield from tensors_of(value)


def opaque_of(values: Iterable[Any]) -> Iterator[Tensor]:
    """Those that have a layout of their own, and keep their elements where no storage shows them."""
    for value in values:
        if isinstance(value, Tensor):
            if value.layout is torch._mkldnn:  # type: ignore[attr-defined]
                yield value
        elif isinstance(value, list | tuple):
            yield from opaque_of(value)
