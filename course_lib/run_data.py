"""The data of a run: texts, split, tokenizer, token stores."""

from __future__ import annotations

import contextlib
import sys
from typing import NamedTuple

from course_lib.config import BUILT_IN_DATA, TrainConfig
from course_lib.data.corpus import load_docstrings
from course_lib.data.store import TokenStore
from course_lib.data.tables import load_csv
from course_lib.data.texts import split
from course_lib.data.tokenizer import load_tokenizer, train_tokenizer
from course_lib.metrics import RunFolder


class RunData(NamedTuple):
    """What is trained on."""

    train: TokenStore
    validation: TokenStore
    fingerprint: str
    notes: list[str]


def load_data(config: TrainConfig, folder: RunFolder, *, progress: bool = True) -> RunData:
    """Texts, split, tokenizer and token stores of a config. The tokenizer sees training texts only; one that
    the run folder already has is used again."""
    with contextlib.redirect_stdout(sys.stderr):  # progress bars: stdout belongs to the answer
        texts = load_docstrings(progress=progress) if config.data == BUILT_IN_DATA else load_csv(config.data)
        train_indices, validation_indices = split(texts, validation=config.validation, seed=config.seed)
        train_texts, validation_texts = texts.subset(train_indices), texts.subset(validation_indices)
        if folder.tokenizer.exists():
            tokenizer = load_tokenizer(folder.tokenizer)
        else:
            tokenizer = train_tokenizer(train_texts.texts, vocab_size=config.vocab_size)
        train, validation = (
            TokenStore.build(part, tokenizer, max_length=config.max_length, progress=progress)
            for part in (train_texts, validation_texts)
        )
    notes = [*texts.notes]
    num_truncated = train.num_truncated + validation.num_truncated
    if num_truncated:
        notes.append(
            f"{num_truncated:,} of {len(texts):,} texts were cut to max_length={config.max_length} tokens"
        )
    return RunData(train, validation, texts.fingerprint, notes)
