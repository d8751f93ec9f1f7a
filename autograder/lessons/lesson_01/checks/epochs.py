"""The checks of exercises 1.5 and 1.6: the loader, and the whole epoch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import require_no_worse, watched

# Standard deviation, in points, over seeds, of (accuracy of a right solution - accuracy of the naive loop):
# `python -m tests.benchmarks.quality_spread`; of single runs on few seeds, so the estimate itself is rough.
QUALITY_SPREAD = 3.5


def check_loader(job: Job) -> None:
    """1.5: every sample once and in order, pass after pass, at 2× the speed of fetching one after the other."""
    size = 37
    seed = job.seed()
    arguments: dict[str, Any] = {"seed": seed, "size": size, "micro_batch_size": 8, "passes": 2}
    # Loader processes that are started afresh, as on macOS and Windows, each import torch first.
    answer = job.learner().call("load_all", seconds=90.0, **arguments)
    expected = np.random.default_rng(seed).integers(3, 60, size=(size, 8))  # as in the harness, but not by it
    for number, (ids, labels) in enumerate(zip(answer["ids"], answer["labels"], strict=True), start=1):
        job.require(
            len(ids) > 0 or number == 1,
            expected="the same batches in the second pass",
            got="none",
            likely="a generator, which is used up after one pass",
            look="return an object with `__iter__`, such as a DataLoader",
        )
        job.require(
            len(ids) == size,
            expected=f"{size} samples in a pass",
            got=f"{len(ids)}",
            likely="the tail is dropped: the last, shorter batch is missing",
            look=f"count what comes out of an epoch: {size} is no multiple of 8, on purpose",
        )
        job.require(
            np.array_equal(ids, expected) and np.array_equal(labels, expected.sum(axis=1) % 5),
            expected="the samples in the order of the dataset",
            got="another order" if np.array_equal(np.sort(ids, 0), np.sort(expected, 0)) else "other samples",
            likely="the loader shuffles, or hands out whatever arrives first",
            look="fetch ahead, but hand out in order",
        )
    job.require(
        all(max(sizes) <= 8 for sizes in answer["sizes"]),
        expected="batches of at most 8 samples",
        got=f"one of {max(map(max, answer['sizes']))}",
        likely="micro_batch_size is not used",
        look="the second argument says how many samples make a batch",
    )
    measure_speedup(
        job,
        function="loader_segment",
        max_cores=4.0,  # loader processes may compute too; the sleep is what is to be hidden
        compare=lambda a, b: _require_same_sums(job, a, b),
        likely="the waits stand one after the other: nothing is fetched while something else is waited for",
        look="how many samples are on their way at the same moment?",
    )


def _require_same_sums(job: Job, baseline: dict[str, Any], learner: dict[str, Any]) -> None:
    job.require(
        np.array_equal(baseline["sums"], learner["sums"]),
        expected="the same batches as without overlap",
        got="other batches",
        likely="with more data, samples are lost, repeated or reordered",
        look="compare with a plain loop over a few hundred samples",
    )


def check_fast_epoch(job: Job) -> None:
    """1.6: the same samples in the same number of steps, as good a model, at 3× the naive loop's speed."""
    job.corpus()
    num_samples = 8 * 24 + 3  # a tail on purpose
    answer = job.learner().call("epoch_once", seed=job.seed(), num_samples=num_samples)
    _require_whole_epoch(job, answer, math.ceil(num_samples / 8))
    job.counts["pad_fraction"] = round(answer["pad_fraction"], 4)
    job.counts["syncs_per_epoch"] = answer["syncs"]
    watched(job, answer, "syncs are not counted, as in another thread")
    _require_quality(job)
    learnt: list[float] = []
    spare: list[_Segment] = []
    measure_speedup(
        job,
        function="epoch_segment",
        compare=lambda a, b: _require_same_work(job, a, b, learnt, spare),
        likely=_slowest_station(answer),
        look="time each station alone: fetch, collate, forward, backward, step. Mend the slowest, measure again.",
    )
    # Where the clock is not asked, only the warm-up was looked at: segments too short to tell less from noise.
    if job.speed and _learns_less(job, learnt, spare):
        job.flag(
            f"under the clock the loop lowers the loss by {np.mean(learnt):.0%} of what the naive loop does"
        )


def _require_whole_epoch(job: Job, answer: dict[str, Any], steps: int) -> None:
    counts, expected = answer["counts"], answer["expected"]
    job.require(
        counts["rows"] == expected["rows"]
        and math.isclose(answer["report"].get("num_samples", 0), expected["rows"]),
        expected=f"{expected['rows']} samples trained and reported, each once",
        got=f"{counts['rows']} trained, {answer['report'].get('num_samples', 0):g} reported",
        likely="the tail is dropped or repeated: the number of samples is no multiple of the micro-batch",
        look="print the size of each batch: the last one is shorter, and belongs to the epoch",
    )
    job.require(
        counts["tokens"] == expected["tokens"],
        expected=f"{expected['tokens']} real tokens through the model",
        got=f"{counts['tokens']}",
        likely="texts are cut short, or padding is marked as real: faster, but another task",
        look="sum the attention masks over the epoch and compare with `samples.lengths.sum()`",
    )
    job.require(
        counts["steps"] == steps and counts["widest"] <= 8,
        expected=f"{steps} optimizer steps of at most 8 samples",
        got=f"{counts['steps']} steps of up to {counts['widest']} samples",
        likely="other batch sizes: fewer steps are faster, but they train another model",
        look="give each batch `micro_batch_size` samples; only the last may have fewer",
    )
    job.require(
        answer["saves"] <= 1,
        expected="an epoch that trains, and leaves saving to its caller",
        got=f"a checkpoint is saved {answer['saves']} times in {steps} steps",
        likely="saving at every step: the disk sets the pace",
        look="save by the clock, not by the step; lesson 4 measures how often is enough",
    )
    job.require(
        answer["changed"] and math.isfinite(answer["report"].get("loss", math.nan)),
        expected="a trained model and its mean loss",
        got=f"weights {'changed' if answer['changed'] else 'unchanged'}, loss {answer['report'].get('loss')}",
        likely="no step is taken, or the loss is not reported",
        look="return a dict with the keys loss and num_samples, after a step for each batch",
    )


def _slowest_station(answer: dict[str, Any]) -> str:
    steps = answer["counts"]["steps"]
    if answer["pad_fraction"] > 0.5:
        return (
            f"padding to a global maximum: {answer['pad_fraction']:.0%} of what the model computes is padding"
        )
    if answer["pad_fraction"] > 0.2:
        return f"{answer['pad_fraction']:.0%} of what the model computes is padding: batches mix short and long texts"
    if answer["syncs"] >= steps:
        return f"{answer['syncs']} device syncs in {steps} steps"
    return "the loop is right, but a station outside the model takes its time"


def _require_quality(job: Job) -> None:
    require_no_worse(
        job,
        baseline=job.baseline,
        function="quality",
        arguments={"num_samples": 1200, "num_epochs": 3},
        margin=0.5,
        spread=QUALITY_SPREAD,
        likely="the loop is faster because it learns less: samples, loss or labels are not what they should be",
        look="train both loops on the same seed and compare the loss curves",
    )


# Share of the naive loop's fall of the loss on the samples of a segment. Right solutions reached 0.93 to 1.08 in a
# segment of 72 to 240 samples, loops that left out every second batch 0.74 to 0.89, loops without backward 0.
LEARNT_LESS, LEARNT_NOTHING = 0.88, 0.5
# A look costs as much as a segment; the loop cannot know which segments will be looked at.
LOOKS_PER_BLOCK = 0.5
# A share of one segment spreads by 0.05 to 0.1 over right solutions: a mean of this many, by a third of that.
LOOKS_BEFORE_FLAG = 10
#: What the baseline said of a segment, and the learner's weights after it.
_Segment = tuple[dict[str, Any], np.ndarray]


def _require_same_work(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], learnt: list[float], spare: list[_Segment]
) -> None:
    """Compare a segment's counts, and look at what some of them learnt: into `learnt`, or into `spare` for later."""
    job.require(
        learner["counts"] == baseline["counts"],
        expected="the same rows, tokens and steps as the naive loop: " + _listed(baseline["counts"]),
        got=_listed(learner["counts"]),
        likely="under the clock the loop does less than it did before",
        look="does your loop depend on how often it is called, or on the number of samples?",
    )
    if job.rng.random() < LOOKS_PER_BLOCK / 2:  # a block has two segments
        learnt.append(_share_learnt(job, baseline, learner["weights"]))
        job.require(
            learnt[-1] >= LEARNT_NOTHING,
            expected="a loss that falls on the samples trained on, as with the naive loop",
            got=f"{learnt[-1]:.0%} of that fall",
            likely="under the clock the loop does not train on what it is given",
            look="compare the model's loss on `samples` before and after your loop with that of the naive one",
        )
    elif len(spare) < LOOKS_BEFORE_FLAG:
        spare.append((baseline, learner["weights"]))


def _learns_less(job: Job, learnt: list[float], spare: list[_Segment]) -> bool:
    """Whether the mean share is too small. Where the first looks say so, spared segments are looked at too."""
    if not learnt or np.mean(learnt) >= LEARNT_LESS:
        return False
    while spare and len(learnt) < LOOKS_BEFORE_FLAG:
        learnt.append(_share_learnt(job, *spare.pop()))
    return bool(np.mean(learnt) < LEARNT_LESS)


def _share_learnt(job: Job, baseline: dict[str, Any], weights: np.ndarray) -> float:
    """How far these weights lower the loss, as a share of the baseline's fall; worked out by its worker."""
    segment = {name: baseline[name] for name in ("seed", "num_steps")}
    trusted = job.worker("baseline", job.baseline)
    fresh, theirs, own = (
        float(trusted.call("loss_with", **segment, weights=w)) for w in (None, baseline["weights"], weights)
    )
    return (fresh - own) / (fresh - theirs) if math.isfinite(own) else 0.0


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{value} {name}" for name, value in counts.items())
