"""Texts become ids on disk, read, encoded on all cores and written chunk by chunk."""

from __future__ import annotations

import itertools
import sys
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib.base import progress_bar
from course_lib.data.batching import IGNORE
from course_lib.data.texts import Texts
from course_lib.data.tokenizer import copied, parallel_tokenizers

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TEXTS_AT_ONCE = 128  # work for all cores, and little memory (about 150 bytes a token)


def encode(
    texts: Texts, tokenizer: Tokenizer, max_length: int, folder: Path, progress: bool
) -> dict[str, Any]:
    """Write ids, token labels and offsets as they come; returns what `meta.json` says of them."""
    tokenizer = copied(tokenizer)  # its truncation is nobody else's concern
    tokenizer.enable_truncation(max_length)
    dtype = "uint16" if max(tokenizer.get_vocab().values()) < 2**16 else "int32"
    offsets, num_truncated = array("q", [0]), 0
    bar = progress_bar(texts.texts, "Tokenising", mininterval=0.5, file=sys.stdout, disable=not progress)
    rows = iter(bar)
    word_labels = iter(texts.word_labels or ())
    with (
        (folder / "ids.bin").open("wb") as ids,
        (folder / "tags.bin").open("wb") as tags,
        parallel_tokenizers(),
    ):
        while chunk := list(itertools.islice(rows, _TEXTS_AT_ONCE)):
            for encoding in tokenizer.encode_batch(chunk, is_pretokenized=texts.word_labels is not None):
                ids.write(np.array(encoding.ids, dtype=dtype).tobytes())
                offsets.append(offsets[-1] + len(encoding))
                num_truncated += bool(encoding.overflowing)
                if texts.word_labels is not None:
                    tags.write(_tags(encoding.word_ids, next(word_labels)).tobytes())
    np.save(folder / "offsets.npy", np.asarray(offsets))
    return {"dtype": dtype, "num_truncated": num_truncated}


def _tags(word_ids: list[int | None], word_labels: list[int]) -> np.ndarray:
    """int16 [tokens]: the label of a word at its first token; -100 at special tokens and continuations."""
    words = np.array([-1 if word is None else word for word in word_ids])
    is_first = (words >= 0) & (np.diff(words, prepend=-1) != 0)
    return np.where(is_first, np.array(word_labels, dtype=np.int16)[words], np.int16(IGNORE))
