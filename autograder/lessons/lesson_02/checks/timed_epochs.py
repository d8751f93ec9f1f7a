"""What the clock says of 2.4, and that what it times is the whole work."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import APPLIES_FROM, Job, measure_speedup
from autograder.lessons.checking import put_told, require_close, require_equal, require_products
from autograder.lessons.lesson_02 import baselines

MIN_SHARE = 0.9
LEAST_MOVED = 3.0  # times as far as a weight moves; those of 16-bit products move as far but for some percent
TIMED_WIDTH = 256  # `D_MODEL` of the harness


def measure_epochs(job: Job) -> None:
    """Faster in bf16, where this machine has it in hardware; else by counts alone."""
    from course_lib.training import known_gain

    job.progress("Probing this machine for bf16", 0.0)
    gain = known_gain(TIMED_WIDTH)
    job.counts["bf16_layer_gain"] = round(gain, 2)
    if job.reference_speedup is None and not job.is_reference and gain < APPLIES_FROM * job.bar:
        job.reference_speedup = gain  # no solution can be much faster than the layers that it calls
    is_asked = job.reference_speedup is None or job.reference_speedup >= APPLIES_FROM * job.bar
    _require_all_work(job, is_brief=not is_asked)
    measure_speedup(
        job,
        function="epoch_segment" if is_asked else "brief_segment",
        compare=lambda fp32, bf16: _require_same_losses(job, fp32, bf16),
        likely="the products are in bf16, but the time goes elsewhere: a forward too many, conversions of your own",
        look="count the forwards of a step; leave the types inside the model to autocast",
    )
    _require_all_work(job, is_brief=not is_asked)


def _require_all_work(job: Job, *, is_brief: bool) -> None:
    """What is timed is a whole step, too: before and after the clock a segment like those is looked into."""
    arguments: dict[str, Any] = {"seed": job.seed(), "num_steps": int(job.rng.integers(2, 6))}
    own, twin = job.both(baselines.EPOCH, "counted_segment", **arguments, is_brief=is_brief)
    put_told(job, [own], flops="flops")
    require_products(job, own["flops"], twin["flops"])
    share = own["flops"].get("bfloat16", 0) / max(1, sum(own["flops"].values()))
    job.require(
        share >= MIN_SHARE,
        expected=f"at least {MIN_SHARE:.0%} of the products in bfloat16 in an epoch of wide batches, too",
        got=f"{share:.0%}",
        likely="batches of some shapes are computed in another precision than the one that is asked for",
        look="autocast goes around forward and loss of each batch",
    )
    still = [name for name, far in twin["moved"].items() if own["moved"].get(name, 0.0) < far / LEAST_MOVED]
    job.require(
        not still,
        expected="each weight to move in an epoch of wide batches, too",
        got=f"{len(still)} of {len(twin['moved'])} that hardly do, such as `{still[0] if still else ''}`",
        likely="a part of the model is left out of the training where batches have some shape",
        look="`optimizer.step()` after `loss.backward()` moves all that learns",
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
