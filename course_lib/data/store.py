"""Tokenise once, read many times: token ids in one flat memory-mapped array, larger than memory if need be."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from course_lib.base import UserError, atomic_directory, atomic_write_text, cache_dir, digest
from course_lib.data.batching import IGNORE
from course_lib.data.corpus import DOCSTRINGS_FINGERPRINT, load_docstrings
from course_lib.data.encoding import encode
from course_lib.data.texts import Texts, split
from course_lib.data.tokenizer import load_tokenizer, pad_id, train_tokenizer

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

FORMAT = 3
_WITH_TARGETS = ("multi-label", "regression")
_OF_TEXTS = ("classification", *_WITH_TARGETS)
SPLIT_SEED = 0
VOCAB_SIZE = 8192
TOKENIZER_TEXTS = 200_000


class TokenStore:
    """Token ids and labels of n texts. `store[i]` is a sample: (int64 ids [length], label).

    The label is an int (classification), a float (regression), float32 [C] of zeros and ones (multi-label), or int64
    [length], -100 where there is none: for token classification that of each word stands at its first token; for
    language modelling it is the next id.

    On disk: `ids.bin` (all ids end to end), `tags.bin` (the same for token classification),
    `offsets.npy` (n + 1 positions), `labels.npy`, `groups.npy`, `meta.json`, `tokenizer.json`. Ids stay on
    disk until they are touched, and processes share them; in memory are 24 bytes a text.

    Attributes:
        lengths: int64 [n], tokens per text.
        labels: of each text its class, int64 [n]; regression: its number, float64 [n]; multi-label: uint8
            [n, ceil(C / 8)], a bit per label as `np.packbits` sets them.
        label_names: the C classes of texts or words; () for regression and language modelling.
        task: "classification", "multi-label", "regression", "token-classification" or "language-modelling".
        fingerprint: SHA-256 of texts, labels, tokenizer, task and max_length (for a subset: and its indices).
        directory: where the files are.
        max_length, vocab_size, pad_id: tokens kept per text, size of the vocabulary, id of padding.
        num_truncated: texts cut, in the whole store.
    """

    def __init__(self, directory: Path, indices: np.ndarray | None = None) -> None:
        """Open a folder that `build` made. Prefer `TokenStore.load`, whose errors name the fix."""
        self.directory = Path(directory)
        meta = json.loads((self.directory / "meta.json").read_text(encoding="utf-8"))
        if meta["format"] != FORMAT:
            raise ValueError(f"format {meta['format']}, expected {FORMAT}")
        self.task: str = meta["task"]
        self.label_names = tuple(meta["label_names"])
        self.max_length: int = meta["max_length"]
        self.vocab_size: int = meta["vocab_size"]
        self.pad_id: int = meta["pad_id"]
        self.num_truncated: int = meta["num_truncated"]
        # As plain arrays: each slice of a np.memmap would cost a Python call more.
        self._ids = np.asarray(np.memmap(self.directory / "ids.bin", meta["dtype"], mode="r"))
        self._tags = self._ids
        if self.task == "token-classification":
            self._tags = np.asarray(np.memmap(self.directory / "tags.bin", "int16", mode="r"))
        offsets = np.load(self.directory / "offsets.npy", mmap_mode="r")
        if not len(self._ids) == len(self._tags) == offsets[-1]:
            raise ValueError("its parts do not fit together")
        chosen = slice(None) if indices is None else indices
        self._indices = indices
        self._starts: np.ndarray = np.array(offsets[:-1][chosen])
        self.lengths: np.ndarray = np.diff(offsets)[chosen]
        self.labels: np.ndarray = np.load(self.directory / "labels.npy")[chosen]
        self.fingerprint: str = meta["fingerprint"]
        if indices is not None:
            self.fingerprint = digest(self.fingerprint, indices.tobytes())

    @classmethod
    def build(
        cls,
        texts: Texts,
        tokenizer: Tokenizer,
        *,
        max_length: int,
        task: str = "classification",
        progress: bool = True,
    ) -> TokenStore:
        """Encode `texts`, cut to `max_length` tokens (special ones included), and save in the cache folder under
        the fingerprint; or find it done before.

        Texts are read, encoded on all cores and written 128 at a time. Draws a progress bar on stdout.

        Raises:
            UserError: `max_length` has no room for the special tokens, there are no texts, their labels are not of
                the task, or the folder cannot be written.
        """
        smallest = max(1, tokenizer.num_special_tokens_to_add(False))
        if max_length < smallest:
            raise UserError(f"max_length={max_length} must be at least {smallest}")
        if not len(texts):
            raise UserError("there are no texts to tokenise")
        if (task == "token-classification") != (texts.word_labels is not None):
            raise UserError(f"task={task} does not fit: only token classification has labels per word")
        if (task in _WITH_TARGETS) != (texts.targets is not None):
            raise UserError(f"task={task} does not fit: give load_table the task, too")
        description = tokenizer.to_str()
        fingerprint = digest(texts.fingerprint, description, task, str(max_length), str(FORMAT))
        target = cache_dir() / f"store-{fingerprint[:20]}"
        with contextlib.suppress(UserError):
            return cls.load(target)
        shutil.rmtree(target, ignore_errors=True)  # damaged
        with atomic_directory(target) as temporary:
            meta = encode(texts, tokenizer, max_length, temporary, progress) | {
                "format": FORMAT,
                "fingerprint": fingerprint,
                "task": task,
                "label_names": () if task == "language-modelling" else texts.label_names,
                "max_length": max_length,
                "vocab_size": 1 + max(tokenizer.get_vocab().values()),
                "pad_id": pad_id(tokenizer),
            }
            labels = texts.labels.astype(np.int64) if texts.targets is None else texts.targets
            np.save(temporary / "labels.npy", labels)
            np.save(temporary / "groups.npy", texts.group_numbers())
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
            raise UserError(f"{directory} is not a token store: {error}. Delete and rebuild it") from error

    def subset(self, indices: Sequence[int] | np.ndarray) -> TokenStore:
        """A view of the samples at `indices`, in that order; shares the ids.

        Raises:
            IndexError: an index is not in 0..n-1 (negative ones count from the end).
        """
        mine = np.arange(len(self), dtype=np.int64) if self._indices is None else self._indices
        return TokenStore(self.directory, mine[np.asarray(indices, dtype=np.int64)])

    def batch(
        self, indices: Sequence[int] | np.ndarray, *, pad_to: int | None = None
    ) -> dict[str, torch.Tensor]:
        """What `collate([store[i] for i in indices], pad_id=store.pad_id, pad_to=pad_to)` gives, without a loop over
        samples; `pad_to` must not be below the longest."""
        import torch

        rows = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[rows]
        columns = np.arange(pad_to or lengths.max())
        is_real = columns < lengths[:, None]
        positions = self._starts[rows][:, None] + columns
        # Past the end of a row stand the ids of the next text: "clip" keeps the last row inside the array.
        input_ids = np.where(is_real, self._ids.take(positions, mode="clip"), np.int64(self.pad_id))
        if self.task in _OF_TEXTS:
            labels = self._labels_of(rows)
        elif self.task == "token-classification":
            labels = np.where(is_real, self._tags.take(positions, mode="clip"), np.int64(IGNORE))
        else:
            labels = np.full_like(input_ids, IGNORE)
            labels[:, :-1] = np.where(is_real[:, 1:], input_ids[:, 1:], IGNORE)
        parts = {"input_ids": input_ids, "attention_mask": is_real, "labels": labels}
        return {name: torch.from_numpy(part) for name, part in parts.items()}

    def _labels_of(self, rows: np.ndarray) -> np.ndarray:
        """int64 [B], float32 [B] (regression) or float32 [B, C] (multi-label)."""
        if self.task == "classification":
            return self.labels[rows]
        if self.task == "regression":
            return self.labels[rows].astype(np.float32)
        return np.unpackbits(self.labels[rows], axis=1, count=len(self.label_names)).astype(np.float32)

    def id_counts(self) -> np.ndarray:
        """int64 [vocab_size]: how often each id stands in these texts."""
        counts = np.zeros(self.vocab_size, dtype=np.int64)
        for start, length in zip(self._starts.tolist(), self.lengths.tolist(), strict=True):
            np.add.at(counts, self._ids[start : start + length], 1)
        return counts

    def group_numbers(self) -> np.ndarray:
        """int64 [n]: texts with the same number never part in a split."""
        return np.load(self.directory / "groups.npy")[slice(None) if self._indices is None else self._indices]

    def load_tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids, read from the folder."""
        return load_tokenizer(self.directory / "tokenizer.json")

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int | np.ndarray]:
        start = self._starts[index]
        part = slice(start, start + self.lengths[index])
        # A copy in the type that embedding layers want: 8 bytes a token, of this one sample only.
        ids = self._ids[part].astype(np.int64)
        if self.task in _OF_TEXTS:
            label = self._labels_of(np.array([index]))[0]
            return ids, label if label.ndim else label.item()
        if self.task == "token-classification":
            return ids, self._tags[part].astype(np.int64)
        return ids, np.append(ids[1:], IGNORE)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process opens the files again: the ids are shared through the page cache, not copied.
        return TokenStore, (self.directory, self._indices)

    def __repr__(self) -> str:
        return f"TokenStore({len(self):,} texts, {self.task}, max_length={self.max_length})"


def split_store(
    texts: Texts,
    *,
    max_length: int,
    tokenizer: Tokenizer | None = None,
    vocab_size: int = VOCAB_SIZE,
    task: str = "classification",
    validation: float = 0.1,
    progress: bool = True,
) -> tuple[TokenStore, TokenStore]:
    """(train, validation): two views of one store. Without a `tokenizer` one is trained, on training texts
    only, evenly taken, at most 200,000 of them. Errors as `split`, `train_tokenizer` and `TokenStore.build`."""
    parts = split(texts, validation=validation, seed=SPLIT_SEED)
    if tokenizer is None:
        tokenizer = tokenizer_of(texts, parts[0], vocab_size=vocab_size)
    store = TokenStore.build(texts, tokenizer, max_length=max_length, task=task, progress=progress)
    return store.subset(parts[0]), store.subset(parts[1])


def tokenizer_of(
    texts: Texts, indices: np.ndarray, *, vocab_size: int, kinds: Sequence[str] = ("tokens",)
) -> Tokenizer:
    """One trained on the texts at `indices`, evenly taken: of `tokens`, of `ngrams`, or of both, the tokens first.
    Errors as `train_tokenizer`."""
    is_seen = np.zeros(len(texts), dtype=bool)
    is_seen[indices[:: 1 + len(indices) // TOKENIZER_TEXTS]] = True
    inner = None
    if "tokens" in kinds:
        inner = train_tokenizer(itertools.compress(texts.texts, is_seen), vocab_size=vocab_size)
        if "ngrams" not in kinds:
            return inner
    from course_lib.data.ngrams import train_ngrams

    offset = vocab_size if inner else 0
    made = train_ngrams(itertools.compress(texts.texts, is_seen), inner=inner, offset=offset)
    return cast("Tokenizer", made)  # it is used as one


def docstring_store(*, max_length: int = 1024, progress: bool = True) -> tuple[TokenStore, TokenStore]:
    """The docstring corpus ready to train on: (train, validation), split by source file, ids at hand.

    The first call builds tokenizer (on the training split only) and store, in about ten seconds, with a progress
    bar on stdout; later calls take a fraction of a second. Errors as `load_docstrings` and `TokenStore.build`.
    """
    key = digest(DOCSTRINGS_FINGERPRINT, str(max_length), str(SPLIT_SEED), str(VOCAB_SIZE), str(FORMAT))
    index = cache_dir() / f"docstring-store-{key[:20]}.json"
    try:
        store = TokenStore.load(index.parent / json.loads(index.read_text(encoding="utf-8")))
        parts = split(store, seed=SPLIT_SEED)
        return store.subset(parts[0]), store.subset(parts[1])
    except (OSError, ValueError, TypeError):  # a UserError is a ValueError
        stores = split_store(load_docstrings(), max_length=max_length, progress=progress)
        atomic_write_text(index, json.dumps(stores[0].directory.name))
        return stores
