"""What a record says of an evaluation, whatever the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.training.scores.classes import (
    MAX_MATRIX_LABELS,
    classification_table,
    confused_pairs,
    confusion_matrix,
    length_slices,
    quarters,
)


def evaluation_summary(
    task: str, labels: np.ndarray, predictions: np.ndarray, lengths: np.ndarray, label_names: Sequence[str]
) -> dict[str, Any]:
    """What a record says of an evaluation, in JSON values.

    `labels` and `predictions`: int [N], one per item (a text, or a token that has a label); zeros and ones [N, C] for
    several labels, floats [N] for numbers. `lengths`: int [N], tokens of the text that the item is or stands in.
    `slices["length"]`; `per_class` (a slice per label) where there are labels; and for classification of texts and
    tokens `confusion` (None for more labels than a table can show) and `confused`, its most frequent errors.
    """
    if task == "regression":
        rows = [_errors(name, labels[own], predictions[own]) for name, own in quarters(lengths)]
        return {"per_class": [], "slices": {"length": rows}, "confusion": None, "confused": []}
    if task == "multi-label":
        rows = [_sets(name, labels[own], predictions[own]) for name, own in quarters(lengths)]
        per_class = _per_label(labels, predictions, label_names)
        return {"per_class": per_class, "slices": {"length": rows}, "confusion": None, "confused": []}
    names = [] if task == "language-modelling" else list(label_names)  # a table over a vocabulary is not made
    counts = confusion_matrix(labels, predictions, names) if names else None
    return {
        "per_class": [] if counts is None else classification_table(counts, names),
        "slices": {"length": length_slices(lengths, labels, predictions, names)},
        "confusion": None if counts is None or len(names) > MAX_MATRIX_LABELS else counts.tolist(),
        "confused": [] if counts is None else confused_pairs(counts, names),
    }


def _errors(name: str, labels: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
    errors = predictions.astype(np.float64) - labels
    mae, rmse = float(np.abs(errors).mean()), float(np.sqrt(np.square(errors).mean()))
    return {"slice": name, "num_samples": len(labels), "mae": mae, "rmse": rmse}


def _sets(name: str, labels: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
    f1 = [row["f1"] for row in _per_label(labels, predictions, range(labels.shape[1])) if row["num_samples"]]
    accuracy = float((labels == predictions).all(axis=1).mean())
    macro_f1 = float(np.mean(f1)) if f1 else 0.0
    return {"slice": name, "num_samples": len(labels), "accuracy": accuracy, "macro_f1": macro_f1}


def _per_label(labels: np.ndarray, predictions: np.ndarray, names: Sequence[Any]) -> list[dict[str, Any]]:
    actual, predicted = labels.astype(bool), predictions.astype(bool)
    columns = zip(
        names, *((part.sum(axis=0).tolist()) for part in (actual & predicted, predicted, actual)), strict=True
    )
    return [
        {
            "label": name,
            "precision": hits / max(predicted, 1),
            "recall": hits / max(actual, 1),
            "f1": 2 * hits / max(predicted + actual, 1),
            "num_samples": actual,
            "mistaken_for": None,
        }
        for name, hits, predicted, actual in columns
    ]
