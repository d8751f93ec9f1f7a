"""No sparse tensors in a process that learner code runs in, and no kernel that takes the cell's word for a size.

What adds a sparse tensor to a dense one looks at no row number, so that it reads and writes beside its memory; and what
a sparse one holds is neither counted as memory nor seen where it is read. Other kernels go by what was true before: by
indices that were looked at when they came, by the size that a parameter had, by a place that a state names.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import arrays  # type: ignore[import-not-found]

#: Through these pass all that make one, by the key of torch's dispatcher: `sparse=True`, `to_sparse`, constructors.
_MAKERS = (
    ("_sparse_coo_tensor_with_dims", "SparseCPU"),
    ("_sparse_coo_tensor_with_dims_and_tensors", "SparseCPU"),
    ("empty.memory_format", "SparseCPU"),
    ("empty.memory_format", "SparseCsrCPU"),
    ("_sparse_compressed_tensor_unsafe", "SparseCsrCPU"),
)
#: The steps of fused optimizers, and how many of their lists hold a tensor as long as each parameter.
_FUSED = {"_fused_adam_": 5, "_fused_adamw_": 5, "_fused_sgd_": 3, "_fused_adagrad_": 3}
_PLACES = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}  # in a table of so many numbers
_NO_REDUCTION = 0  # torch's number for `reduction="none"`
_kept: list[Any] = []


def close(tell: Callable[..., Any] | None = None) -> None:
    """From now on whatever would make a sparse tensor raises RuntimeError, and so does what names a size that is not
    there. Who gives a tensor another size by `data` is told of."""
    if _kept:
        return
    import torch
    from torch.library import Library

    library = Library("aten", "IMPL")
    with warnings.catch_warnings(action="ignore"):  # that it takes the place of torch's
        for name, key in _MAKERS:
            library.impl(name, _refuse, key)
    _kept.append(library)
    for name, num_lists in _FUSED.items():
        setattr(torch, name, _within_memory(getattr(torch, name), num_lists))
    torch.embedding_bag = _of_own_rows(torch.embedding_bag)
    for name in ("cross_entropy_loss", "nll_loss_nd"):
        setattr(torch._C._nn, name, _of_own_targets(getattr(torch._C._nn, name)))
    torch.Tensor.data = _data(tell or (lambda *_: None))  # type: ignore[assignment]
    _close_states()


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError(
        "no sparse tensors where an exercise is checked: take dense ones, as `sparse=False` gives them"
    )


def _within_memory(step: Callable[..., Any], num_lists: int) -> Callable[..., Any]:
    """The kernel writes as many numbers as a parameter has, wherever its gradient and its averages end."""
    import torch

    def checked(parameters: Any, *lists: Any, **options: Any) -> Any:
        with torch._C.DisableTorchFunction():
            sized = zip(*filter(None, (parameters, *lists[: num_lists - 1])), strict=True)
            numbers = itertools.chain(*lists[num_lists - 1 :], options.values())
            if not all(_room(each) >= row[0].numel() for row in sized for each in row) or not all(
                _room(each) for each in numbers if isinstance(each, torch.Tensor)
            ):
                raise RuntimeError(
                    "a parameter has another size than its gradient, or than what the optimizer keeps of it: give a "
                    "new optimizer the parameters as they are now"
                )
        return step(parameters, *lists, **options)

    return checked


def _room(tensor: Any) -> int:
    """How many numbers there are in memory from a tensor's first one on."""
    return int(tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset())


def _of_own_rows(bag: Callable[..., Any]) -> Callable[..., Any]:
    """Forward looks at the rows and backward does not: so they are nobody else's in between. Of where bags begin it
    looks at the first and the last: so none begins before another."""

    def checked(weight: Any, rows: Any, starts: Any, *options: Any) -> Any:
        return bag(weight.view_as(weight), rows.clone(), starts.cummax(0).values, *options)

    return checked


def _of_own_targets(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The same of a loss for each row, whose backward writes where the target says."""

    def checked(scores: Any, target: Any, weight: Any, reduction: int, *options: Any) -> Any:
        own = target.clone() if reduction == _NO_REDUCTION else target
        return loss(scores, own, weight, reduction, *options)

    return checked


def _data(tell: Callable[..., Any]) -> property:
    """`tensor.data`, whose new size no graph and no optimizer hears of."""
    import torch

    found: Any = torch.Tensor.data

    def put(tensor: Any, value: Any) -> None:
        with torch._C.DisableTorchFunction():
            is_another = isinstance(value, torch.Tensor) and value.shape != tensor.shape
        if is_another:
            tell("flag", "the cell gives a tensor another size by `data`, of which no kernel hears")
        found.__set__(tensor, value)

    return property(found.__get__, put, found.__delete__)


def _close_states() -> None:
    """A state of NumPy's generators says where in a table the next number stands, and nobody looks whether it does."""
    import numpy as np

    for name, (key, most) in _PLACES.items():
        kind = getattr(np.random, name)
        arrays.put(kind, {"state": _state(vars(kind)["state"], name, key, most)})


def _state(found: Any, name: str, key: str, most: int) -> property:
    def put(generator: Any, value: Any) -> None:
        kept = generator.state
        found.__set__(generator, value)
        now = generator.state
        if not 0 <= now.get(key, now["state"].get(key, 0)) <= most:
            found.__set__(generator, kept)
            raise ValueError(f"a state of {name} has {key!r} from 0 to {most}")

    return property(found.__get__, put)
