"""Scores of predicted classes: per class, by length, over all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

MAX_MATRIX_LABELS = 20  # a wider table of counts cannot be read
MAX_PAIRS = 1000


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str]) -> np.ndarray:
    """Counts int64 [C, C]: rows are labels, columns predictions, from int arrays [N]."""
    num_classes = len(label_names)
    return np.bincount(labels * num_classes + predictions, minlength=num_classes**2).reshape(num_classes, -1)


def classification_table(confusion: np.ndarray, label_names: Sequence[str]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of each class, from counts [label, prediction]. 0 where a class was never
    predicted (precision) or never occurs (recall). `mistaken_for` names its most frequent wrong answer, if any."""
    hits, actual, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    errors = confusion - np.diag(hits)
    columns = {
        "label": label_names,
        "precision": (hits / np.maximum(predicted, 1)).tolist(),
        "recall": (hits / np.maximum(actual, 1)).tolist(),
        "f1": (2 * hits / np.maximum(actual + predicted, 1)).tolist(),
        "num_samples": actual.tolist(),
        "mistaken_for": [label_names[row.argmax()] if row.any() else None for row in errors],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def confused_pairs(confusion: np.ndarray, label_names: Sequence[str]) -> list[dict[str, Any]]:
    """The most frequent errors, from counts [label, prediction]: at most `MAX_PAIRS`, the most frequent first."""
    errors = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-errors, axis=None, kind="stable")[: min(MAX_PAIRS, np.count_nonzero(errors))]
    return [
        {"label": label_names[i], "predicted": label_names[j], "num_samples": int(errors[i, j])}
        for i, j in zip(*np.unravel_index(order, errors.shape), strict=True)
    ]


def macro_f1(confusion: np.ndarray) -> float:
    """Mean F1 over the classes that occur, however rare each is, from counts [label, prediction]; 0 for none."""
    actual, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    f1 = 2 * np.diag(confusion) / np.maximum(actual + predicted, 1)
    return float(f1[actual > 0].mean()) if actual.any() else 0.0


def perplexity(loss: float) -> float:
    """exp of the mean cross-entropy in nats; infinite where that is past all floats."""
    return math.exp(loss) if loss < 709 else math.inf


def length_slices(
    lengths: np.ndarray, labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Accuracy of the quarters from short to long texts, and macro F1 when there are `label_names`; int [N]."""
    rows = []
    for name, is_own in quarters(lengths):
        actual, predicted = labels[is_own], predictions[is_own]
        row = {"slice": name, "num_samples": len(actual), "accuracy": float((actual == predicted).mean())}
        if len(label_names):
            row["macro_f1"] = macro_f1(confusion_matrix(actual, predicted, label_names))
        rows.append(row)
    return rows


def quarters(lengths: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The quarters from short to long of int [N]: `"3–17"`, and bool [N] for those in it."""
    edges = np.unique(np.quantile(lengths, (0.25, 0.5, 0.75), method="lower")) if len(lengths) else ()
    quarter = np.searchsorted(edges, lengths)  # quarter 0: up to and with the first edge
    for k in np.unique(quarter):
        sizes = lengths[quarter == k]
        yield f"{sizes.min():,}–{sizes.max():,}", quarter == k
