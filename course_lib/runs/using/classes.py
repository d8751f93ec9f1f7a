"""Answers that are right or wrong, judged: classes of texts, classes of words, next tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from course_lib.runs.using.answers import words_of
from course_lib.runs.using.calibration import calibration, interval
from course_lib.runs.using.judging import Column, Costliest, LabelledRow, excerpt, sliced
from course_lib.training import (
    MAX_MATRIX_LABELS,
    classification_table,
    confused_pairs,
    confusion_matrix,
    macro_f1,
    perplexity,
)

_AROUND = 6
"""Words shown on either side of a wrong one."""
_TINY = 1e-45


class Items:
    """What was right, what was said, how surely, at what loss, in how long a text: a row per text, word or token."""

    def __init__(self) -> None:
        codes = {"labels": "q", "predictions": "q", "confidence": "f", "losses": "f", "lengths": "q"}
        self.columns = {name: Column(code) for name, code in codes.items()}
        self.slices: list[list[str]] = []

    def add(self, row: LabelledRow, num_tokens: int, *values: Any) -> None:
        count = len(np.atleast_1d(values[0]))
        for column, part in zip(self.columns.values(), (*values, np.full(count, num_tokens)), strict=True):
            column.add(part)
        if row.slices:
            self.slices += [[*row.slices]] * count

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: column.array() for name, column in self.columns.items()}

    def by_column(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        return {name: np.array([row[i] for row in self.slices]) for i, name in enumerate(names)}


class ClassJudge:
    """Classes of texts, or with `is_words` of the words of texts.

    A label that the run does not know counts as a class that it never says: wrong, without a loss.
    """

    def __init__(self, label_names: Sequence[str], *, is_words: bool = False) -> None:
        self.number_of = {name: i for i, name in enumerate(label_names)}
        self.num_known, self.is_words = len(label_names), is_words
        self.items, self.costliest = Items(), Costliest()
        self.num_cut = 0

    def add(self, row: LabelledRow, num_tokens: int, said: np.ndarray) -> None:
        """`said`: probabilities [C], or [W, C] of the words that were read."""
        names = row.label if self.is_words else [row.label]
        scores = np.atleast_2d(said)[: len(names)]
        self.num_cut += len(names) - len(scores)
        labels = np.array(
            [self.number_of.setdefault(n, len(self.number_of)) for n in names[: len(scores)]], int
        )
        predictions, confidence = scores.argmax(axis=1), scores.max(axis=1)
        of_label = scores[np.arange(len(labels)), np.minimum(labels, self.num_known - 1)]
        losses = np.where(labels < self.num_known, -np.log(np.maximum(of_label, _TINY)), np.nan)
        self.items.add(row, num_tokens, labels, predictions, confidence, losses)
        known = [*itertools.islice(self.number_of, self.num_known)]
        for i in np.flatnonzero((predictions != labels) & (labels < self.num_known)).tolist():
            shown = {"label": names[i], "predicted": known[predictions[i]]}
            shown |= {"probability": float(confidence[i]), "probability_of_label": float(of_label[i])}
            self.costliest.offer(float(losses[i]), row, **shown, **self._place(row, i))

    def _place(self, row: LabelledRow, i: int) -> dict[str, Any]:
        if not self.is_words:
            return {}
        words = words_of(row.text)
        around = [*words[max(0, i - _AROUND) : i], f"[{words[i]}]", *words[i + 1 : i + 1 + _AROUND]]
        return {"word": words[i], "around": excerpt(" ".join(around))}

    def sections(self, slices: Sequence[str]) -> dict[str, Any]:
        names, items = [*self.number_of], self.items.arrays()
        labels, predictions = items["labels"], items["predictions"]
        is_right = labels == predictions
        table = confusion_matrix(labels, predictions, names)
        counts = table.sum(axis=1)
        most = int(counts.argmax())

        def score(inside: np.ndarray) -> dict[str, Any]:
            part = confusion_matrix(labels[inside], predictions[inside], names)
            return {"accuracy": float(is_right[inside].mean()), "macro_f1": macro_f1(part)}

        everything = np.ones(len(labels), dtype=bool)
        scores = score(everything) | {"loss": _mean(items["losses"]), "num_items": len(labels)}
        if not self.is_words:  # the words of one text are no independent draws
            scores["accuracy_interval"] = interval(int(is_right.sum()), len(labels))
        unknown = {name: int(counts[i]) for i, name in enumerate(names) if i >= self.num_known}
        return {
            "scores": scores,
            "baseline": {"says": names[most], "accuracy": float(counts[most] / len(labels))},
            "label_names": names,
            "unknown_labels": unknown,
            "num_cut": self.num_cut,
            "per_class": classification_table(table, names),
            "confusion": table.tolist() if len(names) <= MAX_MATRIX_LABELS else None,
            "confused": confused_pairs(table, names),
            "calibration": calibration(items["confidence"], is_right),
            "slices": sliced(items["lengths"], self.items.by_column(slices), score),
            "errors": self.costliest.listed(),
        }


class NextTokenJudge:
    """Next tokens: each token of a text but the first. The costliest are whole texts, by their mean loss."""

    def __init__(self) -> None:
        self.items, self.costliest = Items(), Costliest()

    @staticmethod
    def read(logits: Tensor, mask: Tensor, encodings: Sequence[Any]) -> list[tuple[np.ndarray, ...]]:
        """For each text: the tokens that came, those expected, how surely, and the loss of each; [T - 1]."""
        import torch

        found = []
        logs = logits.log_softmax(dim=-1)
        for row, encoding in zip(logs, encodings, strict=True):
            came = torch.tensor(encoding.ids[1:], dtype=torch.int64, device=row.device)
            row = row[: len(came)]
            most = row.max(dim=-1)
            losses = -row.gather(1, came[:, None])[:, 0]
            found.append(
                tuple(part.cpu().numpy() for part in (came, most.indices, most.values.exp(), losses))
            )
        return found

    def add(self, row: LabelledRow, num_tokens: int, said: tuple[np.ndarray, ...]) -> None:
        if len(said[0]):
            self.items.add(row, num_tokens, *said)
            mean = float(said[3].mean())
            self.costliest.offer(mean, row, perplexity=perplexity(mean), num_tokens=num_tokens)

    def sections(self, slices: Sequence[str]) -> dict[str, Any]:
        items = self.items.arrays()
        is_right, losses = items["labels"] == items["predictions"], items["losses"]

        def score(inside: np.ndarray) -> dict[str, Any]:
            mean = _mean(losses[inside])
            return {"perplexity": perplexity(mean), "accuracy": float(is_right[inside].mean()), "loss": mean}

        scores = score(np.ones(len(losses), dtype=bool)) | {"num_items": len(losses)}
        return {
            "scores": scores,
            "calibration": calibration(items["confidence"], is_right),
            "slices": sliced(items["lengths"], self.items.by_column(slices), score),
            "errors": self.costliest.listed(),
        }


def _mean(losses: np.ndarray) -> float:
    known = losses[~np.isnan(losses)]
    return float(known.mean(dtype=np.float64)) if len(known) else float("nan")
