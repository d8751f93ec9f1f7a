"""No sparse tensors in a process that learner code runs in.

What adds a sparse tensor to a dense one looks at no row number, so that it reads and writes beside its memory; and what
a sparse one holds is neither counted as memory nor seen where it is read.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

#: Through these pass all that make one, by the key of torch's dispatcher: `sparse=True`, `to_sparse`, constructors.
_MAKERS = (
    ("_sparse_coo_tensor_with_dims", "SparseCPU"),
    ("_sparse_coo_tensor_with_dims_and_tensors", "SparseCPU"),
    ("empty.memory_format", "SparseCPU"),
    ("empty.memory_format", "SparseCsrCPU"),
    ("_sparse_compressed_tensor_unsafe", "SparseCsrCPU"),
)
_kept: list[Any] = []


def close() -> None:
    """From now on whatever would make a sparse tensor raises RuntimeError."""
    if _kept:
        return
    from torch.library import Library

    library = Library("aten", "IMPL")
    with warnings.catch_warnings(action="ignore"):  # that it takes the place of torch's
        for name, key in _MAKERS:
            library.impl(name, _refuse, key)
    _kept.append(library)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError(
        "no sparse tensors where an exercise is checked: take dense ones, as `sparse=False` gives them"
    )
