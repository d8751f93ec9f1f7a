"""Scores of predictions: per class, by length, over all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

MAX_MATRIX_LABELS = 20  # a wider heat map cannot be read


def evaluation_summary(
    task: str, labels: np.ndarray, predictions: np.ndarray, lengths: np.ndarray, label_names: Sequence[str]
) -> dict[str, Any]:
    """What a record says of an evaluation, in JSON values.

    `labels` and `predictions`: int [N], one per item (a text, or a token that has a label); `lengths`: int
    [N], tokens of the text that the item is or stands in. `slices["length"]`, and for classification of texts
    and tokens `per_class` (a slice per label) and `confusion` (None for more labels than a table can show).
    """
    names = [] if task == "language-modelling" else list(label_names)  # a table over a vocabulary is not made
    counts = confusion_matrix(labels, predictions, names) if names else None
    return {
        "per_class": [] if counts is None else classification_table(counts, names),
        "slices": {"length": length_slices(lengths, labels, predictions, names)},
        "confusion": None if counts is None or len(names) > MAX_MATRIX_LABELS else counts.tolist(),
    }


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
    edges = np.unique(np.quantile(lengths, (0.25, 0.5, 0.75), method="lower")) if len(lengths) else ()
    quarter, rows = np.searchsorted(edges, lengths), []  # quarter 0: up to and with the first edge
    for k in np.unique(quarter):
        sizes, actual, predicted = (values[quarter == k] for values in (lengths, labels, predictions))
        row = {"slice": f"{sizes.min():,}–{sizes.max():,}", "num_samples": len(sizes)}
        row["accuracy"] = float((actual == predicted).mean())
        if len(label_names):
            row["macro_f1"] = macro_f1(confusion_matrix(actual, predicted, label_names))
        rows.append(row)
    return rows
