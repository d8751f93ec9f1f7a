"""A training library for PyTorch: fast loops, honest measurements, reproducible runs.

Names are loaded when they are first used, so `import course_lib` costs next to nothing and needs PyTorch and
NumPy alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course_lib.batches import Batches, evaluation_batches
    from course_lib.bench import paired_speedup
    from course_lib.callbacks import Callback, TrainState
    from course_lib.checkpoint import load_checkpoint, save_checkpoint
    from course_lib.config import TrainConfig
    from course_lib.counters import count_events
    from course_lib.data.batching import BucketBatchSampler, collate, pad_fraction
    from course_lib.data.corpus import load_docstrings
    from course_lib.data.store import TokenStore, docstring_store
    from course_lib.data.tables import load_csv
    from course_lib.data.tokenizer import train_tokenizer
    from course_lib.errors import UserError
    from course_lib.loop import evaluate, fit, train_one_epoch, train_step
    from course_lib.models import ModelConfig, TextClassifier
    from course_lib.naive import naive_epoch
    from course_lib.optim import make_optimizer, warmup_cosine
    from course_lib.reproducibility import seed_everything, weights_sha256
    from course_lib.train import run_training

__all__ = [
    "Batches",
    "BucketBatchSampler",
    "Callback",
    "ModelConfig",
    "TextClassifier",
    "TokenStore",
    "TrainConfig",
    "TrainState",
    "UserError",
    "collate",
    "count_events",
    "docstring_store",
    "evaluate",
    "evaluation_batches",
    "fit",
    "load_checkpoint",
    "load_csv",
    "load_docstrings",
    "make_optimizer",
    "naive_epoch",
    "pad_fraction",
    "paired_speedup",
    "run_training",
    "save_checkpoint",
    "seed_everything",
    "train_one_epoch",
    "train_step",
    "train_tokenizer",
    "warmup_cosine",
    "weights_sha256",
]

_MODULES = {
    "batches": ("Batches", "evaluation_batches"),
    "bench": ("paired_speedup",),
    "callbacks": ("Callback", "TrainState"),
    "checkpoint": ("load_checkpoint", "save_checkpoint"),
    "config": ("TrainConfig",),
    "counters": ("count_events",),
    "data.batching": ("BucketBatchSampler", "collate", "pad_fraction"),
    "data.corpus": ("load_docstrings",),
    "data.store": ("TokenStore", "docstring_store"),
    "data.tables": ("load_csv",),
    "data.tokenizer": ("train_tokenizer",),
    "errors": ("UserError",),
    "loop": ("evaluate", "fit", "train_one_epoch", "train_step"),
    "models": ("ModelConfig", "TextClassifier"),
    "naive": ("naive_epoch",),
    "optim": ("make_optimizer", "warmup_cosine"),
    "reproducibility": ("seed_everything", "weights_sha256"),
    "train": ("run_training",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
