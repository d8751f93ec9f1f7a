"""`TrainConfig`: every choice of a run in one frozen object, checked when it is made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.base import Key, KeysDoc, UserError, as_field, check_keys, read_keys, read_yaml
from course_lib.runs.checks import (
    AUTO,
    BUILT_IN_DATA,
    LOWER_IS_BETTER,
    MICRO_BATCH_SIZES,
    MODELS,
    check_together,
    settled_model,
)
from course_lib.runs.checks import FRAME as FRAME
from course_lib.training import LR_SCALING_POWERS, OPTIMIZERS, PRECISIONS, SCHEDULES

CHOICES: dict[str, tuple[str, ...]] = {
    "task": ("classification", "multi-label", "regression", "token-classification", "language-modelling"),
    "model": (AUTO, *MODELS),
    "optimizer": (AUTO, *OPTIMIZERS),
    "schedule": SCHEDULES,
    "lr_scaling": tuple(LR_SCALING_POWERS),
    "precision": (AUTO, *PRECISIONS),
    "compile": (AUTO, "on", "off"),
    "sharding": ("ddp", "fsdp"),
    "monitor": ("loss", "accuracy", "macro_f1", "micro_f1", "mae", "rmse", "r2"),
}
DEFAULT_MONITORS = {"classification": "macro_f1"}
"""By task; the loss elsewhere."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run. Raises UserError when a value cannot be used; the message names the key."""

    # A comment of one line heads what follows, and a docstring says what the key above it means, in which unit:
    # `train --help`, help(TrainConfig) and docs/config.md are made of both (`base/keys.py`), with CHOICES and _RANGES.

    # Data

    data: str
    """`docstrings` for the built-in data of the task, `frame` for one given to `run_training`, else the path of a
    table: CSV, TSV, JSON Lines, a JSON array or Parquet."""
    task: str = "classification"
    """What is learned: a label of each text, several labels, a number, a label of each token, or the next token."""
    text_column: str | None = None
    """Column of the texts. None: `text`, else found and said."""
    label_column: str | None = None
    """Column of the labels. None: `label`, else found and said."""
    encoding: str | None = None
    """Of a text file, such as `cp1252`. None: UTF-8, UTF-16 or cp1252, as found and said."""
    has_header: bool | None = None
    """Whether the first row of a CSV or TSV names its columns. None: found and said."""
    validation: float = 0.1
    """Share of the data held out to validate on, where there is no `validation_data`."""
    validation_data: str | None = None
    """A table to validate on; all of `data` is trained on then."""
    test_data: str | None = None
    """A table on which the best weights are scored at the end."""
    vocab_size: int = 8192
    """Tokens of the trained vocabulary at most."""
    max_length: int = 256
    """Tokens kept of each text."""

    # Model

    model: str = AUTO
    """`ngrams`: bags of n-grams of words and characters; `joined`: those and our transformer; `auto`: the best on the
    validation part of those that `time_limit` has room for, or `transformer` where one of its keys is set."""
    time_limit: float | None = None
    """Seconds in which `model=auto` tries models before it trains one. None: four times as long as n-grams are
    expected to train."""
    hf_model: str | None = None
    """Folder of a Hugging Face checkpoint: its model and tokenizer instead of ours."""
    init_from: str | None = None
    """Folder of a run whose best weights this one starts from, and whose tokenizer it takes. None: from scratch."""
    d_model: int = 64
    """Width of our transformer: numbers per token. A multiple of `num_heads`."""
    num_layers: int = 2
    """Blocks of our transformer."""
    num_heads: int = 4
    """Attention heads of each block."""
    dropout: float = 0.1
    """Share of activations set to zero while our models train."""
    lora_rank: int = 0
    """Above 0: the weights are frozen and adapters of this rank are trained."""
    use_low_bit_base: bool = False
    """With LoRA: keep the frozen weights as 8-bit integers."""

    # Batches

    micro_batch_size: int | str | None = None
    """Samples per forward pass on each process; `auto`: the largest that fits into memory, on CUDA the smallest
    that fills the GPU. None: 32, with n-grams 128, 64 for `joined`."""
    grad_accum_steps: int = 1
    """Micro-batches per update, on each process."""
    global_batch_size: int | None = None
    """Samples per update over all processes; sets `grad_accum_steps`."""
    lr_scaling: str = "none"
    """How `learning_rate` grows with the global batch above `base_batch_size`."""
    base_batch_size: int = 32
    """The global batch, in samples, that `learning_rate` was chosen for."""

    # Optimizer and schedule

    optimizer: str = AUTO
    """What makes updates of gradients; `auto`: muon for blocks that begin at random, where torch has it, else adamw."""
    learning_rate: float = 1e-3
    """Peak learning rate, reached after the warmup."""
    embedding_lr_ratio: float = 20.0
    """How many times as fast embeddings learn that start at random: those of our models, but language models, whose
    head they are."""
    layer_decay: float = 1.0
    """Below 1: each layer learns at this share of the rate of the layer above it."""
    weight_decay: float = 0.01
    """Share of a weight, times the learning rate, that an update takes away; not from biases and norms."""
    max_norm: float = 1.0
    """Gradients are scaled down to this total norm; `.inf` turns clipping off."""
    label_smoothing: float = 0.0
    """Share of each label's probability that is spread over all labels."""
    schedule: str = "linear"
    """How the learning rate goes on after the warmup."""
    warmup_fraction: float = 0.1
    """Share of all steps in which the learning rate rises."""
    final_learning_rate_ratio: float = 0.0
    """Where the schedule ends, as a share of the peak."""
    num_cycles: int = 3
    """Cycles of `cosine-restarts`, equally long."""

    # Precision, memory, processes

    precision: str = AUTO
    """Number format of matrix products; the weights stay fp32."""
    activation_checkpointing: bool = False
    """Compute activations again in backward instead of keeping them."""
    compile: str = "off"
    """Let torch compile the model first; `auto`: only if that is measured to save more time than it takes."""
    sharding: str = "ddp"
    """How several processes share the work: `ddp` copies the model, `fsdp` splits it."""
    cpu_offload: bool = False
    """With `fsdp`: parameters wait in main memory."""

    # Length, and what is best

    max_epochs: int | None = None
    """Passes over the training part. None: as many as make about 500 steps, within 3 and 100."""
    max_steps: int | None = None
    """Updates at most. None: the epochs decide."""
    early_stopping_patience: int | None = None
    """Validations without improvement before the run ends. None: it does not end early."""
    min_delta: float = 0.0
    """By how much `monitor` must improve to count, in its own unit."""
    monitor: str | None = None
    """Validation metric that chooses `best.pt` and stops early. None: `macro_f1` for classification, else `loss`."""
    target: float | None = None
    """Value of `monitor` whose time and cost are reported."""

    # Seed and device

    seed: int = 0
    """Of first weights, order and dropout. What is held out does not depend on it."""
    is_deterministic: bool = False
    """Refuse operations without a deterministic version (matters on GPUs)."""
    device: str = AUTO
    """`auto`, `cpu`, `cuda`, `cuda:1`, `mps`."""

    # Records and checkpoints

    log_every_steps: int = 20
    """Steps between two records of training."""
    validate_every_steps: int | None = None
    """Steps between two validations. None: at the end of each epoch only."""
    checkpoint_every_steps: int = 100
    """`last.pt` is saved at the first log at or after so many steps, and at the end of each epoch."""
    checkpoint_every_seconds: float | None = None
    """`last.pt` is saved at the first log after so many seconds, instead of by steps and epochs."""
    keep_checkpoints: int = 0
    """How many numbered copies of `last.pt` stay beside it."""
    use_async_checkpoints: bool = False
    """Write checkpoints in a thread while training goes on."""
    profile_steps: int = 0
    """Above 0: profile so many steps and write where their time went."""
    trackers: str = ""
    """Besides metrics.jsonl: `mlflow`, `wandb`, or both as `mlflow,wandb`. TensorBoard's events are written wherever
    it is installed; `tensorboard` refuses to begin without it."""

    # Cost

    price_per_hour: float | None = None
    """Money, in `currency`, for an hour of the run, all its processes together."""
    currency: str = "EUR"
    """Name of the money in reports."""
    budget: float | None = None
    """Money, in `currency`: the run saves and stops before it is spent."""

    def __post_init__(self) -> None:
        if isinstance(self.compile, bool):  # as YAML reads on and off, and as configs of before had it
            object.__setattr__(self, "compile", "on" if self.compile else "off")
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, as_field(field, getattr(self, field.name)))
        if self.monitor is None:
            object.__setattr__(self, "monitor", DEFAULT_MONITORS.get(self.task, "loss"))
        for name, (low, high, says) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, int | float) and not low <= value <= high:
                raise UserError(f"{name} must be {says}, got {value}")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        object.__setattr__(self, "model", settled_model(self))
        if self.micro_batch_size is None:
            object.__setattr__(self, "micro_batch_size", MICRO_BATCH_SIZES.get(self.model))
        check_together(self)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "config") -> TrainConfig:
        """Unknown keys raise UserError, naming the nearest known one."""
        check_keys(values, known_keys(), source=source)
        if "data" not in values:
            raise UserError(f"{source} has no 'data': give the path of a table, or {BUILT_IN_DATA!r}")
        return cls(**values)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all values that shape the weights, whatever the order of keys. The path of the data is
        left out (its content has a fingerprint of its own), and so is what only records and pays."""
        values = {name: value for name, value in self.to_dict().items() if name not in WITHOUT_EFFECT}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def metric(self) -> str:
        """`monitor`, which has a name as soon as the config is made."""
        assert self.monitor is not None
        return self.monitor

    @property
    def higher_is_better(self) -> bool:
        return self.monitor not in LOWER_IS_BETTER


WITHOUT_EFFECT = frozenset(
    {
        "data",
        "validation_data",
        "test_data",
        "text_column",
        "label_column",
        "encoding",
        "has_header",
        "time_limit",
    }
    | {"log_every_steps", "checkpoint_every_steps", "checkpoint_every_seconds", "keep_checkpoints"}
    | {"use_async_checkpoints", "price_per_hour", "currency", "budget", "target", "trackers", "profile_steps"}
)
"""Keys that may differ between a checkpoint and the run that resumes it."""

_COUNTS = (
    *("max_length", "d_model", "num_layers", "num_heads", "micro_batch_size", "max_epochs", "max_steps"),
    *("log_every_steps", "checkpoint_every_steps", "validate_every_steps", "grad_accum_steps"),
    *("global_batch_size", "base_batch_size", "num_cycles", "early_stopping_patience"),
)
_TINY = math.ulp(0.0)
_BELOW_ONE = math.nextafter(1.0, 0.0)
_RANGES: dict[str, tuple[float, float, str]] = {
    **dict.fromkeys(_COUNTS, (1, 2**31 - 1, "at least 1 and at most 2147483647")),
    **dict.fromkeys(("lora_rank", "keep_checkpoints", "profile_steps"), (0, 2**31 - 1, "0 or more")),
    "validation": (_TINY, _BELOW_ONE, "above 0 and below 1"),
    **dict.fromkeys(("dropout", "label_smoothing"), (0.0, _BELOW_ONE, "at least 0 and below 1")),
    **dict.fromkeys(("final_learning_rate_ratio", "warmup_fraction"), (0.0, 1.0, "between 0 and 1")),
    **dict.fromkeys(
        ("checkpoint_every_seconds", "price_per_hour", "budget", "time_limit"), (_TINY, 1e12, "above 0")
    ),
    # 256 bytes and 3 special tokens are always in the vocabulary.
    "vocab_size": (259, 2**24, "between 259 and 16777216"),
    "learning_rate": (_TINY, 1e3, "above 0 and at most 1000"),
    "embedding_lr_ratio": (_TINY, 1e3, "above 0 and at most 1000"),
    "layer_decay": (_TINY, 1.0, "above 0 and at most 1"),
    "weight_decay": (0.0, 1e3, "between 0 and 1000"),
    "min_delta": (0.0, 1e9, "at least 0"),
    "max_norm": (_TINY, math.inf, "above 0 (.inf for no clipping)"),
    "seed": (0, 2**32 - 1, "between 0 and 4294967295"),
}


OLD = {"model": "transformer"}
"""What the config of a run means that was made before there was the key."""

TrainConfig.__doc__ = KeysDoc(TrainConfig.__doc__, CHOICES, _RANGES)  # type: ignore[assignment]


def config_keys() -> list[Key]:
    """Each key with its section, default, values and meaning."""
    return read_keys(TrainConfig, CHOICES, _RANGES)


def known_keys() -> list[str]:
    return [field.name for field in dataclasses.fields(TrainConfig)]


def read_config(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file (JSON is YAML too), keys checked.

    Raises UserError naming the file and the line.
    """
    values = read_yaml(path)
    check_keys(values, known_keys(), source=str(path))
    return values
