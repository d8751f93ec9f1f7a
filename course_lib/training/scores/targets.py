"""Losses of the tasks whose labels are no class: several labels a text, a number a text; with what they are scored by.

An item is a text. Where its label is NaN it is none: padding of a batch that only other processes fill.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.models import TargetScale

THRESHOLD = 0.5
"""A label is predicted from this probability on."""


class Judged(NamedTuple):
    """A batch of B texts, judged."""

    cost: Tensor
    """Sum of the loss over items, 0-d."""
    items: Tensor
    """Their number, 0-d."""
    statistics: Tensor
    """What scores are made of, [S]: it adds up over batches and processes."""
    predictions: Tensor
    """[B] numbers, or bool [B, C]."""
    labels: Tensor
    """Of the same shape, NaN where there is no item."""


class TaskLoss(Protocol):
    """A loss for `fit`, that `evaluate` gets scores from, too."""

    def __call__(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]: ...

    def judge(self, model: nn.Module, batch: Any) -> Judged: ...

    def scores(self, statistics: np.ndarray, num_items: float) -> dict[str, float]:
        """`statistics`: those of all batches, summed, float64 [S]."""


def task_loss(model: nn.Module) -> TaskLoss | None:
    """The loss for `model.task`; None where it is the default one, cross-entropy. Reads the model: a sync."""
    task = getattr(model, "task", "")
    if task == "multi-label":
        return SeveralLabelsLoss()
    if task != "regression":
        return None
    scale = next(module for module in model.modules() if isinstance(module, TargetScale))
    return NumberLoss(float(scale.mean), float(scale.std))


class SeveralLabelsLoss:
    """Binary cross-entropy of logits [B, C] and labels [B, C] of zeros and ones; of each text the mean over labels."""

    def __call__(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        cost, items, _ = self._forward(model, batch)
        return cost, items

    def judge(self, model: nn.Module, batch: Any) -> Judged:
        """`statistics`: of each label how often it was found, predicted and there, and how many texts are all right."""
        cost, items, logits = self._forward(model, batch)
        labels = batch["labels"]
        is_item = ~labels[:, :1].isnan()
        predicted = (logits.sigmoid() >= THRESHOLD) & is_item
        actual = labels == 1
        counts = [(predicted & actual).sum(dim=0), predicted.sum(dim=0), actual.sum(dim=0)]
        whole = ((predicted == actual).all(dim=1, keepdim=True) & is_item).sum(dim=0)
        return Judged(cost, items, torch.cat([*counts, whole]).float(), predicted, labels)

    def scores(self, statistics: np.ndarray, num_items: float) -> dict[str, float]:
        """`macro_f1`: the mean F1 of the labels that occur; `micro_f1`: of all decisions together; `accuracy`: the
        share of texts all of whose labels are right."""
        hits, predicted, actual = statistics[:-1].reshape(3, -1)
        f1 = 2 * hits / np.maximum(predicted + actual, 1)
        micro = 2 * hits.sum() / max(predicted.sum() + actual.sum(), 1.0)
        macro = f1[actual > 0].mean() if (actual > 0).any() else 0.0
        return {"accuracy": statistics[-1] / num_items, "macro_f1": float(macro), "micro_f1": float(micro)}

    def _forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        labels = batch["labels"]
        logits = model(batch["input_ids"], batch["attention_mask"]).float()
        is_item = ~labels[:, 0].isnan()
        costs = F.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), reduction="none").mean(dim=1)
        return (costs * is_item).sum(), is_item.sum(), logits


class NumberLoss:
    """Squared error of numbers [B], as a share of the variance that the training targets have: 1 for their mean.

    Units of the targets do not matter to gradients then: prices in cents and in thousands learn alike.
    """

    def __init__(self, mean: float = 0.0, std: float = 1.0) -> None:
        self.mean, self.std = mean, std

    def __call__(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        errors, is_item, _ = self._forward(model, batch)
        return errors.square().sum(), is_item.sum()

    def judge(self, model: nn.Module, batch: Any) -> Judged:
        """`statistics`, in units of `std`: sums of |error|, error², label, label²."""
        errors, is_item, numbers = self._forward(model, batch)
        labels = ((batch["labels"] - self.mean) / self.std).nan_to_num()
        sums = [errors.abs(), errors.square(), labels, labels.square()]
        statistics = torch.stack([each.sum() for each in sums])
        return Judged(statistics[1], is_item.sum(), statistics, numbers, batch["labels"])

    def scores(self, statistics: np.ndarray, num_items: float) -> dict[str, float]:
        """`mae` and `rmse` in the unit of the targets; `r2`: the share of their variance that is explained, 1 at best,
        0 for always answering their mean (and where they are all equal)."""
        absolute, squared, total, total_squares = statistics.tolist()
        spread = total_squares - total**2 / num_items
        return {
            "mae": self.std * absolute / num_items,
            "rmse": self.std * (squared / num_items) ** 0.5,
            "r2": 1 - squared / spread if spread > 1e-9 * max(total_squares, 1e-300) else 0.0,
        }

    def _forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Errors in units of `std`, float32 [B], 0 where there is no item."""
        numbers = model(batch["input_ids"], batch["attention_mask"]).float()
        is_item = ~batch["labels"].isnan()
        return ((numbers - batch["labels"]) / self.std).where(is_item, 0.0), is_item, numbers
