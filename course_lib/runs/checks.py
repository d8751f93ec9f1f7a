"""What no single value of a config shows: keys that need each other, or rule each other out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from course_lib.base import UserError
from course_lib.training import OPTIMIZERS

if TYPE_CHECKING:
    from course_lib.runs.config import TrainConfig

BUILT_IN_DATA = "docstrings"
FRAME = "frame"
AUTO = "auto"
TRACKERS = ("mlflow", "tensorboard", "wandb")

METRICS = {
    "classification": ("loss", "accuracy", "macro_f1"),
    "multi-label": ("loss", "accuracy", "macro_f1", "micro_f1"),
    "regression": ("loss", "mae", "rmse", "r2"),
    "token-classification": ("loss", "accuracy", "macro_f1"),
    "language-modelling": ("loss", "accuracy"),
}
"""By task, what a validation says that a run can be judged by."""
LOWER_IS_BETTER = ("loss", "mae", "rmse")

MODELS = ("transformer", "ngrams", "joined")
TASKS_OF_NGRAMS = ("classification", "multi-label")
MICRO_BATCH_SIZES = {"transformer": 32, "joined": 64, "ngrams": 128}
"""Where none is set: an update of n-grams touches their whole table, so that few large ones cost less."""
_OF_TRANSFORMERS = (
    *("hf_model", "vocab_size", "max_length", "d_model", "num_layers", "num_heads", "dropout", "lora_rank"),
    *("use_low_bit_base", "activation_checkpointing", "layer_decay", "sharding", "cpu_offload", "compile"),
)
"""Keys that say nothing of n-grams: where one is set, a transformer is meant."""


def settled_model(config: TrainConfig) -> str:
    """`model`, where `auto` leaves no choice: `transformer` for tasks without n-grams, and where a key of it is set."""
    if config.model != AUTO:
        return config.model
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    is_set = any(getattr(config, key) != defaults[key] for key in _OF_TRANSFORMERS)
    needs_blocks = config.optimizer != AUTO and OPTIMIZERS[config.optimizer].is_for_matrices
    if is_set or needs_blocks or config.task != "classification":
        return "transformer"
    return AUTO


def check_together(config: TrainConfig) -> None:
    """Raises UserError, naming the keys and what to change."""
    if not config.data:
        raise UserError(f"data is empty: give the path of a table, or {BUILT_IN_DATA!r}")
    if config.d_model % config.num_heads:
        raise UserError(
            f"d_model must be a multiple of num_heads, got {config.d_model} and {config.num_heads}"
        )
    if isinstance(config.micro_batch_size, str) and config.micro_batch_size != AUTO:
        raise UserError(f"micro_batch_size must be a number or auto, got {config.micro_batch_size!r}")
    if config.model in ("ngrams", "joined"):
        _check_ngrams(config)
    if config.global_batch_size is not None and config.grad_accum_steps != 1:
        raise UserError("give global_batch_size or grad_accum_steps, not both: one follows from the other")
    if config.budget is not None and config.price_per_hour is None:
        raise UserError("budget needs price_per_hour, to know when the money is spent")
    can_shard = config.optimizer == AUTO or OPTIMIZERS[config.optimizer].can_shard
    if config.sharding == "fsdp" and not can_shard:
        raise UserError(f"optimizer={config.optimizer} cannot update parts of a matrix (fsdp): take adamw")
    if config.use_low_bit_base and not config.lora_rank:
        raise UserError("use_low_bit_base freezes the weights: set lora_rank too, or nothing would learn")
    if unknown := {*tracker_names(config.trackers)} - {*TRACKERS}:
        raise UserError(
            f"trackers must be of {', '.join(TRACKERS)}, several with a comma; got {min(unknown)!r}"
        )
    if config.max_length < 2 and config.task == "language-modelling":
        raise UserError("language-modelling predicts from the token before: max_length must be at least 2")
    if config.monitor not in METRICS[config.task]:
        metrics = " or ".join(METRICS[config.task])
        raise UserError(f"{config.task} has no {config.monitor}: monitor {metrics}")
    if config.label_smoothing and config.task in ("multi-label", "regression"):
        raise UserError(f"label_smoothing belongs to classes, not to task={config.task}: leave it out")


def _check_ngrams(config: TrainConfig) -> None:
    if config.task not in TASKS_OF_NGRAMS:
        raise UserError(
            f"model={config.model} learns labels of whole texts, not task={config.task}: take transformer"
        )
    for key in ("hf_model", "lora_rank"):
        if getattr(config, key):
            raise UserError(f"{key} belongs to a transformer, not to model={config.model}: set one of both")
    if config.model == "ngrams" and config.optimizer not in (AUTO, "sgd"):
        raise UserError(f"model=ngrams learns by sgd, not by {config.optimizer}: leave optimizer out")
    if config.sharding == "fsdp":
        raise UserError(f"model={config.model} is not split over processes: take sharding=ddp")


def tracker_names(trackers: str) -> list[str]:
    """`"mlflow,wandb"` -> `["mlflow", "wandb"]`."""
    return [name.strip() for name in trackers.split(",") if name.strip()]
