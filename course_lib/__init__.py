"""A training library for PyTorch: fast loops, honest measurements, reproducible runs.

Names are loaded when they are first used, so `import course_lib` costs next to nothing and needs PyTorch and
NumPy alone.
"""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.base.errors import UserError
    from course_lib.data.batching import BucketBatchSampler, collate, pad_fraction
    from course_lib.data.store import TokenStore, docstring_store
    from course_lib.data.tables import load_table
    from course_lib.data.tokenizer import train_tokenizer
    from course_lib.measuring.bench import paired_speedup
    from course_lib.measuring.counters import count_events
    from course_lib.measuring.naive import naive_epoch
    from course_lib.models.transformers import ModelConfig, TextClassifier
    from course_lib.runs.config import TrainConfig
    from course_lib.runs.train import run_training
    from course_lib.training.loop import evaluate, fit, train_one_epoch, train_step
    from course_lib.training.optim import make_optimizer
    from course_lib.training.reproducibility import seed_everything
    from course_lib.training.schedules import make_schedule, plot_schedule, warmup_cosine

__path__.append(f"{__path__[0]}/old_names")  # what has moved is still found under its old name
__getattr__, __dir__, __all__ = attach(__name__, __file__)
