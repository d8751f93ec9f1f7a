"""What is counted of an epoch of 2.4, and what kind of numbers its report and its weights are."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job
from autograder.lessons.lesson_02.checks.rounding import all_of_16_bits
from autograder.lessons.lesson_02.checks.traces import require_untouched

MIN_SHARE = 0.9
MAX_SYNCS_PER_EPOCH = 8


def _share(flops: dict[str, int], dtype: str) -> float:
    return flops.get(dtype, 0) / max(1, sum(flops.values()))


def require_counts(job: Job, own: dict[str, Any], num_batches: int) -> None:
    """One forward and step for each batch, few syncs, and training mode."""
    job.require(
        own["steps"] == num_batches and own["forwards"] == num_batches,
        expected=f"{num_batches} forwards and optimizer steps for {num_batches} batches",
        got=f"{own['forwards']} forwards, {own['steps']} steps",
        likely="work is done twice, such as a second forward for the log, or a batch is skipped",
        look="one forward, one backward, one step for each batch",
    )
    job.require(
        len(own["norms"]) == num_batches,
        expected="the steps of the optimizer that was handed over",
        got=f"{len(own['norms'])} of {num_batches} steps are its own",
        likely="another optimizer is made: it knows nothing of the one of the caller, its momentum or its settings",
        look="call `step()` of the one that you are given",
    )
    require_few_syncs(job, own["syncs"], num_batches)
    job.require(
        own["train_mode"],
        expected="the model and all its parts in training mode at each step",
        got="evaluation mode: dropout would be off",
        likely="`model.train()` is missing, or left out where the outermost module trains already: a part may be in "
        "eval()",
        look="switch the mode in the first line of an epoch",
    )


def require_few_syncs(job: Job, syncs: int, num_batches: int) -> None:
    """At most `MAX_SYNCS_PER_EPOCH`, however long the epoch."""
    job.require(
        syncs <= MAX_SYNCS_PER_EPOCH,
        expected=f"at most {MAX_SYNCS_PER_EPOCH} device syncs in an epoch of {num_batches} steps",
        got=f"{syncs}",
        likely="a sync every step: `.item()`, `float()` or `if tensor` inside the loop; or a result that is copied to "
        "the CPU, as by `.cpu()`: here that costs nothing, on a GPU it waits until all queued work is done"
        if syncs >= num_batches
        else "a sync every few steps inside the loop: in a longer epoch there are more of them",
        look="keep sums as tensors, and bring them to Python after the loop; bf16 needs no look for infinities",
    )


def require_precision(job: Job, answer: dict[str, Any], precision: str) -> None:
    """The products in the precision that was asked for, and fp32 as the caller has it."""
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
        found = answer["matmul_precisions"]
        job.require(
            found == ["highest"],
            expected="float32 matmul precision as the caller has it in '32-true': highest",
            got=", ".join(found),
            likely="fp32 products are made less precise: the fp32 run to compare with is no plain one",
            look="leave `torch.set_float32_matmul_precision` alone",
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


def require_loss_in_fp32(job: Job, cases: list[dict[str, Any]], epochs: list[dict[str, Any]]) -> None:
    """No loss and no weights that were rounded to 16 bits."""
    losses = [
        own["report"].get("loss", math.nan)
        for case, own in zip(cases, epochs, strict=True)
        if case["precision"] == "bf16-mixed" and len(case["rows"]) == 1
    ]
    job.require(
        not all_of_16_bits(losses, "bfloat16"),
        expected="a loss that is computed in float32, with 'bf16-mixed' too",
        got=f"losses that are all bfloat16 numbers, such as {losses[0]:g}",
        likely="the loss is computed outside autocast, from bf16 logits, or added up in bf16: it has three digits left",
        look="inside autocast the cross-entropy is one of the operations that are kept in fp32",
    )
    for own in epochs:
        job.require(
            not all_of_16_bits(own["weights"], "bfloat16"),
            expected="weights in float32",
            got="weights that are all bfloat16 numbers",
            likely="the weights are rounded to 16 bits: updates smaller than that are lost",
            look="autocast makes 16-bit copies for the products and leaves the weights alone",
        )


def require_plain_values(job: Job, own: dict[str, Any]) -> None:
    """A report of numbers, and batches and generators as they were."""
    wrong = {name: own["kinds"][name] for name in ("loss", "num_samples") if name in own["kinds"]}
    wrong = {name: kind for name, kind in wrong.items() if kind != "number"}
    job.require(
        not wrong,
        expected="a report of Python numbers",
        got=", ".join(f"{name}: {kind}" for name, kind in wrong.items()),
        likely="a tensor or a text stands where a number should: whoever reads the report waits for the device",
        look="`.item()` once, after the loop",
    )
    require_untouched(job, own["changed"])
