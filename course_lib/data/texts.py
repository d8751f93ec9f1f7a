"""Labelled texts, and a split of them that leaks nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from course_lib.base import UserError, digest


class Grouped(Protocol):
    """What can be split, such as `Texts` and a `TokenStore`: `labels` int64 [n], and a group number of each."""

    @property
    def labels(self) -> np.ndarray: ...
    def group_numbers(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)  # two are the same when their fingerprints are
class Texts:
    """Texts with one label each, several, a number, or with one label per word.

    Attributes:
        texts: n texts: a list, or a file that is read again each time it is iterated. For token
            classification each text is a list of words.
        labels: int64 [n], index into `label_names`; with `word_labels` all 0; with `targets` what a split keeps
            in equal shares.
        label_names: the classes, in the order of their numbers.
        groups: int64 [n] or None: texts with the same number never part in a split (here: one source file).
        word_labels: None, or for each text a list with one label per word; a list, or read again as `texts` are.
        targets: None; for several labels a text uint8 [n, ceil(C / 8)], a bit per label as `np.packbits` sets them;
            for a number a text float64 [n].
        fingerprint: SHA-256 of texts, labels, label names and groups.
        notes: what was found, left out, mended or is worth knowing, one sentence each.
        columns: the names of the columns that `text` and `label` were read from.
    """

    texts: Any  # a sized iterable; its items are str, or list[str] with word_labels
    labels: np.ndarray
    label_names: tuple[str, ...]
    groups: np.ndarray | None = None
    word_labels: Any = None  # a sized iterable of list[int]
    targets: np.ndarray | None = None
    fingerprint: str = ""
    notes: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise ValueError(f"{len(self.texts)} texts but {len(self.labels)} labels")
        if not self.fingerprint:
            object.__setattr__(self, "fingerprint", self.content_fingerprint())

    def __len__(self) -> int:
        return len(self.labels)

    def content_fingerprint(self) -> str:
        """SHA-256 of the content (the notes are not content)."""
        texts = digest(*map(as_one, self.texts))
        numbers = (self.labels, self.groups, *(self.word_labels or ()))
        parts = [b"" if part is None else np.asarray(part, dtype="<i8").tobytes() for part in numbers]
        if self.targets is not None:
            parts.append(self.targets.astype(self.targets.dtype.newbyteorder("<")).tobytes())
        return digest("\x00".join(self.label_names), *parts, texts)

    def group_numbers(self) -> np.ndarray:
        """`groups`, or without them a number that texts share when they are equal but for case and spacing."""
        if self.groups is not None:
            return self.groups
        return np.fromiter((text_key(as_one(text)) for text in self.texts), dtype=np.int64, count=len(self))


def split(texts: Grouped, *, validation: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Split into training and validation indices, label by label, without leaking.

    Texts of one group stay together; without groups, texts that are equal but for case and spacing count as
    one group, so that no validation text has been trained on. Each label gives about `validation` of its
    texts, never all of them, and at least one group when it has two or more. Looks at labels and group
    numbers alone, so that the texts need not be in memory.

    Returns:
        (train, validation): int64 indices, each ascending; together they are 0..n-1.

    Raises:
        UserError: `validation` is not between 0 and 1, or nothing is left to validate on.
    """
    if not 0.0 < validation < 1.0:
        raise UserError(f"validation={validation} must lie between 0 and 1, for example 0.1")
    groups = texts.group_numbers()
    _, first, member, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    group_label = texts.labels[first]
    rng = np.random.default_rng(seed)
    is_validation = np.zeros(len(sizes), dtype=bool)
    for label in range(int(texts.labels.max(initial=0)) + 1):
        candidates = rng.permutation(np.flatnonzero(group_label == label))
        is_validation[_take(candidates, sizes[candidates], validation)] = True
    if not is_validation.any():
        raise UserError(f"the {len(member)} texts cannot be split: no label has two different ones. Add rows")
    in_validation = is_validation[member]
    return np.flatnonzero(~in_validation), np.flatnonzero(in_validation)


def _take(groups: np.ndarray, sizes: np.ndarray, share: float) -> list[int]:
    """Groups of one label, in the random order given, that fill `share` of it without overshooting."""
    if len(groups) < 2:
        return []
    total = int(sizes.sum())
    room = min(max(round(total * share), 1), total - 1)
    taken = []
    for group, size in zip(groups.tolist(), sizes.tolist(), strict=True):
        if size <= room:
            taken.append(group)
            room -= size
    # Every group is larger than the whole share: the smallest one overshoots least.
    return taken or [int(groups[sizes.argmin()])]


def as_one(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "\x1f".join(text)


def normalise(text: str) -> str:
    """Case and spacing folded: two texts that agree in this are duplicates."""
    return " ".join(text.casefold().split())


def text_key(text: str) -> int:
    """64 bits of a hash: equal for duplicates, and for two others with a chance of 1 in 10¹⁹."""
    data = normalise(text).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)
