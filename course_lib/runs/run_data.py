"""The data of a run: texts, split, tokenizer, token store."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import NamedTuple

from course_lib.base.errors import UserError
from course_lib.data.corpus import load_docstrings, load_source
from course_lib.data.store import TokenStore, split_store
from course_lib.data.tables import load_table
from course_lib.data.texts import Texts
from course_lib.data.tokenizer import load_tokenizer
from course_lib.runs.config import BUILT_IN_DATA, TrainConfig
from course_lib.runs.folder import RunFolder


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
        return (load_source if is_of_words else load_docstrings)(progress=progress)
    if is_of_words:
        raise UserError(
            f"task={config.task} has no data but data={BUILT_IN_DATA}: give that, or another task"
        )
    return load_table(config.data, use_labels=config.task == "classification", progress=progress)
