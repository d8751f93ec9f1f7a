"""From texts to token ids on disk, on all cores, a few hundred texts at a time."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib.data.batching import IGNORE
from course_lib.data.texts import Texts
from course_lib.data.tokenizer import parallel_tokenizers, tokenizer_from

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_ENCODE_AT_ONCE = 2**18  # characters: work for all cores, and little memory (about 150 bytes a token)


def encode(
    texts: Texts, tokenizer: Tokenizer, max_length: int, folder: Path, progress: bool
) -> dict[str, Any]:
    """Write ids, token labels and offsets as they come; returns what `meta.json` says of them."""
    from tqdm import tqdm

    tokenizer = tokenizer_from(tokenizer.to_str())  # a copy, whose truncation is nobody else's concern
    tokenizer.enable_truncation(max_length)
    dtype = "uint16" if max(tokenizer.get_vocab().values()) < 2**16 else "int32"
    offsets = array("q", [0])
    num_truncated = 0
    bar = tqdm(total=len(texts), desc="Tokenising", mininterval=0.5, file=sys.stdout, disable=not progress)
    is_words = texts.word_labels is not None
    word_labels = iter(texts.word_labels or ())
    ids_file, labels_file = (folder / "ids.bin").open("wb"), (folder / "tags.bin").open("wb")
    with bar, ids_file, labels_file, parallel_tokenizers():
        for chunk in _chunks(texts.texts):
            for encoding in tokenizer.encode_batch(chunk, is_pretokenized=is_words):
                ids = np.array(encoding.ids, dtype=dtype)
                ids_file.write(ids.tobytes())
                offsets.append(offsets[-1] + len(ids))
                num_truncated += bool(encoding.overflowing)
                if is_words:
                    labels_file.write(_token_labels(encoding.word_ids, next(word_labels)).tobytes())
            bar.update(len(chunk))
    np.save(folder / "offsets.npy", np.asarray(offsets))
    return {"dtype": dtype, "num_truncated": num_truncated}


def _chunks(texts: Iterable[Any]) -> Iterator[list[Any]]:
    chunk, size = [], 0
    for text in texts:
        chunk.append(text)
        size += len(text) if isinstance(text, str) else sum(map(len, text))
        if size >= _ENCODE_AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _token_labels(word_ids: list[int | None], word_labels: list[int]) -> np.ndarray:
    """int16 [tokens]: the label of a word at its first token; -100 at special tokens and continuations."""
    before = [None, *word_ids]
    labels = [
        IGNORE if word is None or word == last else word_labels[word]
        for word, last in zip(word_ids, before, strict=False)
    ]
    return np.array(labels, dtype=np.int16)
