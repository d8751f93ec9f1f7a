"""Tokenise once, read many times: token ids in one flat memory-mapped array."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib.data.cache import cache_dir, digest
from course_lib.data.corpus import corpus_key, load_docstrings
from course_lib.data.texts import Texts, split
from course_lib.data.tokenizer import load_tokenizer, parallel_tokenizers, train_tokenizer
from course_lib.errors import UserError
from course_lib.files import atomic_directory, atomic_write_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FORMAT = 2
_ENCODE_AT_ONCE = 1024
_FILES = {"ids.npy", "offsets.npy", "labels.npy", "meta.json", "tokenizer.json"}
SPLIT_SEED = 0
VOCAB_SIZE = 8192


class TokenStore:
    """Token ids and labels of n texts. `store[i]` is a sample: (int64 ids [length], int label).

    On disk: `ids.npy` (all ids end to end), `offsets.npy` (n + 1 positions), `labels.npy`, `meta.json`,
    `tokenizer.json`. The ids stay on disk until they are touched, and processes share them.

    Attributes:
        lengths: int64 [n], tokens per text.
        labels: int64 [n].
        label_names: the classes.
        fingerprint: SHA-256 of texts, labels, tokenizer and max_length (for a subset: and its indices).
        directory: where the files are.
        max_length, vocab_size, num_truncated: tokens kept per text, size of the vocabulary, texts cut.
    """

    def __init__(self, directory: Path, indices: np.ndarray | None = None) -> None:
        """Open a folder that `build` made. Prefer `TokenStore.load`, whose errors name the fix."""
        self.directory = Path(directory)
        meta = json.loads((self.directory / "meta.json").read_text(encoding="utf-8"))
        if meta["format"] != FORMAT:
            raise ValueError(f"format {meta['format']}, expected {FORMAT}")
        # As a plain array: each slice of a np.memmap would cost a Python call more.
        self._ids = np.asarray(np.load(self.directory / "ids.npy", mmap_mode="r"))
        offsets = np.load(self.directory / "offsets.npy")
        labels = np.load(self.directory / "labels.npy")
        has_tokenizer = (self.directory / "tokenizer.json").is_file()
        if len(offsets) != len(labels) + 1 or offsets[-1] != len(self._ids) or not has_tokenizer:
            raise ValueError("its parts do not fit together")
        self._indices = indices
        chosen = slice(None) if indices is None else indices
        self._starts: np.ndarray = offsets[:-1][chosen]
        self.lengths: np.ndarray = np.diff(offsets)[chosen]
        self.labels: np.ndarray = labels[chosen]
        self.label_names: tuple[str, ...] = tuple(meta["label_names"])
        self.max_length: int = meta["max_length"]
        self.vocab_size: int = meta["vocab_size"]
        self.num_truncated: int = meta["num_truncated"]
        whole: str = meta["fingerprint"]
        self.fingerprint = whole if indices is None else digest(whole, indices.tobytes())

    @classmethod
    def build(
        cls,
        texts: Texts,
        tokenizer: Tokenizer,
        *,
        max_length: int,
        directory: str | Path | None = None,
        progress: bool = True,
    ) -> TokenStore:
        """Encode `texts`, cut to `max_length` tokens ([CLS] included), and save; or find it done before.

        Args:
            directory: where to save; None for the cache folder, under the fingerprint.
            progress: draw a progress bar on stdout.

        Raises:
            UserError: `max_length` is below 1, there are no texts, or the folder cannot be written.
        """
        if max_length < 1:
            raise UserError(f"max_length={max_length} must be at least 1")
        if not len(texts):
            raise UserError("there are no texts to tokenise")
        description = tokenizer.to_str()
        fingerprint = digest(texts.fingerprint, description, str(max_length), str(FORMAT))
        target = Path(directory) if directory is not None else cache_dir() / f"store-{fingerprint[:20]}"
        found = _open(target)
        if found is not None and found.fingerprint == fingerprint:
            return found
        _make_room(target)
        flat, offsets, num_truncated = _encode(texts.texts, tokenizer, max_length, progress)
        meta = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "label_names": texts.label_names,
            "max_length": max_length,
            "vocab_size": tokenizer.get_vocab_size(),
            "num_truncated": num_truncated,
        }
        with atomic_directory(target) as temporary:
            np.save(temporary / "ids.npy", flat)
            np.save(temporary / "offsets.npy", offsets)
            np.save(temporary / "labels.npy", texts.labels.astype(np.int64))
            (temporary / "tokenizer.json").write_text(description, encoding="utf-8")
            (temporary / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return cls.load(target)

    @classmethod
    def load(cls, directory: str | Path) -> TokenStore:
        """Open a saved store without reading its ids.

        Raises:
            UserError: the folder is missing, incomplete or of another format.
        """
        try:
            return cls(Path(directory))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{directory} is not a token store: {error}. Delete it and build it again."
            ) from error

    def subset(self, indices: Sequence[int] | np.ndarray) -> TokenStore:
        """A view of the samples at `indices`, in that order; shares the ids.

        Raises:
            IndexError: an index is not in 0..n-1 (negative ones count from the end).
        """
        chosen = np.arange(len(self), dtype=np.int64)[np.asarray(indices, dtype=np.int64)]
        whole = chosen if self._indices is None else self._indices[chosen]
        return TokenStore(self.directory, whole)

    def load_tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids, read from the folder."""
        return load_tokenizer(self.directory / "tokenizer.json")

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        start = self._starts[index]
        # A copy in the type that embedding layers want: 8 bytes a token, of this one sample only.
        return self._ids[start : start + self.lengths[index]].astype(np.int64), int(self.labels[index])

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process opens the files again: the ids are shared through the page cache, not copied.
        return TokenStore, (self.directory, self._indices)

    def __repr__(self) -> str:
        return (
            f"TokenStore({len(self):,} texts, {len(self.label_names)} labels, max_length={self.max_length})"
        )


def docstring_store(*, max_length: int = 1024, progress: bool = True) -> tuple[TokenStore, TokenStore]:
    """The docstring corpus ready to train on: (train, validation), split by source file, ids at hand.

    The first call builds corpus, tokenizer (on the training split only) and stores, with progress bars on
    stdout; later calls take a fraction of a second. Errors as `load_docstrings` and `TokenStore.build`.
    """
    key = digest(corpus_key(), str(max_length), str(SPLIT_SEED), str(VOCAB_SIZE), str(FORMAT))
    index = cache_dir() / f"docstring-store-{key[:20]}.json"
    try:
        names = json.loads(index.read_text(encoding="utf-8"))
        found = [_open(index.parent / names[part]) for part in ("train", "validation")]
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    texts = load_docstrings(progress=progress)
    train_indices, validation_indices = split(texts, validation=0.1, seed=SPLIT_SEED)
    train_texts = texts.subset(train_indices)
    tokenizer = train_tokenizer(train_texts.texts, vocab_size=VOCAB_SIZE)
    train = TokenStore.build(train_texts, tokenizer, max_length=max_length, progress=progress)
    validation_texts = texts.subset(validation_indices)
    validation = TokenStore.build(validation_texts, tokenizer, max_length=max_length, progress=progress)
    names = {"train": train.directory.name, "validation": validation.directory.name}
    atomic_write_text(index, json.dumps(names))
    return train, validation


def _open(directory: Path) -> TokenStore | None:
    try:
        return TokenStore.load(directory)
    except UserError:
        return None


def _make_room(target: Path) -> None:
    """Remove an older or damaged store, but never a folder that holds anything else."""
    if target.is_dir() and {item.name for item in target.iterdir()} <= _FILES:
        shutil.rmtree(target, ignore_errors=True)
    elif target.exists():
        raise UserError(f"{target} exists and is not a token store. Choose another folder or empty it.")


def _encode(
    texts: list[str], tokenizer: Tokenizer, max_length: int, progress: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """(flat ids, offsets [n + 1], number of texts cut)."""
    from tqdm import tqdm

    dtype = np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.int32
    pieces: list[np.ndarray] = []
    num_truncated = 0
    bar = tqdm(total=len(texts), desc="Tokenising", mininterval=0.5, file=sys.stdout, disable=not progress)
    with bar, parallel_tokenizers():
        for start in range(0, len(texts), _ENCODE_AT_ONCE):
            for encoding in tokenizer.encode_batch(texts[start : start + _ENCODE_AT_ONCE]):
                ids = encoding.ids
                num_truncated += len(ids) > max_length
                pieces.append(np.array(ids[:max_length], dtype=dtype))
                bar.update()
    offsets = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    return np.concatenate(pieces), offsets, num_truncated
