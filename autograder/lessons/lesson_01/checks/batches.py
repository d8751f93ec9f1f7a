"""The checks of exercises 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import require_each_once, require_equal
from autograder.lessons.lesson_01.checks.passes import (
    drawn_passes,
    require_drawn_anew,
    require_little_padding,
    require_whole_pass,
)

PAD_ID = 0


def check_collate(job: Job) -> None:
    """1.1: the batch is right, no wider than its longest sample, and trains 1.5× faster than padding to 1,024."""
    batches = _drawn_batches(job.rng)
    answers = job.learner().call("collate_each", batches=batches)
    slots = needed = 0
    for answer, batch in zip(answers, batches, strict=True):
        _require_batch(job, answer, batch["ids"], batch["labels"], answers)
        slots += answer["batch"]["input_ids"].size
        needed += len(batch["ids"]) * max(map(len, batch["ids"]))
    job.counts["positions_computed"] = slots
    job.counts["positions_needed"] = needed
    job.corpus()
    measure_speedup(
        job,
        function="collate_segment",
        compare=lambda a, b: require_equal_training(job, a, b),
        likely="the batch is right, but building it takes longer than the padding it saves",
        look="how many Python steps does your function take per token? Copy whole rows.",
    )


def _drawn_batches(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Samples for one batch after the other; the padding id stands inside texts, and at their ends."""
    batches, odd = [], int(rng.integers(2))
    for number, lengths in enumerate(
        (
            rng.integers(5, 90, 16),
            rng.integers(2, 12, 7),
            np.full(4, 31),
            rng.integers(100, 400, 1),
            rng.permutation(
                [8 * int(rng.integers(2, 6)), *rng.integers(2, 16, 4)]
            ),  # its width needs no rounding up
            np.array([1, 1, 9]),
            rng.integers(1, 60, 33),
        )
    ):
        # Above 2**24 a float32 no longer holds every integer, and above 2**31 an int32 none.
        words = 8000 if number % 2 == odd else 2**40
        ids = [rng.integers(1, words, size=int(n)) for n in lengths]
        for row in ids:
            row[rng.random(len(row)) < 0.1] = PAD_ID
        ids[0][-1] = ids[-1][0] = PAD_ID
        labels = rng.integers(0, 16, size=len(ids)).tolist()
        batches.append({"ids": ids, "labels": labels})
    return batches


def _require_batch(
    job: Job,
    answer: dict[str, Any],
    ids: list[np.ndarray],
    labels: list[int],
    answers: list[dict[str, Any]],
) -> None:
    batch = answer["batch"]
    keys = {"input_ids", "attention_mask", "labels"}
    job.require(
        answer["type"] == "dict" and batch.keys() >= keys,
        expected=f"a dict of tensors with the keys {', '.join(sorted(keys))}",
        got=f"a {answer['type']} with the tensors {', '.join(sorted(batch)) or 'none'}",
        likely="a key is missing or misspelt, or its value is a list and not a tensor",
        look="the docstring lists each key with its type and shape",
    )
    _require_shapes(job, batch, ids, answers)
    _require_rows(job, batch, ids)
    job.require(
        np.array_equal(batch["labels"], labels),
        expected=f"labels {labels[:5]} …",
        got=f"{batch['labels'].tolist()[:5]} …",
        likely="labels out of order"
        if sorted(batch["labels"].tolist()) == sorted(labels)
        else "other numbers than the second half of each sample",
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


def _why_other_ids(in_row: np.ndarray, sample: np.ndarray, ids: list[np.ndarray]) -> str:
    rest = len(in_row) - len(sample)
    if np.array_equal(in_row[: len(sample)], sample):
        return "another id than PAD_ID fills the row up"
    if np.array_equal(in_row[rest:], sample):
        return "padding on the left: the ids come first"
    if any(np.array_equal(in_row[: len(other)], other) for other in ids if len(other) > 1):
        return "rows out of order: another sample of the batch stands there"
    if np.array_equal(in_row[: len(sample)], sample.astype(np.float32).astype(np.int64)):
        return "ids that went through float32 (`torch.Tensor` makes that), which does not hold every integer"
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
        likely="one buffer serves every call: the next batch is written over this one",
        look="keep two batches, and compare the first before and after the second is made",
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
        likely="a sample was dropped, or the batch dimension is missing",
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


def require_equal_training(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    """The same losses step by step and the same logits after: the work was the same."""
    for name in ("losses", "logits"):
        require_equal(
            job,
            learner[name],
            baseline[name],
            dtype="float32",
            what=name,
            likely="on real texts your batches hold something else than the samples",
            look="compare your batch with `course_lib.collate` on samples of `docstring_store()`",
        )


def check_bucket_sampler(job: Job) -> None:
    """1.2: each index once, new order each epoch, little padding, and 1.3× faster than random batches."""
    passes = drawn_passes(job)
    for one in passes.all:
        require_whole_pass(job, one)
    require_drawn_anew(job, passes)
    job.counts["pad_fraction"] = require_little_padding(job, passes.large)
    _require_same_elsewhere(job)
    job.corpus()
    measure_speedup(
        job,
        function="sampler_segment",
        compare=lambda a, b: _require_all_used(job, a, b),
        likely="the batches are right, but making them takes longer than the padding they save",
        look="sort once per epoch with NumPy; Python steps per pair of samples grow too fast",
    )


def _require_same_elsewhere(job: Job) -> None:
    lengths = job.rng.integers(1, 60, size=50).tolist()
    found = job.learner().call(
        "passes_elsewhere",
        seconds=60.0,
        source=job.source,
        entry=job.entry,
        arguments=[lengths, 4, int(job.rng.integers(1, 1000))],
        epoch=int(job.rng.integers(1, 20)),
        hash_seeds=[1, 2],
    )
    job.require(
        not found["trouble"],
        expected="a sampler that works in a fresh interpreter too",
        got=found["trouble"],
        likely="the cell needs something that stands outside it",
        look="run this cell alone in a new kernel, and go through a sampler",
    )
    job.require(
        found["is_same"],
        expected="the same batches for the same seed and epoch, when Python is started again",
        got="others",
        likely="`hash()` of a text, or the order of a `set`, decides: both are new each time Python starts",
        look="make the generator from the numbers themselves, such as `default_rng([seed, epoch])`",
    )


def _require_all_used(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    require_each_once(
        job,
        learner["used"],
        baseline["used"],
        expected=f"each of {len(baseline['used'])} samples trained once",
        likely="on other lengths the sampler drops or repeats samples",
        look="try your sampler on the lengths of `docstring_store()[0]`",
    )
    job.require(
        int(learner["sizes"].max()) <= HARNESS_BATCH and len(learner["sizes"]) == len(baseline["sizes"]),
        expected=f"{len(baseline['sizes'])} batches of {HARNESS_BATCH}, as without bucketing",
        got=f"{len(learner['sizes'])} batches of up to {learner['sizes'].max()}",
        likely="under the clock the batches are larger: fewer steps are faster, but they train another model",
        look="give each batch `micro_batch_size` samples; only the last may have fewer",
    )
    if job.rng.random() < REPLAYS:
        _require_these_losses(job, baseline, learner)


HARNESS_BATCH = 8  # `MICRO_BATCH_SIZE` of the harness
REPLAYS = 0.2  # of the segments; the sampler cannot know which ones will be run again


def _require_these_losses(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    """The baseline's worker trains on the learner's batches: the same samples give the same losses."""
    segment = {"seed": baseline["seed"], "num_steps": baseline["num_steps"]}
    batches = {"used": learner["used"], "sizes": learner["sizes"]}
    trusted = job.worker("baseline", job.baseline)
    expected = trusted.call("sampler_replay", **segment, **batches)
    require_equal(
        job,
        learner["losses"],
        expected,
        dtype="float32",
        what="losses when these batches are trained on again, elsewhere",
        likely="under the clock something else was trained on than the samples of the batches",
        look="does the cell change what torch, NumPy or the corpus do?",
    )
