"""A training library for PyTorch: fast loops, honest measurements, reproducible runs.

*Train my table.* A `TrainConfig` names the data and every choice. `run_training` makes a run folder of it. From that a
`Predictor` answers for texts, `evaluate_run` judges it on another table, `compare_runs` says what differs between two,
`tune` trains many as a `Search` says, and `export_run` writes the model for other programs.

*My own loop.* `fit` trains any module on any batches: `train_step` is one update, `evaluate` judges. It tells each
`Callback` where the run is, by `TrainState`: `EarlyStopping` ends it, `Checkpointer` keeps it, by `capture`,
`load_checkpoint` and `restore`. `BucketBatchSampler` orders texts by length, `Batches` collates them, `ShardedOrder`
deals them out to processes. `make_optimizer`, `make_schedule` and `resolve_precision`, which gives a `Precision`, go by
the names that a config has. `seed_everything` comes first. What a user can mend is a `UserError`, a loss that is no
number a `NonFiniteError`.

*Measure.* `paired_speedup` times two ways against each other, `count_events` counts what a clock only guesses,
`peak_bytes` is the memory of a step; `naive_epoch` is the loop to beat.

Beside them stand the parts that these are made of: `load_table`, `train_tokenizer`, `TokenStore`, `docstring_store`,
`collate`, `pad_fraction`, `evaluation_batches`, `ModelConfig`, `TextClassifier`, `train_one_epoch`, `plot_schedule`,
`warmup_cosine`.

Each name has an example in docs/python.md, and `help()` says shapes, units and errors. Names are loaded when they are
first used, so `import course_lib` costs next to nothing and needs PyTorch and NumPy alone.
"""
# ruff: noqa: F401

from typing import TYPE_CHECKING

from course_lib.base.lazy import attach

if TYPE_CHECKING:
    from course_lib.base.errors import UserError
    from course_lib.data.batching import (
        Batches,
        BucketBatchSampler,
        collate,
        evaluation_batches,
        pad_fraction,
    )
    from course_lib.data.sharding import ShardedOrder
    from course_lib.data.store import TokenStore, docstring_store
    from course_lib.data.tables import load_table
    from course_lib.data.tokenizer import train_tokenizer
    from course_lib.measuring.bench import paired_speedup
    from course_lib.measuring.counters import count_events, peak_bytes
    from course_lib.measuring.naive import naive_epoch
    from course_lib.models.transformers import ModelConfig, TextClassifier
    from course_lib.runs.compare import compare_runs
    from course_lib.runs.config import TrainConfig
    from course_lib.runs.train import run_training
    from course_lib.runs.using.evaluate import evaluate_run
    from course_lib.runs.using.export import export_run
    from course_lib.runs.using.predict import Predictor
    from course_lib.training.callbacks import Callback, EarlyStopping, TrainState
    from course_lib.training.checkpoint import Checkpointer, capture, load_checkpoint, restore
    from course_lib.training.loop import evaluate, fit, train_one_epoch, train_step
    from course_lib.training.optim import make_optimizer
    from course_lib.training.precision import Precision, resolve_precision
    from course_lib.training.reproducibility import seed_everything
    from course_lib.training.schedules import make_schedule, plot_schedule, warmup_cosine
    from course_lib.training.window import NonFiniteError
    from course_lib.tuning.search import Search
    from course_lib.tuning.study import tune

__path__.append(f"{__path__[0]}/old_names")  # what has moved is still found under its old name
__getattr__, __dir__, __all__ = attach(__name__, __file__)
