"""The checks of exercises 1.1 and 1.2: what is handed to the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import require_each_once, require_equal
from autograder.lessons.lesson_01.checks.anew import require_drawn_anew
from autograder.lessons.lesson_01.checks.collated import PAD_ID, require_batch
from autograder.lessons.lesson_01.checks.passes import drawn_passes
from autograder.lessons.lesson_01.checks.whole_passes import require_little_padding, require_whole_pass


def check_collate(job: Job) -> None:
    """1.1: the batch is right, no wider than its longest sample, and trains 1.5× faster than padding to 1,024."""
    batches = _drawn_batches(job.rng)
    answers = job.learner().call("collate_each", batches=batches)
    slots = needed = 0
    for answer, batch in zip(answers, batches, strict=True):
        require_batch(job, answer, batch["ids"], batch["labels"], answers)
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


TWICE = (0, 6)
"""Batches of which one sample stands at two places."""


def _drawn_batches(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Samples for one batch after the other; the padding id stands inside texts, and at their ends.

    Some of the later ones have the shape of one before, some its lengths and its labels as well, and some are equal.
    """
    batches, odd = [], int(rng.integers(2))
    few = [rng.integers(0, 10, int(rng.integers(2, 6))) for _ in range(8)]  # a text may have no tokens
    for number, lengths in enumerate(
        (
            rng.integers(5, 90, 16),
            rng.integers(2, 12, 7),
            np.full(4, 31),
            64 * rng.integers(17, 40, 1) + rng.integers(1, 50),  # longer than any text of the corpus
            rng.permutation(
                [8 * int(rng.integers(2, 6)), *rng.integers(2, 16, 4)]
            ),  # its width needs no rounding up
            np.array([1, 1, 9]),
            rng.integers(1, 60, 33),
            np.array([8 * int(rng.integers(1, 5))]),  # so does the width of one sample alone
            np.append(rng.integers(1, 12, 257 + int(rng.integers(40))), 8),
            np.append(2**16 + rng.integers(1, 99), rng.integers(1, 4)),
            *(np.append(lengths, rng.integers(1, 20)) for lengths in (*few, *map(rng.permutation, few))),
            np.append(rng.integers(100, 400, 5), 64 * rng.integers(17, 40) + rng.integers(1, 50)),
        )
    ):
        # Above 2**53 a float64 no longer holds every integer, and above 2**31 an int32 none.
        words = 8000 if number % 2 == odd else 2**62
        ids = [rng.integers(1, words, size=int(n)) for n in lengths]
        for row in ids:
            row[rng.random(len(row)) < 0.1] = PAD_ID
        ids[0][-1:] = ids[-1][:1] = PAD_ID
        labels = rng.integers(*((0, 16) if number < 3 else (-words, words)), size=len(ids)).tolist()
        if number in TWICE:
            ids[2], labels[2] = ids[0], labels[0]
        batches.append({"ids": ids, "labels": labels})
    again = [
        {"ids": [rng.permutation(row) for row in one["ids"]], "labels": one["labels"]} for one in batches
    ]
    return batches + again[:8] + batches[:3]


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
    job.counts["pad_fraction"] = require_little_padding(job, passes)
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
