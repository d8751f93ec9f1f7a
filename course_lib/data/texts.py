"""Labelled texts, and a split of them that leaks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from course_lib.data.cache import digest
from course_lib.errors import UserError


@dataclass(frozen=True, eq=False)  # two are the same when their fingerprints are
class Texts:
    """Texts with one label each.

    Attributes:
        texts: n texts.
        labels: int64 [n], index into `label_names`.
        label_names: the classes, in the order of their numbers.
        groups: int64 [n] or None: texts with the same number never part in a split (here: one source file).
        fingerprint: SHA-256 of texts, labels, label names and groups.
        notes: what was left out, mended or is worth knowing, one sentence each.
    """

    texts: list[str]
    labels: np.ndarray
    label_names: tuple[str, ...]
    groups: np.ndarray | None = None
    fingerprint: str = field(default="")
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise ValueError(f"{len(self.texts)} texts but {len(self.labels)} labels")
        if not self.fingerprint:
            object.__setattr__(self, "fingerprint", self.content_fingerprint())

    def __len__(self) -> int:
        return len(self.texts)

    def content_fingerprint(self) -> str:
        """SHA-256 of the content (the notes are not content)."""
        groups = b"" if self.groups is None else np.ascontiguousarray(self.groups, dtype="<i8").tobytes()
        return digest(
            "\x00".join(self.label_names),
            np.ascontiguousarray(self.labels, dtype="<i8").tobytes(),
            groups,
            digest(*self.texts),
        )

    def subset(self, indices: Sequence[int] | np.ndarray) -> Texts:
        """The texts at `indices`, in that order, under the same label names."""
        chosen = np.asarray(indices, dtype=np.int64)
        return Texts(
            texts=[self.texts[i] for i in chosen],
            labels=self.labels[chosen],
            label_names=self.label_names,
            groups=None if self.groups is None else self.groups[chosen],
        )


def split(texts: Texts, *, validation: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Split into training and validation indices, label by label, without leaking.

    Texts of one group stay together; without groups, texts that are equal but for case and spacing count as
    one group, so that no validation text has been trained on. Each label gives about `validation` of its
    texts, never all of them, and at least one group when it has two or more.

    Returns:
        (train, validation): int64 indices, each ascending; together they are 0..n-1.

    Raises:
        UserError: `validation` is not between 0 and 1, or nothing is left to validate on.
    """
    if not 0.0 < validation < 1.0:
        raise UserError(f"validation={validation} must lie between 0 and 1, for example 0.1")
    groups = texts.groups if texts.groups is not None else _equal_text_groups(texts.texts)
    unique, member = np.unique(groups, return_inverse=True)
    sizes = np.bincount(member, minlength=len(unique))
    group_label = _majority_label(member, texts.labels, len(unique), len(texts.label_names))
    rng = np.random.default_rng(seed)
    is_validation = np.zeros(len(unique), dtype=bool)
    for label in range(len(texts.label_names)):
        candidates = rng.permutation(np.flatnonzero(group_label == label))
        is_validation[_take(candidates, sizes, validation)] = True
    if not is_validation.any():
        raise UserError(
            f"the {len(texts)} texts cannot be split: no label has two different texts. Add more rows per label."
        )
    in_validation = is_validation[member]
    return np.flatnonzero(~in_validation), np.flatnonzero(in_validation)


def _take(candidates: np.ndarray, sizes: np.ndarray, share: float) -> list[int]:
    """Groups of one label, in the random order given, that fill `share` of it without overshooting."""
    if len(candidates) < 2:
        return []
    total = int(sizes[candidates].sum())
    target = min(max(round(total * share), 1), total - 1)
    taken, filled = [], 0
    for group in candidates:
        if filled + sizes[group] <= target:
            taken.append(int(group))
            filled += int(sizes[group])
    # Every group is larger than the whole share: the smallest one overshoots least.
    return taken or [int(min(candidates, key=lambda group: sizes[group]))]


def _majority_label(member: np.ndarray, labels: np.ndarray, num_groups: int, num_labels: int) -> np.ndarray:
    pairs, counts = np.unique(member * np.int64(num_labels) + labels, return_counts=True)
    by_count = np.argsort(counts, kind="stable")
    group_label = np.zeros(num_groups, dtype=np.int64)
    # Assignment in ascending order of count leaves each group with its most frequent label.
    group_label[pairs[by_count] // num_labels] = pairs[by_count] % num_labels
    return group_label


def normalise(text: str) -> str:
    """Case and spacing folded: two texts that agree in this are duplicates."""
    return " ".join(text.casefold().split())


def _equal_text_groups(texts: list[str]) -> np.ndarray:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(normalise(text), len(numbers)) for text in texts], dtype=np.int64)
