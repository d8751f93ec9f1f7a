"""The data of a config: its tables or the built-in texts, split, tokenised and stored."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from course_lib.base import UserError
from course_lib.data import (
    Parts,
    Texts,
    load_docstrings,
    load_source,
    load_table,
    load_tokenizer,
    make_parts,
)
from course_lib.runs.config import BUILT_IN_DATA, FRAME, TrainConfig
from course_lib.runs.folder import RunFolder

KINDS = {"ngrams": ("ngrams",), "joined": ("tokens", "ngrams")}
"""What texts are made of, by `model`; tokens elsewhere."""
RunData = Parts


def load_data(
    config: TrainConfig, folder: RunFolder, *, progress: bool = True, frames: Mapping[str, Any] | None = None
) -> RunData:
    """Texts, split, tokenizer and token store of a config. The tokenizer is the Hugging Face model's, or the
    one that the run folder already has, or one trained on the training texts. The split does not depend on
    `config.seed`, so that runs with several seeds are judged on the same texts. `frames`: by key of the config
    (`data`, `validation_data`, `test_data`), what stands where it says `frame`. Errors are UserErrors."""
    path = folder.tokenizer
    if config.init_from and not path.exists():
        first = RunFolder(config.init_from)
        first.read_config()  # raises where no run is
        path = first.tokenizer  # the weights belong to its ids
    elif config.hf_model and not path.exists():
        from course_lib.models import check_hf_folder

        path = check_hf_folder(config.hf_model, config.task) / "tokenizer.json"
    with contextlib.redirect_stdout(sys.stderr):  # progress bars: stdout belongs to the answer
        texts = _load_texts(config, "data", frames or {}, progress)
        return make_parts(
            texts,
            **{
                f"{part}_texts": _load_texts(config, f"{part}_data", frames or {}, progress, like=texts)
                for part in ("validation", "test")
                if getattr(config, f"{part}_data") is not None
            },
            max_length=config.max_length,
            tokenizer=load_tokenizer(path) if config.hf_model or config.init_from or path.exists() else None,
            vocab_size=config.vocab_size,
            kinds=KINDS.get(config.model, ("tokens",)),
            task=config.task,
            validation=config.validation,
            progress=progress,
        )


def given_frames(config: TrainConfig, **frames: Any) -> dict[str, Any]:
    """Those that are there, by key. Raises UserError for one that the config does not ask for."""
    given = {key: frame for key, frame in frames.items() if frame is not None}
    for key in given:
        if (named := getattr(config, key)) != FRAME:
            raise UserError(f"{key}= is a frame and the config names {named}: set {key}={FRAME!r}")
    return given


def _load_texts(
    config: TrainConfig, key: str, frames: Mapping[str, Any], progress: bool, *, like: Texts | None = None
) -> Texts:
    source = getattr(config, key)
    if source == BUILT_IN_DATA and key == "data":
        if config.task in ("multi-label", "regression"):
            raise UserError(f"task={config.task} has no data in {BUILT_IN_DATA}: give a table")
        return load_source() if config.task == "token-classification" else load_docstrings()
    if source == FRAME:
        if key not in frames:
            raise UserError(
                f"{key}={FRAME} stands for a frame: call run_training(config, out, {key}=the_frame)"
            )
        source = frames[key]
    columns = {name: getattr(config, name) for name in ("text_column", "label_column")}
    if like is not None:  # the same as in the first table, found there or named
        columns = {f"{name}_column": like.columns.get(name) for name in ("text", "label")}
    return load_table(
        source,
        task=config.task,
        **columns,
        encoding=config.encoding,
        has_header=config.has_header,
        like=like,
        progress=progress,
    )
