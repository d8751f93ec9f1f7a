"""A trained run in use: text in, label and probability out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from course_lib.base import resolve_device
from course_lib.data import collate, load_tokenizer, parallel_tokenizers
from course_lib.runs.components import build_model
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.training import load_checkpoint

TEXTS_AT_ONCE = 2048
"""Texts that are sorted by length together."""
TOKENS_AT_ONCE = 4096
"""Rows × width of a batch: a language model makes as many rows of logits as its vocabulary is wide."""

Prediction = tuple[str, float]


@dataclass(frozen=True)
class TrainedModel:
    """A finished run, ready to use: the best weights in evaluation mode, on the CPU."""

    model: nn.Module
    tokenizer: Any
    label_names: tuple[str, ...]
    config: TrainConfig
    step: int


def load_trained(run_folder: str | Path) -> TrainedModel:
    """The best model of a run folder. Raises UserError when the folder holds none."""
    folder = RunFolder(run_folder)
    config = TrainConfig.from_dict(folder.read_config(), source=str(folder.config))
    checkpoint = load_checkpoint(folder.best)
    extra = checkpoint["extra"]
    model = build_model(config, vocab_size=extra["vocab_size"], num_classes=len(extra["label_names"]))
    model.load_state_dict(checkpoint["model"])
    return TrainedModel(
        model=model.eval(),
        tokenizer=load_tokenizer(folder.tokenizer),
        label_names=tuple(extra["label_names"]),
        config=config,
        step=checkpoint["state"]["step"],
    )


class Predictor:
    """The best model of a run. `predict` is for lists, `stream` for what may not fit into memory.

    A prediction is a label and its probability. By task: the class of a text; `word/label` for each word
    between spaces, with their mean probability; the most likely next token.
    """

    def __init__(self, trained: TrainedModel, device: str = "auto") -> None:
        self.device, _ = resolve_device(device)
        self.model = trained.model.to(self.device).eval()
        self.task = trained.config.task
        self.label_names = trained.label_names
        self.tokenizer = trained.tokenizer
        self.tokenizer.enable_truncation(trained.config.max_length)

    @classmethod
    def load(cls, run_folder: str | Path) -> Predictor:
        """The best model in a run folder. Raises UserError when it holds none."""
        return cls(load_trained(run_folder))

    def predict(self, texts: Iterable[str]) -> list[Prediction]:
        """One prediction per text, in the order of the texts; of a long text its first `max_length` tokens."""
        return [prediction for _, prediction in self.stream(texts)]

    def stream(self, texts: Iterable[str]) -> Iterator[tuple[str, Prediction]]:
        """Each text with its prediction; `TEXTS_AT_ONCE` are in memory."""
        # Half a character (of an argument that is no UTF-8, or an escape in JSON) is refused by tokenizers.
        texts = (text.encode("utf-8", "replace").decode() for text in texts)
        while chunk := list(islice(texts, TEXTS_AT_ONCE)):
            yield from zip(chunk, self._predict(chunk), strict=True)

    @torch.inference_mode()
    def _predict(self, texts: list[str]) -> list[Prediction]:
        is_words = self.task == "token-classification"  # as the tokenizer was used in training
        inputs = [text.split() for text in texts] if is_words else texts
        with parallel_tokenizers():
            encodings = self.tokenizer.encode_batch(inputs, is_pretokenized=is_words)
        # A tokenizer that adds no special tokens makes nothing of an empty text.
        samples = [(np.array(encoding.ids or [0]), 0) for encoding in encodings]
        longest_first = sorted(range(len(texts)), key=lambda i: -len(samples[i][0]))
        results: dict[int, Prediction] = {}
        while longest_first:
            rows = longest_first[: max(1, TOKENS_AT_ONCE // len(samples[longest_first[0]][0]))]
            del longest_first[: len(rows)]
            batch = collate([samples[i] for i in rows])
            ids, mask = batch["input_ids"].to(self.device), batch["attention_mask"].to(self.device)
            logits = self.model(ids, mask)
            if self.task == "language-modelling":  # the last token says what comes next
                logits = logits[torch.arange(len(rows)), mask.sum(dim=1) - 1]
            best = logits.float().softmax(dim=-1).max(dim=-1)
            for i, number, probability in zip(rows, best.indices.cpu(), best.values.cpu(), strict=True):
                results[i] = self._result(encodings[i], inputs[i], number.numpy(), probability.numpy())
        return [results[i] for i in range(len(texts))]

    def _result(self, encoding: Any, words: Any, number: np.ndarray, probability: np.ndarray) -> Prediction:
        if self.task == "language-modelling":
            return self.tokenizer.decode([int(number)]), float(probability)
        if self.task == "classification":
            return self.label_names[int(number)], float(probability)
        # A word's label is that of its first token.
        first = {word: i for i, word in reversed([*enumerate(encoding.word_ids)]) if word is not None}
        labelled = [f"{words[word]}/{self.label_names[number[i]]}" for word, i in sorted(first.items())]
        return " ".join(labelled), float(probability[list(first.values())].mean()) if first else 0.0
