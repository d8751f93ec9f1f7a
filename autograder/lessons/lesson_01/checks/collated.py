"""What 1.1 asks of one batch: shapes, rows, mask, labels, and that samples and batches are left alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job

PAD_ID = 0


def require_batch(
    job: Job,
    answer: dict[str, Any],
    ids: list[np.ndarray],
    labels: list[int],
    answers: list[dict[str, Any]],
) -> None:
    batch = answer["batch"]
    keys = {"input_ids", "attention_mask", "labels"}
    job.require(
        answer["type"] == "dict" and batch.keys() >= keys and not answer["others"],
        expected=f"a dict of tensors with the keys {', '.join(sorted(keys))}",
        got=f"a {answer['type']} with the tensors {', '.join(sorted(batch)) or 'none'}"
        + "".join(f", and {name}, which is none" for name in answer["others"]),
        likely="a key is missing or misspelt, or its value is a list and not a tensor",
        look="the docstring lists each key with its type and shape",
    )
    _require_shapes(job, batch, ids, answers)
    _require_rows(job, batch, ids)
    job.require(
        np.array_equal(batch["labels"], labels),
        expected=f"labels {labels[:5]} …",
        got=f"{batch['labels'].tolist()[:5]} …",
        likely=_why_other_labels(batch["labels"], np.array(labels)),
        look="a sample is `(ids, label)`: print one, and find both in your batch",
    )
    _require_samples_kept(job, answer, ids)


def _require_rows(job: Job, batch: dict[str, Any], ids: list[np.ndarray]) -> None:
    width = batch["input_ids"].shape[1]
    for row, sample in enumerate(ids):
        in_row = batch["input_ids"][row]
        right = np.append(sample, np.full(width - len(sample), PAD_ID))
        job.require(
            np.array_equal(in_row, right),
            expected=f"row {row} to hold its {len(sample)} ids and then {PAD_ID} up to width {width}",
            got="other ids",
            likely=_why_other_ids(in_row, sample, ids),
            look="print `batch['input_ids']` for two samples of lengths 2 and 4",
        )
    is_real = np.arange(width) < np.array([[len(sample)] for sample in ids])
    mask = batch["attention_mask"]
    row = int((mask != is_real).any(axis=1).argmax())
    job.require(
        np.array_equal(mask, is_real),
        expected=f"attention_mask True at the first {len(ids[row])} positions of row {row}, False after",
        got=f"{int(mask[row].sum())} positions True",
        likely=_why_another_mask(mask, batch["input_ids"], is_real),
        look="the mask says where a real token stands, row by row",
    )


_NARROW = ("int32", "uint32", "int16", "uint16", "int8", "uint8")


def _why_other_labels(got: np.ndarray, labels: np.ndarray) -> str:
    if sorted(got.tolist()) == sorted(labels.tolist()):
        return "labels out of order"
    if any(
        np.array_equal(got, labels.astype(kind).astype(np.int64)) for kind in ("float64", "float32", *_NARROW)
    ):
        return "labels that went through a narrower type than int64, which does not hold large ones"
    if np.array_equal(got[labels >= 0], labels[labels >= 0]):
        return "labels below 0 become others: a label is any int"
    return "other numbers than the second half of each sample"


def _why_other_ids(in_row: np.ndarray, sample: np.ndarray, ids: list[np.ndarray]) -> str:
    rest = len(in_row) - len(sample)
    if np.array_equal(in_row[: len(sample)], sample):
        return (
            "another id than PAD_ID fills the row up; where it does so in some batches alone, the array is kept from "
            "an earlier call, whose ids are left in it"
        )
    if np.array_equal(in_row[rest:], sample):
        return "padding on the left: the ids come first"
    if any(np.array_equal(in_row[: len(other)], other) for other in ids if len(other) > 1):
        return "rows out of order: another sample of the batch stands there"
    for kind in ("float32", "float64"):
        if np.array_equal(in_row[: len(sample)], sample.astype(kind).astype(np.int64)):
            by = "float32 (`torch.Tensor` makes that)" if kind == "float32" else "float64"
            return f"ids that went through {by}, which does not hold every integer"
    if any(np.array_equal(in_row[: len(sample)], sample.astype(kind).astype(np.int64)) for kind in _NARROW):
        return "ids that went through a narrower type than int64, where large ones wrap around"
    return "the ids are not copied whole into the left part of the row"


def _why_another_mask(mask: np.ndarray, input_ids: np.ndarray, is_real: np.ndarray) -> str:
    is_id = input_ids != PAD_ID
    to_the_last = np.logical_or.accumulate(is_id[:, ::-1], axis=1)[:, ::-1]
    if np.array_equal(mask, is_id) or np.array_equal(mask, to_the_last):
        return "the mask is made from the ids, and any id of a text may equal PAD_ID: the lengths decide"
    if np.array_equal(mask, ~is_real):
        return "the attention mask is upside down: True is for real tokens"
    if (mask >= is_real).all():
        return "the attention mask marks padding as real, so attention and mean-pool take it in"
    return "the attention mask leaves out real tokens, so the model does not see them"


def _require_samples_kept(job: Job, answer: dict[str, Any], ids: list[np.ndarray]) -> None:
    def are_kept(samples: list[np.ndarray]) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(samples, ids, strict=True))

    job.require(
        answer["is_list_kept"] and are_kept(answer["samples"]),
        expected="the samples as they were",
        got="changed samples",
        likely="padding was written into the samples themselves"
        if answer["is_list_kept"]
        else "the list `batch` itself was sorted or changed",
        look="make a new array or list and copy into it",
    )
    job.require(
        are_kept(answer["samples_after_write"]),
        expected="a batch with memory of its own",
        got="samples that change when somebody writes into the batch",
        likely="the batch is a view of its sample, as `torch.from_numpy(ids)` is: ids are to be copied",
        look="make a new array and copy into it, for a batch of one sample too",
    )
    job.require(
        answer["is_kept"],
        expected="a batch that stays as it is while others are made",
        got="other numbers in it, some batches later",
        likely="one buffer serves every call: the next batch, or the next of its shape, is written over this one",
        look="keep two batches, and compare the first before and after the second is made",
    )
    job.require(
        answer["is_anew"],
        expected="the ids that the samples hold now",
        got="those that the same samples held before",
        likely="what was made of a sample is kept and used again: its ids may be others by then",
        look="keep nothing from one call to the next",
    )


def _require_shapes(
    job: Job, batch: dict[str, Any], ids: list[np.ndarray], answers: list[dict[str, Any]]
) -> None:
    shape, longest = batch["input_ids"].shape, max(map(len, ids))
    rows, width = shape if len(shape) == 2 else (0, 0)
    job.require(
        rows == len(ids),
        expected=f"input_ids of shape [{len(ids)}, {longest}]",
        got=f"shape {list(shape)}",
        likely="a sample was dropped, as where equal ones are taken for one, or the batch dimension is missing",
        look="compare the number of rows with `len(batch)`",
    )
    job.require(
        width >= longest,
        expected=f"width {longest}, the longest of this batch",
        got=f"width {width}",
        likely="long samples are cut: the width is not the longest of the batch",
        look="compare the width with the length of each sample: the longest of this batch decides",
    )
    widths = {a["batch"]["input_ids"].shape[-1:] for a in answers if "input_ids" in a["batch"]}
    job.require(
        width in (longest, math.ceil(longest / 8) * 8),
        expected=f"width {longest}, the longest of this batch (or the next multiple of 8)",
        got=f"width {width}",
        likely="padding to a global maximum: every batch pays for the longest text of the data set"
        if len(widths) == 1
        else "columns that no sample of this batch needs: the width is rounded up too far",
        look="the width may depend on this batch alone",
    )
    for name, kind, right in (
        ("input_ids", "int64", shape),
        ("attention_mask", "bool", shape),
        ("labels", "int64", (len(ids),)),
    ):
        found = batch[name]
        same_type = found.dtype.name == kind
        job.require(
            same_type and found.shape == right,
            expected=f"{name} of dtype {kind} and shape {list(right)}",
            got=f"{found.dtype.name}, {list(found.shape)}",
            likely="another shape than the docstring's"
            if same_type
            else "another dtype than the docstring's",
            look="print the dtype and shape of each of the three",
        )
