"""A config becomes objects: data, model, batches, optimizer, schedule, with every `auto` resolved and its reason."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.base import UserError
from course_lib.data import (
    Batches,
    BucketBatchSampler,
    ShardedOrder,
    collate,
    evaluation_batches,
    shard_evenly,
)
from course_lib.distributed import Ranks, from_main_process
from course_lib.models import ModelConfig, make_model, set_target_scale
from course_lib.runs.config import AUTO, TrainConfig
from course_lib.runs.data import KINDS
from course_lib.runs.data import RunData as RunData
from course_lib.runs.data import load_data as load_data
from course_lib.runs.folder import RunFolder
from course_lib.training import (
    Precision,
    TaskLoss,
    choose_optimizer,
    filling_micro_batch_size,
    largest_micro_batch_size,
    make_optimizer,
    make_schedule,
    resolve_epochs,
    resolve_optimizer,
    resolve_precision,
    scaled_learning_rate,
    task_loss,
    to_device,
)

MAX_AUTO_BATCH = 512
"""On a CPU larger micro-batches seldom gain speed, and take updates away from an epoch. CUDA has no such bound."""


def build_model(
    config: TrainConfig, *, vocab_size: int, num_classes: int, trained: RunFolder | None = None
) -> nn.Module:
    """The model of a config on the CPU, randomly initialised (or from `hf_model`), adapters included.

    `trained`: the run whose weights will take the place of the first ones. It has all that is needed of `hf_model`.
    """
    if config.hf_model:
        from course_lib.models import load_hf_model

        is_kept = trained is not None and trained.hf_model.exists()
        model: nn.Module = load_hf_model(
            trained.hf_model if trained is not None and is_kept else config.hf_model,
            config.task,
            num_classes,
            max_length=config.max_length,
            use_weights=not is_kept,
        )
    elif config.model == "ngrams":
        from course_lib.models import NgramClassifier

        model = NgramClassifier(config.task, vocab_size, num_classes)
    else:
        names = ("max_length", "task", "d_model", "num_layers", "num_heads", "dropout")
        sizes = {name: getattr(config, name) for name in names}
        # A language model has no classes, and its data name none.
        sizes |= {"num_classes": max(num_classes, 1)}
        if config.model == "joined":
            from course_lib.models import JoinedClassifier

            tokens = ModelConfig(vocab_size=config.vocab_size, **sizes)
            model = JoinedClassifier(tokens, vocab_size - config.vocab_size)
        else:
            model = make_model(ModelConfig(vocab_size=vocab_size, **sizes))
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
    loss: TaskLoss | None = None
    """None: the default one, cross-entropy."""
    is_sharded: bool = False
    """Whether FSDP2 has split the model over processes."""
    reasons: dict[str, str] = field(default_factory=dict)

    def of_fit(self, config: TrainConfig) -> dict[str, Any]:
        """What `fit` is given by name, in a run and in a trial of one."""
        return {
            "loss": self.loss,
            "scheduler": self.scheduler,
            "validation_batches": self.validation_batches,
            "max_epochs": self.max_epochs,
            "max_steps": self.max_steps,
            "max_norm": config.max_norm,
            "grad_accum_steps": self.grad_accum_steps,
            "precision": self.precision,
            "label_smoothing": config.label_smoothing,
            "log_every_steps": config.log_every_steps,
            "validate_every_steps": config.validate_every_steps,
        }


def build_components(
    config: TrainConfig,
    data: RunData,
    device: torch.device,
    ranks: Ranks,
    *,
    settled: TrainConfig | None,
    trained: RunFolder | None = None,
) -> Components:
    """Build everything; `settled` is that of the run to be resumed, in the folder `trained`; None for a new one.

    Raises UserError when a wish of the config cannot be met.
    """
    vocab_size, num_classes = data.train.vocab_size, len(data.train.label_names)
    if config.init_from and trained is None:
        trained = RunFolder(config.init_from)
    model = build_model(config, vocab_size=vocab_size, num_classes=num_classes, trained=trained)
    is_sharded = config.sharding == "fsdp"  # on one process only in the form of its checkpoints
    if not is_sharded:  # what is split is brought to the device in parts
        model.to(device)
    chosen = settled or config
    network: Any = getattr(model, "network", None)  # of a Hugging Face model
    width = network.config.hidden_size if network else config.d_model
    has_products = config.model != "ngrams" or chosen.precision != AUTO
    precision = resolve_precision(chosen.precision if has_products else "32-true", device, width=width)
    if (agreed := from_main_process(precision.name)) != precision.name:  # it was measured, here and there
        precision = resolve_precision(agreed, device, width=width)
    reasons = {"precision": f"{precision.name} ({precision.reason})"}
    if config.task == "regression":
        set_target_scale(model, float(data.train.labels.mean()), float(data.train.labels.std()) or 1.0)
    if config.model in KINDS:
        _weigh_ngrams(model, data)
    if config.init_from and settled is None:
        reasons["init_from"] = _start_from(RunFolder(config.init_from), model, data.train.label_names)
    loss = task_loss(model)
    optimizer_name, why = chosen.optimizer, ""
    if optimizer_name == AUTO:
        is_fresh = not (config.hf_model or config.lora_rank)
        optimizer_name, why = choose_optimizer(model, is_fresh=is_fresh, is_sharded=is_sharded)
    place = _splitting(config, device, precision) if is_sharded else None
    micro_batch_size = chosen.micro_batch_size
    if micro_batch_size == AUTO:
        micro_batch_size, reasons["micro_batch_size"] = largest_micro_batch_size(
            model,
            _longest_of(data),
            loss=loss,
            optimizer=optimizer_name,
            precision=precision,
            grad_accum_steps=2 if config.global_batch_size else config.grad_accum_steps,
            place=place,
            max_size=_max_auto_batch(config, len(data.train), device, ranks),
        )
        if device.type == "cuda":
            micro_batch_size, why_enough = filling_micro_batch_size(
                model,
                lambda size: _typical_of(data, size),
                micro_batch_size,
                loss=loss,
                optimizer=optimizer_name,
                precision=precision,
                place=place,
            )
            reasons["micro_batch_size"] = f"{why_enough}; memory: {reasons['micro_batch_size']}"
        if (divisor := _largest_divisor(micro_batch_size, config, ranks)) != micro_batch_size:
            micro_batch_size = divisor
            reasons["micro_batch_size"] += f"; {divisor} taken, for global_batch_size is a multiple of it"
    assert isinstance(micro_batch_size, int)
    grad_accum_steps = _grad_accum_steps(chosen, micro_batch_size, ranks.world_size)
    global_batch_size = micro_batch_size * grad_accum_steps * ranks.world_size
    sampler = BucketBatchSampler(data.train.lengths, micro_batch_size, seed=config.seed)
    order = ShardedOrder(sampler, ranks, grad_accum_steps)
    steps_per_epoch = -(-len(order) // grad_accum_steps)
    max_epochs, reasons["epochs"] = resolve_epochs(
        steps_per_epoch,
        max_epochs=config.max_epochs,
        max_steps=config.max_steps,
        **auto_length(config.model, steps_per_epoch),
    )
    max_steps = min(max_epochs * steps_per_epoch, config.max_steps or max_epochs * steps_per_epoch)
    learning_rate = scaled_learning_rate(
        config.lr_scaling, config.learning_rate, global_batch_size, config.base_batch_size
    )
    reasons["batch"] = (
        f"{global_batch_size} samples per update: {micro_batch_size} × {grad_accum_steps} micro-batches × "
        f"{ranks.world_size} processes; peak learning rate {learning_rate:.3g}"
    )
    is_compiled = False
    if chosen.compile != "off":
        from course_lib.training import compile_model

        model.to(device)
        batch = to_device(_typical_of(data, micro_batch_size), device)
        num_micro_steps = max_steps * grad_accum_steps if chosen.compile == AUTO else None
        _, measured = compile_model(
            model, batch, loss=loss, precision=precision, num_micro_steps=num_micro_steps
        )
        reasons["compile"], is_compiled = measured["reason"], measured["is_compiled"]
    if place:  # before the optimizer, which must see the parts
        model = place(model)
    optimizer = make_optimizer(
        model,
        optimizer_name,
        learning_rate=learning_rate,
        weight_decay=config.weight_decay,
        layer_decay=config.layer_decay,
        embedding_lr_ratio=embedding_lr_ratio(config),
    )
    reasons["optimizer"] = "; ".join(filter(None, [resolve_optimizer(optimizer_name, model), why]))
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
        settled=dataclasses.replace(
            config,
            precision=precision.name,
            micro_batch_size=micro_batch_size,
            compile="on" if is_compiled else "off",
            optimizer=optimizer_name,
        ),
        schedule_numbers=schedule_numbers,
        loss=loss,
        is_sharded=is_sharded,
        reasons=reasons,
    )


def _splitting(
    config: TrainConfig, device: torch.device, precision: Precision
) -> Callable[[nn.Module], nn.Module]:
    """`shard` as the config has it."""
    from course_lib.distributed import shard

    return functools.partial(shard, precision=precision.name, cpu_offload=config.cpu_offload, device=device)


def _max_auto_batch(config: TrainConfig, num_samples: int, device: torch.device, ranks: Ranks) -> int:
    """What the search of `micro_batch_size=auto` may find at most."""
    bounds = [num_samples]
    if device.type != "cuda":
        bounds.append(MAX_AUTO_BATCH)
    if config.global_batch_size:
        bounds.append(max(1, config.global_batch_size // ranks.world_size))
    return min(bounds)


def _largest_divisor(found: int, config: TrainConfig, ranks: Ranks) -> int:
    """The largest size up to `found` of which a `global_batch_size` is a multiple; `found` where there is none."""
    share = (config.global_batch_size or 0) // ranks.world_size
    return next((size for size in range(found, 0, -1) if share % size == 0), found)


def _weigh_ngrams(model: nn.Module, data: RunData) -> None:
    """By how many texts to train on hold each: a store names an n-gram once in a text."""
    from course_lib.models import set_ngram_weights

    tokenizer: Any = data.train.load_tokenizer()
    counts = data.train.id_counts()[tokenizer.offset :]
    set_ngram_weights(model, torch.from_numpy(counts), len(data.train), tokenizer.num_words)


def _start_from(folder: RunFolder, model: nn.Module, label_names: tuple[str, ...]) -> str:
    """Take over the best weights of another run; says whose. Raises UserError when they do not belong to this one."""
    checkpoint = folder.read_checkpoint()
    theirs = checkpoint["extra"]["label_names"]
    if theirs != [*label_names]:
        odd = [f"only one of both has {name!r}" for name in sorted({*theirs} ^ {*label_names})[:1]]
        raise UserError(
            f"init_from={folder.directory} has other labels ({len(theirs)}, here {len(label_names)}; "
            f"{(*odd, 'in another order')[0]}): its weights name those, so give data with the same"
        )
    folder.load_weights(checkpoint, model)
    return f"best weights of {folder.directory}, step {checkpoint['state']['step']}"


def auto_length(model: str, steps_per_epoch: int) -> dict[str, Any]:
    """What `resolve_epochs` is told of a model. A linear model of large batches: 8 epochs, fewer of many texts, and of
    few texts as many as make 150 steps."""
    if model != "ngrams":
        return {}
    return {"auto_steps": 1100, "auto_epochs": (3, min(100, max(8, -(-150 // steps_per_epoch))))}


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


def _typical_of(data: RunData, size: int) -> dict[str, Tensor]:
    """A batch of texts of about the mean length: what a step takes on average."""
    nearest = np.argsort(np.abs(data.train.lengths - data.train.lengths.mean()), kind="stable")
    return collate([data.train[int(i)] for i in np.resize(nearest[:size], size)])
