"""The checks of exercises 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import require_each_once, require_equal, require_repeatable

PAD_ID = 0


def check_collate(job: Job) -> None:
    """1.1: the batch is right, no wider than its longest sample, and trains 1.5× faster than padding to 1,024."""
    rng = job.rng
    slots = needed = 0
    for lengths in (
        rng.integers(5, 90, 16),
        rng.integers(2, 12, 7),
        np.full(4, 31),
        rng.integers(100, 400, 1),
    ):
        ids = [rng.integers(3, 8000, size=int(n)) for n in lengths]
        labels = [int(label) for label in rng.integers(0, 16, size=len(ids))]
        answer = job.learner().call("collate_once", ids=ids, labels=labels)
        _require_batch(job, answer, ids, labels)
        slots += answer["batch"]["input_ids"].size
        needed += len(ids) * int(lengths.max())
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


def _require_batch(job: Job, answer: dict[str, Any], ids: list[np.ndarray], labels: list[int]) -> None:
    longest = max(map(len, ids))
    batch = answer["batch"]
    keys = {"input_ids", "attention_mask", "labels"}
    job.require(
        answer["type"] == "dict" and batch.keys() >= keys,
        expected=f"a dict of tensors with the keys {', '.join(sorted(keys))}",
        got=f"a {answer['type']} with the tensors {', '.join(sorted(batch)) or 'none'}",
        likely="a key is missing or misspelt, or its value is a list and not a tensor",
        look="the docstring lists each key with its type and shape",
    )
    _require_shapes(job, batch, ids, longest)
    width = batch["input_ids"].shape[1]
    for row, sample in enumerate(ids):
        real = batch["input_ids"][row, : len(sample)]
        job.require(
            np.array_equal(real, sample) and bool((batch["input_ids"][row, len(sample) :] == PAD_ID).all()),
            expected=f"row {row} to hold its {len(sample)} ids and then {PAD_ID} up to width {width}",
            got="other ids",
            likely="rows out of order, padding on the left, or another padding id",
            look="print `batch['input_ids'][0]` for two samples of lengths 2 and 4",
        )
        job.require(
            np.array_equal(batch["attention_mask"][row], np.arange(width) < len(sample)),
            expected=f"attention_mask True at the first {len(sample)} positions of row {row}, False after",
            got=f"{int(batch['attention_mask'][row].sum())} positions True",
            likely="the attention mask marks padding as real, so attention and mean-pool take it in",
            look="the mask says where a real token stands, row by row",
        )
    job.require(
        np.array_equal(batch["labels"], labels),
        expected=f"labels {labels[:5]} …",
        got=f"{batch['labels'].tolist()[:5]} …",
        likely="labels out of order or taken from the wrong half of the sample",
        look="a sample is `(ids, label)`: print one, and find both in your batch",
    )
    job.require(
        all(np.array_equal(a, b) for a, b in zip(answer["samples"], ids, strict=True)),
        expected="the samples as they were",
        got="changed samples",
        likely="padding was written into the samples themselves",
        look="make a new array and copy into it",
    )


def _require_shapes(job: Job, batch: dict[str, Any], ids: list[np.ndarray], longest: int) -> None:
    shape = batch["input_ids"].shape
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
    job.require(
        width <= math.ceil(longest / 8) * 8,
        expected=f"width {longest}, the longest of this batch (a multiple of 8 above it is fine)",
        got=f"width {width}",
        likely="padding to a global maximum: every batch pays for the longest text of the data set",
        look="the width may depend on this batch alone",
    )
    types = {name: batch[name].dtype.name for name in ("input_ids", "attention_mask", "labels")}
    job.require(
        types == {"input_ids": "int64", "attention_mask": "bool", "labels": "int64"}
        and batch["attention_mask"].shape == shape
        and batch["labels"].shape == (len(ids),),
        expected="input_ids int64 [B, T], attention_mask bool [B, T], labels int64 [B]",
        got=", ".join(f"{name} {kind} {list(batch[name].shape)}" for name, kind in types.items()),
        likely="a tensor was made with another dtype or shape",
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
    lengths = np.clip(job.rng.lognormal(3.6, 1.1, size=2003), 2, 1024).astype(np.int64)
    seed = job.seed()
    epochs = job.learner().call(
        "sampler_epochs", lengths=lengths, micro_batch_size=16, seed=seed, epochs=[0, 1, 1]
    )
    for epoch in epochs:
        _require_permutation(job, epoch, len(lengths), 16)
    first, second, again = (epoch["indices"] for epoch in epochs)
    require_repeatable(
        job,
        what="order of batches",
        is_same=np.array_equal(second, again),
        when="for the same seed and epoch",
        unseeded="an unseeded generator, or one that carries on from the last epoch",
        look_unseeded="make the generator from seed and epoch at the start of `__iter__`",
        is_another=not np.array_equal(first, second),
        another="after set_epoch(1)",
        fixed="bucketing that never reshuffles: the order does not depend on the epoch",
        look_fixed="where does `set_epoch` go, and who reads it?",
    )
    _require_order_and_padding(job, epochs[1], lengths)
    job.corpus()
    measure_speedup(
        job,
        function="sampler_segment",
        compare=lambda a, b: _require_all_used(job, a, b),
        likely="the batches are right, but making them takes longer than the padding they save",
        look="sort once per epoch with NumPy; Python steps per pair of samples grow too fast",
    )


def _require_permutation(job: Job, epoch: dict[str, Any], size: int, micro_batch_size: int) -> None:
    sizes = epoch["sizes"]
    require_each_once(
        job,
        epoch["indices"],
        range(size),
        expected=f"all {size} indices once",
        likely="the tail is dropped: the last, shorter batch is missing",
        look=f"count what comes out of an epoch: {size} is no multiple of {micro_batch_size}, on purpose",
        likely_repeated="the tail is filled up with samples that were already used",
        look_repeated="leave the last batch shorter",
    )
    short = int((sizes < micro_batch_size).sum())
    job.require(
        sizes.max() <= micro_batch_size and short <= 1,
        expected=f"batches of {micro_batch_size}, at most one shorter",
        got=f"{short} shorter ones, the largest of {sizes.max()}",
        likely="each bucket ends in a short batch of its own",
        look="cut one sorted order into batches, or merge the rests of the buckets",
    )
    job.require(
        epoch["len"] == len(sizes),
        expected=f"len(sampler) == {len(sizes)}, the number of batches",
        got=f"{epoch['len']}",
        likely="`__len__` counts samples, or rounds down",
        look="divide the number of samples by the size of a batch, and round up",
    )


def _require_order_and_padding(job: Job, epoch: dict[str, Any], lengths: np.ndarray) -> None:
    ends = np.cumsum(epoch["sizes"])
    batches = [lengths[batch] for batch in np.split(epoch["indices"], ends[:-1])]
    slots = sum(len(batch) * int(batch.max()) for batch in batches)
    pad_fraction = 1 - int(lengths.sum()) / slots
    job.counts["pad_fraction"] = round(pad_fraction, 4)
    job.require(
        pad_fraction <= 0.15,
        expected="a pad fraction of at most 0.15",
        got=f"{pad_fraction:.2f}",
        likely="batches still mix short and long samples",
        look="which samples stand side by side just before you cut them into batches?",
    )
    ranks = np.argsort(np.argsort([batch.mean() for batch in batches]))
    trend = abs(float(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]))
    job.require(
        trend < 0.5,
        expected="batches in random order",
        got=f"batch lengths that follow the position (rank correlation {trend:.2f})",
        likely="sorted batches come from short to long: the model sees a curriculum nobody asked for",
        look="shuffle the batches after cutting them",
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
