"""A Hugging Face checkpoint folder on this machine as model and tokenizer. Nothing is asked of a hub."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.base import UserError, require
from course_lib.data import load_tokenizer, pad_id
from course_lib.models.low_bit import Int8Linear, is_linear

_CLASSES = {
    "classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "language-modelling": "AutoModelForCausalLM",
}


class HFModel(nn.Module):
    """A Hugging Face model (`network`) that is called as our own are."""

    def __init__(self, network: Any, task: str, pad_id: int) -> None:
        super().__init__()
        self.network = network
        self.task = task
        self.pad_id = pad_id

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """`input_ids` int64 [B, T], `attention_mask` [B, T] (True or 1 = real token) -> logits [B, C], or
        [B, T, C] for a label or next token at each position."""
        # Some look for padding in the ids: the last token of GPT-2's rows, the positions of RoBERTa.
        input_ids = input_ids.masked_fill(~attention_mask.bool(), self.pad_id)
        return self.network(input_ids=input_ids, attention_mask=attention_mask.long()).logits

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
        """`course_lib.models.lora.merge_lora` for this kind of model."""
        is_low_bit = any(isinstance(layer, Int8Linear) for layer in self.modules())
        if hasattr(self.network, "merge_and_unload") and not is_low_bit:
            self.network = self.network.merge_and_unload()
        return self


def load_hf_model(
    folder: str | Path, task: str, num_classes: int, *, max_length: int | None = None
) -> HFModel:
    """The model in `folder` with a head for `task`: random unless the folder has one of this size.

    The weights are in fp32. `max_length` is the longest text it will be given, None if that is not known.

    Raises UserError when the folder lacks config.json, weights or tokenizer.json, is of an architecture
    without such a head, has too few positions, or the packages are absent.
    """
    folder = Path(folder)
    fix = "give a folder that save_pretrained wrote, model and tokenizer"
    for name in ("config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise UserError(f"hf_model={folder} is no Hugging Face checkpoint: it has no {name}; {fix}")
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    options: dict[str, Any] = {"num_labels": num_classes, "ignore_mismatched_sizes": True}
    if task == "language-modelling":
        options = {"use_cache": False}
    try:
        with _quiet():
            transformers = require("transformers", extra="hf")
            transformers.utils.logging.disable_progress_bar()
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            fill = pad_id(tokenizer) if config.pad_token_id is None else config.pad_token_id
            network = getattr(transformers, _CLASSES[task]).from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, pad_token_id=fill, **options
            )
    except UserError:
        raise
    except Exception as error:  # any: the files may hold anything
        reason = str(error).partition("\n")[0]
        raise UserError(f"hf_model={folder} cannot be loaded for {task}: {reason}; {fix}") from None
    vocab_size, positions = config.vocab_size, getattr(config, "max_position_embeddings", None)
    if tokenizer.get_vocab_size() > vocab_size:
        raise UserError(
            f"hf_model={folder}: its tokenizer has more tokens than its model, {vocab_size}; {fix}"
        )
    if max_length and positions and max_length > positions:
        raise UserError(f"hf_model={folder} has {positions} positions: add --set max_length={positions}")
    return HFModel(network, task, fill)


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
