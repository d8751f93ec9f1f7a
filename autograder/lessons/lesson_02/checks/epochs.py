"""The checks of exercises 2.4 and 2.5: an epoch in the precision that is asked for, and a model that stands fp16."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import APPLIES_FROM, Job, measure_speedup
from autograder.lessons.checking import (
    are_equal,
    require_close,
    require_equal,
    require_no_worse,
    require_report,
    watched,
)
from autograder.lessons.lesson_02 import baselines, references

MIN_SHARE = 0.9
MAX_SYNCS_PER_EPOCH = 8
NUM_BATCHES = 12
TIMED_WIDTH = 256  # `D_MODEL` of the harness
QUALITY_SPREAD = 0.2  # points: 0.04 over 12 seeds where it was measured; other kernels round otherwise


def check_train_epoch(job: Job) -> None:
    """2.4: the precision that is asked for and no other, no sync per step, and bf16 faster where it can be."""
    for precision in ("32-true", "bf16-mixed"):
        arguments: dict[str, Any] = {"seed": job.seed(), "num_batches": NUM_BATCHES, "precision": precision}
        answer = job.learner().call("epoch_once", **arguments)
        plain = job.twin(job.baseline).call("epoch_once", **arguments)
        _require_precision(job, answer, precision)
        _require_same_epoch(job, answer, plain, precision)
    job.counts["syncs_per_epoch"] = answer["syncs"]
    watched(job, answer, "operators are not counted")
    _measure(job)


def _measure(job: Job) -> None:
    from course_lib.training import known_gain

    job.progress("Probing this machine for bf16", 0.0)
    gain = known_gain(TIMED_WIDTH)
    job.counts["bf16_layer_gain"] = round(gain, 2)
    is_reference = job.source == references.TRAIN_EPOCH  # `workbook calibrate` wants its time, whatever it is
    if job.reference_speedup is None and not is_reference and gain < APPLIES_FROM * job.bar:
        job.reference_speedup = gain  # no solution can be much faster than the layers that it calls
    measure_speedup(
        job,
        function="epoch_segment",
        compare=lambda fp32, bf16: _require_same_losses(job, fp32, bf16),
        likely="the products are in bf16, but the time goes elsewhere: a forward too many, conversions of your own",
        look="count the forwards of a step; leave the types inside the model to autocast",
    )


def _share(flops: dict[str, int], dtype: str) -> float:
    return flops.get(dtype, 0) / max(1, sum(flops.values()))


def _require_precision(job: Job, answer: dict[str, Any], precision: str) -> None:
    share = _share(answer["flops"], "bfloat16")
    low = 1 - _share(answer["flops"], "float32")
    if precision == "32-true":
        job.require(
            low == 0,
            expected="no matrix product in 16 bits with '32-true'",
            got=f"{low:.0%} of their FLOPs",
            likely="autocast is open whatever was asked for: the fp32 run to compare with is no fp32 run",
            look="`torch.autocast(..., enabled=...)` takes a bool",
        )
        return
    job.counts["bfloat16_share"] = round(share, 3)
    job.require(
        answer["weight_dtypes"] == ["float32"],
        expected="weights that are float32 before, during and after the epoch",
        got=f"weights of {', '.join(answer['weight_dtypes'])}",
        likely="the model itself is turned to bf16: updates smaller than the rounding of the weights are lost",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    job.require(
        share >= MIN_SHARE,
        expected=f"at least {MIN_SHARE:.0%} of the matrix products' FLOPs in bfloat16 with 'bf16-mixed'",
        got=f"{share:.0%}",
        likely="`precision` does not reach the model's call, or the type is fp16",
        look="print `precision` and the dtype of the logits",
    )


def _require_same_epoch(job: Job, answer: dict[str, Any], plain: dict[str, Any], precision: str) -> None:
    job.require(
        answer["steps"] == NUM_BATCHES and answer["forwards"] == NUM_BATCHES,
        expected=f"{NUM_BATCHES} forwards and optimizer steps for {NUM_BATCHES} batches",
        got=f"{answer['forwards']} forwards, {answer['steps']} steps",
        likely="work is done twice, such as a second forward for the log, or a batch is skipped",
        look="one forward, one backward, one step for each batch",
    )
    job.require(
        answer["syncs"] <= MAX_SYNCS_PER_EPOCH,
        expected=f"at most {MAX_SYNCS_PER_EPOCH} device syncs in an epoch of {NUM_BATCHES} steps",
        got=f"{answer['syncs']}",
        likely="a sync every step: `.item()`, `float()` or `if tensor` inside the loop",
        look="keep sums as tensors, and bring them to Python after the loop; bf16 needs no look for infinities",
    )
    job.require(
        answer["train_mode"],
        expected="the model in training mode",
        got="evaluation mode: dropout would be off",
        likely="`model.train()` is missing; an evaluation before may have left the model in eval()",
        look="switch the mode in the first line of an epoch",
    )
    dtype = "float32" if precision == "32-true" else "bfloat16"
    require_equal(
        job,
        answer["weights"],
        plain["weights"],
        dtype=dtype,
        what=f"weights after an epoch of {precision!r}",
        likely="another loss than the batch mean, another clipping, or gradients that are not cleared",
        look="in '32-true' your loop must be the plain one: compare the weights after one step",
    )
    likely = "a mean of batch means: the short last batch counts as much as a full one"
    require_report(
        job,
        answer["report"],
        plain["report"],
        dict.fromkeys(("num_samples", "loss"), likely),
        rel_tol=5e-4 if dtype == "float32" else 1e-2,
    )


def _require_same_losses(job: Job, fp32: dict[str, Any], bf16: dict[str, Any]) -> None:
    require_close(
        job,
        "loss",
        bf16["report"].get("loss", math.nan),
        fp32["report"]["loss"],
        likely="under the clock the loop trains on something else",
        rel_tol=3e-2,
    )
    require_equal(
        job,
        bf16["logits"],
        fp32["logits"],
        dtype="bfloat16",
        what="logits after the timed epoch",
        likely="under the clock the loop trains less, or on something else",
        look="does your loop depend on how often it is called?",
    )


LOUD, QUIET = 1.0, 1e-7
"""Times the word vectors: hidden values in the hundreds, and below 1."""
SCALES = {LOUD: 2.0**12, QUIET: 1.0}
"""What a scaler would find: loud values have small gradients, quiet ones large. Loss scaling is another exercise."""


def check_sturdy_classifier(job: Job) -> None:
    """2.5: in fp32 the same classifier, in fp16 the same numbers, loud or quiet; and it learns as well."""
    for loudness in (LOUD, QUIET):
        arguments: dict[str, Any] = {"seed": job.seed(), "loudness": loudness, "scale": SCALES[loudness]}
        twin = job.twin(baselines.FRAGILE).call("fragile_once", precision="32-true", **arguments)
        full = job.learner().call("fragile_once", precision="32-true", **arguments)
        _require_same_model(job, full, twin)
        half = job.learner().call("fragile_once", precision="16-mixed", **arguments)
        job.require(
            half["float16_share"] >= MIN_SHARE,
            expected=f"at least {MIN_SHARE:.0%} of the matrix products' FLOPs in float16",
            got=f"{half['float16_share']:.0%}",
            likely="the whole forward is taken out of fp16: that repairs everything and gains nothing",
            look="one operation breaks; keep that one in fp32 and leave the rest to autocast",
        )
        _require_sturdy(job, half, twin, is_loud=loudness == LOUD)
    job.counts["float16_share"] = round(half["float16_share"], 3)
    job.corpus()
    require_no_worse(
        job,
        baseline=baselines.FRAGILE,
        function="quality",
        arguments={"num_samples": 480, "num_epochs": 1, "precision": "16-mixed"},
        baseline_arguments={"precision": "32-true"},
        margin=0.5,
        spread=QUALITY_SPREAD,
        likely="right on one batch, but in training the values leave what the repair can take",
        look="print the largest and the smallest value in front of each operation after 50 steps",
    )


def _require_same_model(job: Job, full: dict[str, Any], twin: dict[str, Any]) -> None:
    job.require(
        full["num_weights"] == twin["num_weights"] and are_equal(full["weights"], twin["weights"], "float32"),
        expected="the weights of FragileClassifier, made in the same order",
        got="other weights",
        likely="`__init__` was changed: the fault is in `forward`",
        look="copy `__init__` as it stands",
    )
    require_equal(
        job,
        full["logits"],
        twin["logits"],
        dtype="float32",
        what="fp32 logits",
        likely="the repair changes the mathematics: a clamp, another epsilon, a missing normalisation",
        look="in fp32 both classes must give the same numbers",
    )


def _require_sturdy(job: Job, half: dict[str, Any], twin: dict[str, Any], *, is_loud: bool) -> None:
    size = "loud" if is_loud else "quiet"
    likely = (
        "an overflow: a square above 65,504 is infinite in fp16, and what is divided by it is zero"
        if is_loud
        else "a constant factor moves the break: the squares of small values underflow to zero"
    )
    look = (
        "which operation makes the largest numbers of `forward`? Give it, and what follows, fp32 to work in"
    )
    is_right = np.isfinite(half["logits"]).all() and are_equal(half["logits"], twin["logits"], "float16")
    job.require(
        bool(is_right),
        expected=f"in fp16 the logits of fp32, but for rounding, with {size} hidden values",
        got=_described(half["logits"], twin["logits"]),
        likely=likely,
        look=look,
    )
    own, right = half["gradients"].astype(np.float64), twin["gradients"].astype(np.float64)
    away = float(np.linalg.norm(own - right) / np.linalg.norm(right))
    job.require(
        away <= 0.05,
        expected=f"gradients within 5 % of those in fp32, with {size} hidden values",
        got="gradients that are not finite" if not np.isfinite(own).all() else f"{away:.0%} away",
        likely="forward is repaired, and backward still goes through fp16 where the numbers are too large or too small",
        look="convert once, before the first operation that breaks, so that backward is in fp32 there too",
    )


def _described(got: np.ndarray, expected: np.ndarray) -> str:
    if not np.isfinite(got).all():
        return "NaN or infinity"
    if np.ptp(got, axis=0).max() < 1e-3 * np.ptp(expected, axis=0).max():
        return "the same logits for every text: nothing of the text reaches them"
    return f"logits that differ by up to {np.abs(got - expected).max():.3g}"
