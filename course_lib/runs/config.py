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

from course_lib.base import UserError, as_field, check_keys, read_yaml
from course_lib.training import LR_SCALING_POWERS, OPTIMIZERS, PRECISIONS, SCHEDULES

BUILT_IN_DATA = "docstrings"
AUTO = "auto"
TRACKERS = ("mlflow", "tensorboard", "wandb")

CHOICES: dict[str, tuple[str, ...]] = {
    "task": ("classification", "token-classification", "language-modelling"),
    "optimizer": tuple(OPTIMIZERS),
    "schedule": SCHEDULES,
    "lr_scaling": tuple(LR_SCALING_POWERS),
    "precision": (AUTO, *PRECISIONS),
    "sharding": ("ddp", "fsdp"),
    "monitor": ("loss", "accuracy", "macro_f1"),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run. Raises UserError when a value cannot be used; the message names the key."""

    data: str
    """`"docstrings"` for the built-in data of the task, else the path of a CSV, JSON Lines or Parquet file."""
    task: str = "classification"
    validation: float = 0.1
    """Share of the data held out, in (0, 1)."""
    vocab_size: int = 8192
    """Upper bound of the trained vocabulary."""
    max_length: int = 256
    """Tokens kept of each text."""

    hf_model: str | None = None
    """Folder of a Hugging Face checkpoint: its model and tokenizer instead of ours."""
    d_model: int = 64
    num_layers: int = 2
    num_heads: int = 4
    dropout: float = 0.1
    lora_rank: int = 0
    """Above 0: the weights are frozen and adapters of this rank are trained."""
    use_low_bit_base: bool = False
    """With LoRA: keep the frozen weights as 8-bit integers."""

    micro_batch_size: int | str = 32
    """Samples per forward pass; `"auto"`: the largest that fits into memory."""
    grad_accum_steps: int = 1
    """Micro-batches per update, on each process."""
    global_batch_size: int | None = None
    """Samples per update over all processes; sets `grad_accum_steps`."""
    lr_scaling: str = "none"
    """How `learning_rate` grows with the global batch above `base_batch_size`."""
    base_batch_size: int = 32
    """The global batch that `learning_rate` was chosen for."""

    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    """Peak learning rate, reached after the warmup."""
    embedding_lr_ratio: float = 20.0
    """How many times as fast embeddings learn that start at random: those of our models, but language models, whose
    head they are."""
    layer_decay: float = 1.0
    """Below 1: each layer learns at this share of the rate of the layer above it."""
    weight_decay: float = 0.01
    max_norm: float = 1.0
    """Gradients are scaled down to this total norm; `.inf` turns clipping off."""
    label_smoothing: float = 0.0
    schedule: str = "linear"
    warmup_fraction: float = 0.1
    """Share of all steps in which the learning rate rises."""
    final_learning_rate_ratio: float = 0.0
    """Where the schedule ends, as a share of the peak."""
    num_cycles: int = 3
    """Restarts of `cosine-restarts`."""

    precision: str = AUTO
    activation_checkpointing: bool = False
    """Compute activations again in backward instead of keeping them."""
    compile: bool = False
    sharding: str = "ddp"
    """How several processes share the work: `"ddp"` copies the model, `"fsdp"` splits it."""
    cpu_offload: bool = False
    """With `fsdp`: parameters wait in main memory."""

    max_epochs: int | None = None
    """None: as many as make about 500 steps, within 3 and 100."""
    max_steps: int | None = None
    """None: the epochs decide."""
    early_stopping_patience: int | None = None
    """Validations without improvement before the run ends. None: it does not end early."""
    min_delta: float = 0.0
    """What counts as an improvement of `monitor`."""
    monitor: str = "loss"
    """Validation metric that chooses `best.pt` and stops early."""
    target: float | None = None
    """Value of `monitor` whose time and cost are reported."""

    seed: int = 0
    is_deterministic: bool = False
    """Refuse operations without a deterministic version (matters on GPUs)."""
    device: str = AUTO
    """`"auto"`, `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"`."""

    log_every_steps: int = 20
    validate_every_steps: int | None = None
    """None: at the end of each epoch only."""
    checkpoint_every_steps: int = 100
    """Saved at the first log at or after so many steps, and at the end of each epoch."""
    checkpoint_every_seconds: float | None = None
    """Saved at the first log after so many seconds, instead of by steps and epochs."""
    keep_checkpoints: int = 0
    """How many numbered copies of `last.pt` stay beside it."""
    use_async_checkpoints: bool = False
    """Write checkpoints in a thread while training goes on."""

    price_per_hour: float | None = None
    currency: str = "EUR"
    budget: float | None = None
    """Money, in `currency`: the run saves and stops before it is spent."""
    trackers: str = ""
    """Besides metrics.jsonl: `"mlflow"`, `"wandb"`, `"mlflow,wandb"`. TensorBoard's events are written wherever it is
    installed; `"tensorboard"` refuses to begin without it."""
    profile_steps: int = 0
    """Above 0: profile so many steps and write where their time went."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, as_field(field, getattr(self, field.name)))
        for name, (low, high, says) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, int | float) and not low <= value <= high:
                raise UserError(f"{name} must be {says}, got {value}")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        self._check_together()

    def _check_together(self) -> None:
        """What no single value shows."""
        if not self.data:
            raise UserError(f"data is empty: give the path of a table, or {BUILT_IN_DATA!r}")
        if self.d_model % self.num_heads:
            raise UserError(
                f"d_model must be a multiple of num_heads, got {self.d_model} and {self.num_heads}"
            )
        if isinstance(self.micro_batch_size, str) and self.micro_batch_size != AUTO:
            raise UserError(f"micro_batch_size must be a number or auto, got {self.micro_batch_size!r}")
        if self.global_batch_size is not None and self.grad_accum_steps != 1:
            raise UserError(
                "give global_batch_size or grad_accum_steps, not both: one follows from the other"
            )
        if self.budget is not None and self.price_per_hour is None:
            raise UserError("budget needs price_per_hour, to know when the money is spent")
        if self.sharding == "fsdp" and not OPTIMIZERS[self.optimizer].can_shard:
            raise UserError(f"optimizer={self.optimizer} cannot update parts of a matrix (fsdp): take adamw")
        if self.use_low_bit_base and not self.lora_rank:
            raise UserError("use_low_bit_base freezes the weights: set lora_rank too, or nothing would learn")
        if unknown := {*tracker_names(self.trackers)} - {*TRACKERS}:
            raise UserError(
                f"trackers must be of {', '.join(TRACKERS)}, several with a comma; got {min(unknown)!r}"
            )
        if self.max_length < 2 and self.task == "language-modelling":
            raise UserError(
                "language-modelling predicts from the token before: max_length must be at least 2"
            )
        if self.monitor == "macro_f1" and self.task == "language-modelling":
            raise UserError("language-modelling has no macro_f1: monitor loss or accuracy")

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
    def higher_is_better(self) -> bool:
        return self.monitor != "loss"


WITHOUT_EFFECT = frozenset(
    {"data", "log_every_steps", "checkpoint_every_steps", "checkpoint_every_seconds", "keep_checkpoints"}
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
    **dict.fromkeys(("checkpoint_every_seconds", "price_per_hour", "budget"), (_TINY, 1e12, "above 0")),
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


def tracker_names(trackers: str) -> list[str]:
    """`"mlflow,wandb"` -> `["mlflow", "wandb"]`."""
    return [name.strip() for name in trackers.split(",") if name.strip()]


def known_keys() -> list[str]:
    return [field.name for field in dataclasses.fields(TrainConfig)]


def read_config(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file (JSON is YAML too), keys checked.

    Raises UserError naming the file and the line.
    """
    values = read_yaml(path)
    check_keys(values, known_keys(), source=str(path))
    return values
