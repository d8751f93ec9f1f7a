"""Answers that are neither right nor wrong as a whole, judged: several labels a text, and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.runs.using.answers import THRESHOLD
from course_lib.runs.using.calibration import calibration, interval
from course_lib.runs.using.judging import Column, Costliest, LabelledRow, sliced

_TINY = 1e-7
_NUM_PARTS = 10


class LabelsJudge:
    """Several labels a text: each of the C labels is a question with yes or no. A label that the run does not know
    counts as one that was not found."""

    def __init__(self, label_names: Sequence[str]) -> None:
        self.names, self.number_of = [*label_names], {name: i for i, name in enumerate(label_names)}
        self.truth: list[np.ndarray] = []
        self.said: list[np.ndarray] = []
        self.lengths, self.losses, self.num_unknown = Column("q"), Column("d"), Column("q")
        self.slices: list[tuple[str, ...]] = []
        self.costliest, self.unknown = Costliest(), dict[str, int]()

    def add(self, row: LabelledRow, num_tokens: int, said: np.ndarray) -> None:
        """`said`: probabilities [C]."""
        truth = np.zeros(len(self.names), dtype=bool)
        known = [name for name in row.label if name in self.number_of]
        truth[[self.number_of[name] for name in known]] = True
        for name in {*row.label} - {*known}:
            self.unknown[name] = self.unknown.get(name, 0) + 1
        right = np.clip(np.where(truth, said, 1 - said).astype(np.float64), _TINY, 1)
        loss = float(-np.log(right).mean())
        self.truth.append(truth)
        self.said.append(said)
        self.lengths.add(num_tokens)
        self.losses.add(loss)
        self.num_unknown.add(len(row.label) - len(known))
        self.slices.append(row.slices)
        predicted = said >= THRESHOLD
        if (predicted != truth).any():
            found = [self.names[i] for i in np.flatnonzero(predicted)]
            worst = int(right.argmin())
            self.costliest.offer(
                loss,
                row,
                label=row.label,
                predicted=found,
                worst_label=self.names[worst],
                probability=float(said[worst]),
            )

    def sections(self, slices: Sequence[str]) -> dict[str, Any]:
        truth, said = np.stack(self.truth), np.stack(self.said)
        predicted, missed = said >= THRESHOLD, self.num_unknown.array()
        is_exact = (predicted == truth).all(axis=1) & (missed == 0)

        def score(inside: np.ndarray) -> dict[str, Any]:
            hits = (predicted & truth)[inside].sum(axis=0)
            sizes = predicted[inside].sum(axis=0) + truth[inside].sum(axis=0)
            occurs = truth[inside].any(axis=0)
            each = (2 * hits / np.maximum(sizes, 1))[occurs]
            return {
                "accuracy": float(is_exact[inside].mean()),
                "micro_f1": float(2 * hits.sum() / max(1, sizes.sum() + missed[inside].sum())),
                "macro_f1": float(each.mean()) if len(each) else 0.0,
            }

        everything = np.ones(len(truth), dtype=bool)
        columns = {name: np.array([row[i] for row in self.slices]) for i, name in enumerate(slices)}
        hits, had, given = (part.sum(axis=0) for part in (predicted & truth, truth, predicted))
        per_class = {
            "label": self.names,
            "precision": (hits / np.maximum(given, 1)).tolist(),
            "recall": (hits / np.maximum(had, 1)).tolist(),
            "f1": (2 * hits / np.maximum(given + had, 1)).tolist(),
            "num_samples": had.tolist(),
            "num_predicted": given.tolist(),
        }
        scores = score(everything) | {"loss": float(self.losses.array().mean()), "num_items": len(truth)}
        return {
            "scores": scores | {"accuracy_interval": interval(int(is_exact.sum()), len(truth))},
            "label_names": self.names,
            "unknown_labels": self.unknown,
            "per_class": [
                dict(zip(per_class, row, strict=True)) for row in zip(*per_class.values(), strict=True)
            ],
            "calibration": calibration(said.reshape(-1), truth.reshape(-1)),
            "slices": sliced(self.lengths.array(), columns, score),
            "errors": self.costliest.listed(),
        }


class NumberJudge:
    """Numbers: how far off they are, in the unit of the label."""

    def __init__(self) -> None:
        self.truth, self.said, self.lengths = Column("d"), Column("d"), Column("q")
        self.slices: list[tuple[str, ...]] = []
        self.costliest = Costliest()

    def add(self, row: LabelledRow, num_tokens: int, said: np.ndarray) -> None:
        """`said`: the number, [1]."""
        value, truth = float(said.reshape(-1)[0]), float(row.label)
        self.truth.add(truth)
        self.said.add(value)
        self.lengths.add(num_tokens)
        self.slices.append(row.slices)
        if value != truth:
            self.costliest.offer(abs(value - truth), row, label=truth, predicted=value, error=value - truth)

    def sections(self, slices: Sequence[str]) -> dict[str, Any]:
        truth, said = self.truth.array(), self.said.array()

        def score(inside: np.ndarray) -> dict[str, Any]:
            error = (said - truth)[inside]
            return {
                "mae": float(np.abs(error).mean()),
                "rmse": float(np.sqrt((error**2).mean())),
                "mean_error": float(error.mean()),
            }

        spread = float(((truth - truth.mean()) ** 2).mean())
        scores = score(np.ones(len(truth), dtype=bool))
        # The share of the squared error of always saying the mean that is gone; below 0 where that were better.
        scores["r2"] = 1 - scores["rmse"] ** 2 / spread if spread else float("nan")
        columns = {name: np.array([row[i] for row in self.slices]) for i, name in enumerate(slices)}
        errors = [{**each, "absolute_error": each.pop("loss")} for each in self.costliest.listed()]
        return {
            "scores": scores | {"num_items": len(truth)},
            "baseline": {
                "says": float(np.median(truth)),
                "mae": float(np.abs(truth - np.median(truth)).mean()),
            },
            "calibration": {"method": "tenths by prediction", "bins": _tenths(said, truth)},
            "slices": sliced(self.lengths.array(), columns, score),
            "errors": errors,
        }


def _tenths(said: np.ndarray, truth: np.ndarray) -> list[dict[str, Any]]:
    """What was said against what came, in parts equally full: a good model's means agree in each."""
    order = np.argsort(said, kind="stable")
    return [
        {
            "low": float(said[part].min()),
            "high": float(said[part].max()),
            "num_items": len(part),
            "prediction": float(said[part].mean()),
            "label": float(truth[part].mean()),
        }
        for part in np.array_split(order, min(_NUM_PARTS, len(order)))
    ]
