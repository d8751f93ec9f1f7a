"""A Hugging Face checkpoint folder on this machine as model and tokenizer. Nothing is asked of a hub."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.base import UserError, require
from course_lib.data import load_tokenizer, pad_id
from course_lib.models.hf_folder import FIX, check_hf_folder
from course_lib.models.low_bit import Int8Linear, is_linear
from course_lib.models.transformers import TargetScale

_CLASSES = {
    "classification": "AutoModelForSequenceClassification",
    "multi-label": "AutoModelForSequenceClassification",
    "regression": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "language-modelling": "AutoModelForCausalLM",
}
_PROBLEMS = {
    "classification": "single_label_classification",
    "multi-label": "multi_label_classification",
    "regression": "regression",
}


class HFModel(nn.Module):
    """A Hugging Face model (`network`) that is called as our own are."""

    def __init__(self, network: Any, task: str, pad_id: int) -> None:
        super().__init__()
        self.network = network
        self.task = task
        self.pad_id = pad_id
        self.target_scale = TargetScale() if task == "regression" else nn.Identity()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """`input_ids` int64 [B, T], `attention_mask` [B, T] (True or 1 = real token) -> logits [B, C], or
        [B, T, C] for a label or next token at each position; regression: numbers [B] in the unit of the targets."""
        # Some look for padding in the ids: the last token of GPT-2's rows, the positions of RoBERTa.
        input_ids = input_ids.masked_fill(~attention_mask.bool(), self.pad_id)
        logits = self.network(input_ids=input_ids, attention_mask=attention_mask.long()).logits
        return self.target_scale(logits)

    def add_peft_lora(self, rank: int, alpha: float) -> HFModel:
        """`course_lib.models.lora.add_lora` for this kind of model: adapters and a new head learn."""
        with _quiet():
            peft = require("peft", extra="hf")
        body = self.network.base_model
        children = self.network.named_children()
        heads = [
            name for name, layer in children if layer is not body and any(True for _ in layer.parameters())
        ]
        linear = {name: layer for name, layer in self.network.named_modules() if is_linear(layer)}
        names = [name for name in linear if name.partition(".")[0] not in heads]
        config = peft.LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=names,
            fan_in_fan_out=not isinstance(linear[names[0]], nn.Linear),
            # The head of a language model is old, and mostly tied to the embedding.
            modules_to_save=None if self.task == "language-modelling" else heads,
        )
        with _quiet():
            self.network = peft.get_peft_model(self.network, config)
        return self

    def merge_peft_lora(self) -> HFModel:
        """`course_lib.models.lora.merge_lora` for this kind of model. Low-bit weights become plain ones, as rounded."""
        _widen(self.network)
        if hasattr(self.network, "merge_and_unload"):
            self.network = self.network.merge_and_unload()
        return self


def load_hf_model(
    folder: str | Path,
    task: str,
    num_classes: int,
    *,
    max_length: int | None = None,
    use_weights: bool = True,
) -> HFModel:
    """The model in `folder` with a head for `task`: random unless the folder has one of this size.

    The weights are in fp32; without `use_weights` they are random, to be replaced by those of a checkpoint, and the
    folder needs none. `max_length` is the longest text it will be given, None if that is not known.

    Raises UserError when the folder lacks config.json, weights or tokenizer.json, is of an architecture
    without such a head, has too few positions, or the packages are absent.
    """
    folder = check_hf_folder(folder, task)
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    options: dict[str, Any] = {"num_labels": max(num_classes, 1)}  # a number to learn has no classes
    if task == "language-modelling":
        options = {"use_cache": False}
    try:
        with _quiet():
            transformers = require("transformers", extra="hf")
            transformers.utils.logging.disable_progress_bar()
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            fill = pad_id(tokenizer) if config.pad_token_id is None else config.pad_token_id
            kind = getattr(transformers, _CLASSES[task])
            options |= {"pad_token_id": fill}
            if use_weights:
                if task != "language-modelling":
                    options["ignore_mismatched_sizes"] = True
                network = kind.from_pretrained(folder, local_files_only=True, dtype=torch.float32, **options)
            else:
                config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, **options)
                network = kind.from_config(config, dtype=torch.float32)
    except UserError:
        raise
    except Exception as error:  # any: the files may hold anything
        reason = str(error).partition("\n")[0]
        raise UserError(f"hf_model={folder} cannot be loaded for {task}: {reason}; {FIX}") from None
    vocab_size, positions = config.vocab_size, num_positions(network)
    if tokenizer.get_vocab_size() > vocab_size:
        raise UserError(
            f"hf_model={folder}: its tokenizer has more tokens than its model, {vocab_size}; {FIX}"
        )
    if max_length and positions and max_length > positions:
        raise UserError(f"hf_model={folder} has {positions} positions: add --set max_length={positions}")
    return HFModel(network, task, fill)


def num_positions(network: Any) -> int | None:
    """Tokens that the positions of a Hugging Face model hold; None where it has none of its own.

    Models of RoBERTa's kind count positions from behind the padding's id: of 514 they use 512.
    """
    for name, layer in network.named_modules():
        padding = getattr(layer, "padding_idx", None)
        if name.rpartition(".")[2] == "position_embeddings" and padding is not None:
            return int(layer.weight.shape[0]) - padding - 1
    return getattr(network.config, "max_position_embeddings", None)


def save_hf_model(model: HFModel, folder: Path, label_names: Sequence[str]) -> None:
    """Write what `from_pretrained` of the model's own architecture loads, its labels by name. Adapters must be merged.

    Raises UserError for a number whose unit the model has no weight to keep.
    """
    network = model.network
    if isinstance(model.target_scale, TargetScale):
        _fold(model.target_scale, network)
    if model.task == "language-modelling":
        network.config.use_cache = True  # off in training, but no text is made quickly without
    else:
        network.config.id2label = dict(enumerate(label_names)) or {0: "LABEL_0"}
        network.config.label2id = {name: number for number, name in network.config.id2label.items()}
    if problem := _PROBLEMS.get(model.task):
        network.config.problem_type = problem
    with _quiet():
        network.save_pretrained(folder)


@torch.no_grad()
def _fold(scale: TargetScale, network: Any) -> None:
    """Into the last linear layer: it then answers in the unit of the targets."""
    last = [layer for layer in network.modules() if isinstance(layer, nn.Linear) and layer.out_features == 1]
    if not last or last[-1].bias is None:
        raise UserError(
            f"hf cannot hold this model: the head of {type(network).__name__} has no bias to keep the mean of the "
            "targets in; take safetensors"
        )
    last[-1].weight.mul_(scale.std)
    last[-1].bias.mul_(scale.std).add_(scale.mean)


def _widen(network: Any) -> None:
    """Each `Int8Linear` becomes the plain layer that it was, in place."""
    from transformers.pytorch_utils import Conv1D

    layers = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, Int8Linear)]
    for name, layer in layers:
        plain: Any = layer.to_linear()
        if getattr(
            network.get_submodule(name.rpartition(".")[0]), "fan_in_fan_out", False
        ):  # PEFT's, around GPT-2's
            linear, plain = plain, Conv1D(*plain.weight.shape)
            plain.weight = nn.Parameter(linear.weight.detach().T.contiguous())
            plain.bias = linear.bias
        network.set_submodule(name, plain)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of other packages: which weights are new, what is missing for GPUs, what each will
    rename. There is nothing in them for a user to mend."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
