"""Judging a model: loss, accuracy and F1 over items, exact on any number of processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.base import UserError
from course_lib.distributed import device_of, sum_across_ranks
from course_lib.training.losses import (
    IGNORE,
    Loss,
    as_example,
    logits_of,
    loss_sum,
    num_items,
    own_loss,
)
from course_lib.training.precision import FULL_PRECISION, Precision
from course_lib.training.scores import macro_f1, perplexity
from course_lib.training.window import Batch, to_device

_NO_BATCH = "there is no batch to evaluate: `batches` is empty, or an iterator already used up"
MAX_CONFUSION_CLASSES = 1000
"""Above it (vocabularies) F1 per class is not kept: its table has the square of so many cells."""


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    batches: Iterable[Batch],
    *,
    loss: Loss | None = None,
    precision: Precision = FULL_PRECISION,
    return_predictions: bool = False,
) -> dict[str, Any]:
    """Mean `loss` over items and `num_items`, over all processes, with one sync; with the default loss (`train_step`
    says what that is) also `accuracy` in [0, 1] and `macro_f1` (the mean F1 of the classes that occur; for
    language models `perplexity`), and with a `TaskLoss` the scores of that task.

    Dropout is off meanwhile; every module leaves in the mode it came in. With `return_predictions=True` also
    `predictions` and `labels` of this process's batches: int64 tensors [number of items] on the CPU, in the
    order of `batches` (floats [N] for numbers, bool and float [N, C] for several labels); and `lengths` (real tokens
    of the item's text) where batches have an `attention_mask`.
    Raises ValueError when there is no batch, UserError when there is no item or the loss does not fit.
    """
    device = device_of(model)
    if loss is not None and hasattr(loss, "judge"):
        on_device = (to_device(batch, device) for batch in batches)
        return _judged(model, on_device, loss, precision, return_predictions)
    if loss is not None:
        if return_predictions:
            raise UserError(
                "return_predictions=True needs the default loss: with loss= nobody knows what is predicted"
            )
        return _mean_loss(model, (to_device(batch, device) for batch in batches), loss, precision)
    has_classes = getattr(model, "task", "") != "language-modelling"
    losses, corrects, counts, kept = [], [], [], []
    confusion: Tensor | None = None
    with evaluation_mode(model):
        for batch in batches:
            batch = to_device(batch, device)
            example = as_example(batch)
            labels = example.labels
            with precision.autocast():
                logits = logits_of(model, example)
                # A sum, not a mean: the short last batch then weighs what its samples weigh.
                losses.append(loss_sum(logits, labels))
            predictions, num_classes = logits.argmax(dim=-1), logits.shape[-1]
            corrects.append((predictions == labels).sum())
            counts.append(num_items(labels))
            if has_classes and num_classes <= MAX_CONFUSION_CLASSES:
                if confusion is None:
                    confusion = labels.new_zeros((num_classes + 1) * num_classes)
                # One more class takes what is ignored: leaving it out would need a sync, and so would `bincount`,
                # which must know the largest value.
                cells = labels.where(labels != IGNORE, num_classes) * num_classes + predictions
                confusion.index_add_(0, cells.reshape(-1), torch.ones_like(cells).reshape(-1))
            if return_predictions:
                columns = [predictions, labels]
                if len(example.inputs) == 2:
                    lengths = example.inputs[1].sum(dim=1)
                    columns.append(lengths[:, None].expand_as(labels) if labels.ndim == 2 else lengths)
                kept.append([values.reshape(-1) for values in columns])
    if not losses:
        raise ValueError(_NO_BATCH)
    table = losses[0].new_zeros(0) if confusion is None else confusion
    columns = [torch.cat(column) for column in zip(*kept, strict=True)]
    found = _on_host(*map(torch.stack, (losses, corrects, counts)), table, *columns)
    # Apple's GPUs have no float64: sums are made on the CPU.
    sums, columns = [values.double().sum() for values in found[:3]], found[4:]
    totals = sum_across_ranks(torch.cat([torch.stack(sums), found[3].double()]))
    loss, correct, total, *cell_counts = totals.tolist()
    if not total:
        raise UserError(
            "there is nothing to predict in the validation data: a next token needs two, raise max_length"
        )
    result: dict[str, Any] = {"loss": loss / total, "accuracy": correct / total, "num_items": int(total)}
    if not has_classes:
        result["perplexity"] = perplexity(loss / total)
    if confusion is not None:
        result["macro_f1"] = macro_f1(np.array(cell_counts).reshape(-1, logits.shape[-1])[:-1])
    if return_predictions:
        is_item = columns[1] != IGNORE
        for name, column in zip(("predictions", "labels", "lengths"), columns, strict=False):
            result[name] = column[is_item].clone()  # a normal tensor again, outside inference mode
    return result


def _judged(
    model: nn.Module, batches: Iterable[Batch], loss: Any, precision: Precision, return_predictions: bool
) -> dict[str, Any]:
    found, kept = [], []
    with evaluation_mode(model):
        for batch in batches:
            with precision.autocast():
                judged = loss.judge(model, batch)
            found.append(torch.cat([torch.stack([judged.cost, judged.items.float()]), judged.statistics]))
            if return_predictions:
                kept.append((judged.predictions, judged.labels, batch["attention_mask"].sum(dim=1)))
    if not found:
        raise ValueError(_NO_BATCH)
    columns = [torch.cat(column) for column in zip(*kept, strict=True)]
    rows, *columns = _on_host(torch.stack(found), *columns)
    total, items, *statistics = sum_across_ranks(rows.double().sum(dim=0)).tolist()
    if not items:
        raise UserError("there is nothing to judge in the validation data")
    result: dict[str, Any] = {"loss": total / items, "num_items": int(items)}
    result |= loss.scores(np.array(statistics), items)
    if return_predictions:
        is_item = ~columns[1].reshape(len(columns[1]), -1)[:, 0].isnan()
        for name, column in zip(("predictions", "labels", "lengths"), columns, strict=True):
            result[name] = column[is_item].clone()
    return result


def _mean_loss(
    model: nn.Module, batches: Iterable[Batch], loss: Loss, precision: Precision
) -> dict[str, Any]:
    costs, counts = [], []
    with evaluation_mode(model):
        for batch in batches:
            with precision.autocast():
                cost, count = own_loss(loss, model, batch)
            costs.append(cost)
            counts.append(count)
    if not costs:
        raise ValueError(_NO_BATCH)
    sums = torch.stack([*costs, *counts]).cpu().double().reshape(2, -1).sum(dim=1)
    total, items = sum_across_ranks(sums).tolist()
    if not items:
        raise UserError("there is nothing to judge: loss= counts no item in the validation data")
    return {"loss": total / items, "num_items": int(items) if items.is_integer() else items}


def _on_host(*tensors: Tensor) -> list[Tensor]:
    """The same on the CPU, by one copy and one sync, as they are to the bit, of whatever dtype."""
    parts = [tensor.reshape(-1).view(torch.uint8) for tensor in tensors]
    copied = torch.cat(parts).cpu().split([len(part) for part in parts])
    return [  # cloned, for a part may begin where no number of its type can
        part.clone().view(tensor.dtype).reshape(tensor.shape)
        for part, tensor in zip(copied, tensors, strict=True)
    ]


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """`model.eval()` inside the block; afterwards every submodule has its own mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training
