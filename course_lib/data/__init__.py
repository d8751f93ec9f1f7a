"""Data: a built-in corpus, the learner's CSV, tokenizer, token store, and batches with little padding."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_lib.data.batching import BucketBatchSampler, collate, pad_fraction
    from course_lib.data.cache import cache_dir
    from course_lib.data.corpus import load_docstrings
    from course_lib.data.store import TokenStore, docstring_store
    from course_lib.data.tables import load_csv
    from course_lib.data.texts import Texts, split
    from course_lib.data.tokenizer import load_tokenizer, save_tokenizer, train_tokenizer

_MODULE_OF = {
    "BucketBatchSampler": "batching",
    "Texts": "texts",
    "TokenStore": "store",
    "cache_dir": "cache",
    "collate": "batching",
    "docstring_store": "store",
    "load_csv": "tables",
    "load_docstrings": "corpus",
    "load_tokenizer": "tokenizer",
    "pad_fraction": "batching",
    "save_tokenizer": "tokenizer",
    "split": "texts",
    "train_tokenizer": "tokenizer",
}

__all__ = [
    "BucketBatchSampler",
    "Texts",
    "TokenStore",
    "cache_dir",
    "collate",
    "docstring_store",
    "load_csv",
    "load_docstrings",
    "load_tokenizer",
    "pad_fraction",
    "save_tokenizer",
    "split",
    "train_tokenizer",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, so that `import course_lib.data` costs nothing."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
