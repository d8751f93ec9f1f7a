"""A training library for PyTorch: fast loops, honest measurements, reproducible runs.

Names are loaded when they are first used, so `import course_lib` costs next to nothing and needs PyTorch and
NumPy alone.
"""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.lazy import attach

if TYPE_CHECKING:
    from course_lib.bench import paired_speedup
    from course_lib.config import TrainConfig
    from course_lib.counters import count_events
    from course_lib.data.batching import BucketBatchSampler, collate, pad_fraction
    from course_lib.data.store import TokenStore, docstring_store
    from course_lib.data.tables import load_table
    from course_lib.data.tokenizer import train_tokenizer
    from course_lib.errors import UserError
    from course_lib.loop import evaluate, fit, train_one_epoch, train_step
    from course_lib.models import ModelConfig, TextClassifier
    from course_lib.naive import naive_epoch
    from course_lib.optim import make_optimizer
    from course_lib.reproducibility import seed_everything
    from course_lib.schedules import make_schedule, plot_schedule, warmup_cosine
    from course_lib.train import run_training

__getattr__, __dir__, __all__ = attach(__name__, __file__)
