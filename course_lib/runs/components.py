"""A config becomes objects: data, model, batches, optimizer, schedule, with every `auto` resolved and its reason."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.base import UserError
from course_lib.data import (
    Batches,
    BucketBatchSampler,
    ShardedOrder,
    Texts,
    TokenStore,
    collate,
    evaluation_batches,
    load_docstrings,
    load_source,
    load_table,
    load_tokenizer,
    shard_evenly,
    split_store,
)
from course_lib.distributed import Ranks, from_main_process
from course_lib.models import ModelConfig, make_model
from course_lib.runs.config import AUTO, BUILT_IN_DATA, TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.training import (
    Precision,
    largest_micro_batch_size,
    make_optimizer,
    make_schedule,
    resolve_epochs,
    resolve_optimizer,
    resolve_precision,
    scaled_learning_rate,
    to_device,
)

MAX_AUTO_BATCH = 512
"""Larger micro-batches seldom gain speed, and take updates away from an epoch."""


class RunData(NamedTuple):
    """What is trained on."""

    train: TokenStore
    validation: TokenStore
    fingerprint: str
    notes: list[str]


def load_data(config: TrainConfig, folder: RunFolder, *, progress: bool = True) -> RunData:
    """Texts, split, tokenizer and token store of a config. The tokenizer is the Hugging Face model's, or the
    one that the run folder already has, or one trained on the training texts. The split does not depend on
    `config.seed`, so that runs with several seeds are judged on the same texts. Errors are UserErrors."""
    path = Path(config.hf_model) / "tokenizer.json" if config.hf_model else folder.tokenizer
    with contextlib.redirect_stdout(sys.stderr):  # progress bars: stdout belongs to the answer
        texts = _load_texts(config, progress)
        train, validation = split_store(
            texts,
            max_length=config.max_length,
            tokenizer=load_tokenizer(path) if config.hf_model or path.exists() else None,
            vocab_size=config.vocab_size,
            task=config.task,
            validation=config.validation,
            progress=progress,
        )
    cut = f"{train.num_truncated:,} of {len(texts):,} texts were cut to max_length={config.max_length} tokens"
    notes = [*texts.notes, cut] if train.num_truncated else [*texts.notes]
    return RunData(train, validation, texts.fingerprint, notes)


def _load_texts(config: TrainConfig, progress: bool) -> Texts:
    is_built_in, is_of_words = config.data == BUILT_IN_DATA, config.task == "token-classification"
    if is_built_in:
        return load_source() if is_of_words else load_docstrings()
    if is_of_words:
        raise UserError(
            f"task={config.task} has no data but data={BUILT_IN_DATA}: give that, or another task"
        )
    return load_table(config.data, use_labels=config.task == "classification", progress=progress)


def build_model(config: TrainConfig, *, vocab_size: int, num_classes: int) -> nn.Module:
    """The model of a config on the CPU, randomly initialised (or from `hf_model`), adapters included."""
    if config.hf_model:
        from course_lib.models import load_hf_model

        model: nn.Module = load_hf_model(
            config.hf_model, config.task, num_classes, max_length=config.max_length
        )
    else:
        names = ("max_length", "task", "d_model", "num_layers", "num_heads", "dropout")
        sizes = {name: getattr(config, name) for name in names}
        # A language model has no classes, and its data name none.
        model = make_model(ModelConfig(vocab_size=vocab_size, num_classes=max(num_classes, 1), **sizes))
    if config.lora_rank:
        from course_lib.models import add_lora

        model = add_lora(model, config.lora_rank)
    if config.use_low_bit_base:
        from course_lib.models import quantize_frozen

        quantize_frozen(model)
    if config.activation_checkpointing:
        from course_lib.training import apply_activation_checkpointing

        apply_activation_checkpointing(model)
    return model


@dataclass
class Components:
    """What `fit` needs for a run, built by `build_components`."""

    model: nn.Module
    precision: Precision
    batches: Batches
    order: ShardedOrder
    validation_batches: Batches
    optimizer: torch.optim.Optimizer
    scheduler: Any
    max_epochs: int
    max_steps: int
    grad_accum_steps: int
    settled: TrainConfig
    """The config with every `auto` replaced by what it became: a resumed run starts from these."""
    schedule_numbers: dict[str, Any]
    """What `make_schedule` and `plot_schedule` were given."""
    is_sharded: bool = False
    """Whether FSDP2 has split the model over processes."""
    reasons: dict[str, str] = field(default_factory=dict)


def build_components(
    config: TrainConfig, data: RunData, device: torch.device, ranks: Ranks, *, settled: TrainConfig | None
) -> Components:
    """Build everything; `settled` is that of the run to be resumed, None for a new one.

    Raises UserError when a wish of the config cannot be met.
    """
    vocab_size, num_classes = data.train.vocab_size, len(data.train.label_names)
    model = build_model(config, vocab_size=vocab_size, num_classes=num_classes).to(device)
    chosen = settled or config
    network: Any = getattr(model, "network", None)  # of a Hugging Face model
    width = network.config.hidden_size if network else config.d_model
    precision = resolve_precision(chosen.precision, device, width=width)
    if (agreed := from_main_process(precision.name)) != precision.name:  # it was measured, here and there
        precision = resolve_precision(agreed, device, width=width)
    reasons = {"precision": f"{precision.name} ({precision.reason})"}
    micro_batch_size = chosen.micro_batch_size
    if micro_batch_size == AUTO:
        found = largest_micro_batch_size(
            model,
            _longest_of(data),
            optimizer=config.optimizer,
            precision=precision,
            max_size=min(MAX_AUTO_BATCH, len(data.train)),
        )
        micro_batch_size, reasons["micro_batch_size"] = from_main_process(found)
    assert isinstance(micro_batch_size, int)
    grad_accum_steps = _grad_accum_steps(chosen, micro_batch_size, ranks.world_size)
    global_batch_size = micro_batch_size * grad_accum_steps * ranks.world_size
    sampler = BucketBatchSampler(data.train.lengths, micro_batch_size, seed=config.seed)
    order = ShardedOrder(sampler, ranks, grad_accum_steps)
    steps_per_epoch = -(-len(order) // grad_accum_steps)
    max_epochs, reasons["epochs"] = resolve_epochs(
        steps_per_epoch, max_epochs=config.max_epochs, max_steps=config.max_steps
    )
    max_steps = min(max_epochs * steps_per_epoch, config.max_steps or max_epochs * steps_per_epoch)
    learning_rate = scaled_learning_rate(
        config.lr_scaling, config.learning_rate, global_batch_size, config.base_batch_size
    )
    reasons["batch"] = (
        f"{global_batch_size} samples per update: {micro_batch_size} × {grad_accum_steps} micro-batches × "
        f"{ranks.world_size} processes; peak learning rate {learning_rate:.3g}"
    )
    is_sharded = config.sharding == "fsdp"  # on one process only in the form of its checkpoints
    if config.compile:
        from course_lib.training import compile_model

        batch = to_device(_longest_of(data)(micro_batch_size), device)
        reasons["compile"] = compile_model(model, batch, precision=precision)[1]["reason"]
    if is_sharded:  # before the optimizer, which must see the parts
        from course_lib.distributed import shard

        model = shard(model, precision=precision.name, cpu_offload=config.cpu_offload)
    optimizer = make_optimizer(
        model,
        config.optimizer,
        learning_rate=learning_rate,
        weight_decay=config.weight_decay,
        layer_decay=config.layer_decay,
        embedding_lr_ratio=embedding_lr_ratio(config),
    )
    reasons["optimizer"] = resolve_optimizer(config.optimizer, model)
    schedule_numbers = {
        "warmup_steps": round(config.warmup_fraction * max_steps),
        "final_ratio": config.final_learning_rate_ratio,
        "num_cycles": config.num_cycles,
    }
    return Components(
        model=model,
        precision=precision,
        batches=Batches(data.train, order, width_multiple=precision.width_multiple),
        order=order,
        validation_batches=sharded(
            evaluation_batches(
                data.validation, 2 * micro_batch_size, width_multiple=precision.width_multiple
            ),
            ranks,
        ),
        optimizer=optimizer,
        scheduler=make_schedule(optimizer, config.schedule, max_steps=max_steps, **schedule_numbers),
        max_epochs=max_epochs,
        max_steps=max_steps,
        grad_accum_steps=grad_accum_steps,
        settled=dataclasses.replace(config, precision=precision.name, micro_batch_size=micro_batch_size),
        schedule_numbers=schedule_numbers,
        is_sharded=is_sharded,
        reasons=reasons,
    )


def embedding_lr_ratio(config: TrainConfig) -> float:
    """The config's, where embeddings start at random and are not the head as well; else 1."""
    is_fresh = config.hf_model is None and config.task != "language-modelling"
    return config.embedding_lr_ratio if is_fresh else 1.0


def sharded(batches: Batches, ranks: Ranks) -> Batches:
    """This process's part of the batches to evaluate."""
    order = shard_evenly(list(batches.order), ranks)
    return Batches(batches.samples, order, width_multiple=batches.width_multiple)


def _grad_accum_steps(config: TrainConfig, micro_batch_size: int, world_size: int) -> int:
    if config.global_batch_size is None:
        return config.grad_accum_steps
    at_once = micro_batch_size * world_size
    if config.global_batch_size % at_once:
        raise UserError(
            f"global_batch_size={config.global_batch_size} is no multiple of {at_once} (micro_batch_size "
            f"{micro_batch_size} × {world_size} processes): choose one, for example {at_once}"
        )
    return config.global_batch_size // at_once


def _longest_of(data: RunData) -> Callable[[int], dict[str, Tensor]]:
    """Batches of any size of the longest texts: what needs most memory."""
    longest = np.argsort(-data.train.lengths, kind="stable")
    return lambda size: collate([data.train[int(i)] for i in np.resize(longest, size)])
