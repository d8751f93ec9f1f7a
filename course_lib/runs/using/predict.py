"""A trained run in use: text in, label and probability out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.base import resolve_device
from course_lib.data import collate, load_tokenizer, parallel_tokenizers
from course_lib.runs.components import build_model
from course_lib.runs.config import TrainConfig
from course_lib.runs.folder import RunFolder
from course_lib.runs.using.answers import Answer, Prediction, words_of

TEXTS_AT_ONCE = 2048
"""Texts that are sorted by length together."""
TOKENS_AT_ONCE = 4096
"""Rows × width of a batch: a language model makes as many rows of logits as its vocabulary is wide."""

Read = Callable[[Tensor, Tensor, Sequence[Any]], Iterable[Any]]
"""`read(logits, mask, encodings)`: fp32 logits [B, …] and mask [B, T] become one result for each of the B encodings."""


@dataclass(frozen=True)
class TrainedModel:
    """A finished run, ready to use: its weights in evaluation mode, on the CPU."""

    model: nn.Module
    tokenizer: Any
    label_names: tuple[str, ...]
    config: TrainConfig
    step: int


def load_trained(run_folder: str | Path, *, weights: str = "best") -> TrainedModel:
    """The model of a run folder: its `best` weights, by the metric that the run monitored, or its `last`.

    Raises UserError when the folder holds none.
    """
    folder = RunFolder(run_folder)
    config = TrainConfig.from_dict(folder.read_config(), source=str(folder.config))
    checkpoint = folder.read_checkpoint(weights)
    extra = checkpoint["extra"]
    model = build_model(
        config, vocab_size=extra["vocab_size"], num_classes=len(extra["label_names"]), trained=folder
    )
    folder.load_weights(checkpoint, model)
    return TrainedModel(
        model=model.eval(),
        tokenizer=load_tokenizer(folder.tokenizer),
        label_names=tuple(extra["label_names"]),
        config=config,
        step=checkpoint["state"]["step"],
    )


class Predictor:
    """The model of a run. `predict` is for lists, `stream` for what may not fit into memory.

    A prediction is a label and its probability. By task: the class of a text; its labels, with a comma between;
    a number (its probability is NaN); `word/label` for each word between spaces, with their mean probability; the
    most likely next token. `answers` gives the probability of every label, too.
    """

    def __init__(self, trained: TrainedModel, device: str = "auto") -> None:
        self.device, _ = resolve_device(device)
        self.model = trained.model.to(self.device).eval()
        self.task = trained.config.task
        self.label_names = trained.label_names
        self.step = trained.step
        self.tokenizer = trained.tokenizer
        self.tokenizer.enable_truncation(trained.config.max_length)

    @classmethod
    def load(cls, run_folder: str | Path, *, weights: str = "best") -> Predictor:
        """The `best` or the `last` model in a run folder. Raises UserError when it holds none."""
        return cls(load_trained(run_folder, weights=weights))

    def predict(self, texts: Iterable[str]) -> list[Prediction]:
        """One prediction per text, in the order of the texts; of a long text its first `max_length` tokens."""
        return [prediction for _, prediction in self.stream(texts)]

    def stream(self, texts: Iterable[str]) -> Iterator[tuple[str, Prediction]]:
        """Each text with its prediction; `TEXTS_AT_ONCE` are in memory."""
        return ((answer.text, (answer.label, answer.probability)) for answer in self.answers(texts))

    def answers(self, texts: Iterable[str | Sequence[str]]) -> Iterator[Answer]:
        """Each text with all that the model says of it, in the order of the texts. For token classification a text
        may also be a list of words."""
        for text, encoding, values in self.read(texts):
            yield Answer(self.task, self.label_names, text, len(encoding.ids), values, self._name_of)

    def read(
        self, texts: Iterable[str | Sequence[str]], read: Read | None = None
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Each text, its encoding, and what `read` makes of the model's output for it: scores, if not said."""
        read = read or self._scores
        texts = iter(texts)
        while chunk := list(islice(texts, TEXTS_AT_ONCE)):
            whole = [_whole(text) if isinstance(text, str) else [*map(_whole, text)] for text in chunk]
            inputs = [*map(words_of, whole)] if self._is_words else whole
            with parallel_tokenizers():
                encodings = self.tokenizer.encode_batch(inputs, is_pretokenized=self._is_words)
            yield from zip(whole, encodings, self._read_chunk(encodings, read), strict=True)

    @property
    def _is_words(self) -> bool:
        return self.task == "token-classification"  # as the tokenizer was used in training

    @torch.inference_mode()
    def _read_chunk(self, encodings: Sequence[Any], read: Read) -> list[Any]:
        # A tokenizer that adds no special tokens makes nothing of an empty text.
        samples = [(np.array(encoding.ids or [0]), 0) for encoding in encodings]
        longest_first = sorted(range(len(samples)), key=lambda i: -len(samples[i][0]))
        results: dict[int, Any] = {}
        while longest_first:
            rows = longest_first[: max(1, TOKENS_AT_ONCE // len(samples[longest_first[0]][0]))]
            del longest_first[: len(rows)]
            batch = collate([samples[i] for i in rows])
            ids, mask = batch["input_ids"].to(self.device), batch["attention_mask"].to(self.device)
            said = read(self.model(ids, mask).float(), mask, [encodings[i] for i in rows])
            results.update(zip(rows, said, strict=True))
        return [results[i] for i in range(len(samples))]

    def _scores(self, logits: Tensor, mask: Tensor, encodings: Sequence[Any]) -> Iterable[Any]:
        """By task, float32: a probability per class [C], per word and class [W, C], or per token [V]; a number [1]."""
        if self.task == "regression":
            return logits.reshape(len(encodings), -1).cpu().numpy()
        if self.task == "multi-label":
            return logits.sigmoid().cpu().numpy()
        if self.task == "language-modelling":  # the last token says what comes next
            logits = logits[torch.arange(len(encodings)), mask.sum(dim=1) - 1]
        scores = logits.softmax(dim=-1).cpu().numpy()
        if not self._is_words:
            return scores
        return [row[first_tokens(encoding)] for row, encoding in zip(scores, encodings, strict=True)]

    def _name_of(self, number: int) -> str:
        return (
            self.label_names[number] if self.task != "language-modelling" else self.tokenizer.decode([number])
        )


def first_tokens(encoding: Any) -> list[int]:
    """Where each word begins: its label is that of its first token. Words that were cut off are not there."""
    first = {word: i for i, word in reversed([*enumerate(encoding.word_ids)]) if word is not None}
    return [first[word] for word in sorted(first)]


def _whole(text: str) -> str:
    # Half a character (of an argument that is no UTF-8, or an escape in JSON) is refused by tokenizers.
    return text.encode("utf-8", "replace").decode()
