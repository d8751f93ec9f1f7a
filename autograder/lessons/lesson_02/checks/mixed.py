"""The check of exercise 2.3: a step in bf16, without a scaler."""

from __future__ import annotations

from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import require_close, require_equal, require_keys, watched
from autograder.lessons.lesson_02 import baselines

MIN_SHARE = 0.9
MAX_SAVED = 0.65


def check_mixed_step(job: Job) -> None:
    """2.3: the products in bf16, weights, loss and gradients in fp32, autocast closed before backward."""
    arguments: dict[str, Any] = {"seed": job.seed(), "num_steps": 3, "rows": 16, "width": 32, "max_norm": 0.3}
    answer = job.learner().call("bf16_steps", **arguments)
    twin = job.twin(baselines.STEP).call("bf16_steps", **arguments)
    full = job.twin(baselines.STEP.replace("torch.bfloat16", "torch.float32")).call("bf16_steps", **arguments)
    saved = answer["saved_bytes"] / full["saved_bytes"]
    job.counts["bfloat16_share"] = round(answer["bfloat16_share"], 3)
    job.counts["saved_bytes_ratio"] = round(saved, 3)
    watched(job, answer, "operators are not counted")
    job.require(
        answer["weight_dtypes"] == ["float32"],
        expected="weights that are float32 before, during and after a step",
        got=f"weights of {', '.join(answer['weight_dtypes'])}",
        likely="`.bfloat16()` or `.half()` on the model: updates smaller than the rounding of the weights are lost",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    job.require(
        answer["bfloat16_share"] >= MIN_SHARE,
        expected=f"at least {MIN_SHARE:.0%} of the matrix products' FLOPs in bfloat16",
        got=f"{answer['bfloat16_share']:.0%}",
        likely="autocast is around the loss alone, or not open while the model runs",
        look="the call of the model must stand inside the `with`",
    )
    job.require(
        len(answer["gradients"]) == arguments["num_steps"],
        expected=f"{arguments['num_steps']} optimizer steps for as many calls",
        got=f"{len(answer['gradients'])}",
        likely="the step is missing, or taken twice",
        look="one `optimizer.step()` a call",
    )
    _require_loss_in_fp32(job, answer, twin)
    job.require(
        not answer["autocast_in_backward"],
        expected="autocast closed when `backward()` starts",
        got="autocast open while gradients were computed",
        likely="autocast around backward: what forward kept in fp32 on purpose is then computed in 16 bits",
        look="backward uses the types that forward chose; end the `with` before it",
    )
    job.require(
        not answer["autocast_at_step"],
        expected="autocast closed at the optimizer's step",
        got="autocast open",
        likely="the `with` goes on after the loss",
        look="only the call of the model and the loss belong inside",
    )
    job.require(
        saved <= MAX_SAVED,
        expected=f"at most {MAX_SAVED:g} of the bytes that fp32 saves for backward",
        got=f"{saved:.2f}",
        likely="activations are saved in fp32 as well, by conversions of your own",
        look="leave the types inside the model to autocast",
    )
    for own, right in zip(answer["gradients"], twin["gradients"], strict=True):
        for part in ("body", "head"):
            require_equal(
                job,
                own[part],
                right[part],
                dtype="bfloat16",
                what=f"clipped gradients of the {part}",
                likely="gradients of an earlier step are still there, or clipping is missing or after the step",
                look="clear, backward, clip, step",
            )


def _require_loss_in_fp32(job: Job, answer: dict[str, Any], twin: dict[str, Any]) -> None:
    for own, right in zip(answer["reports"], twin["reports"], strict=True):
        require_keys(job, own, ("loss", "grad_norm"))
        job.require(
            answer["loss_dtypes"] == ["float32"],
            expected="a float32 loss",
            got=f"a loss of {', '.join(answer['loss_dtypes'])}",
            likely="the loss is computed outside autocast, from bf16 logits: it has three digits left",
            look="inside autocast the cross-entropy is one of the operations that are kept in fp32",
        )
        require_close(
            job,
            "loss",
            own["loss"],
            right["loss"],
            likely="the loss was rounded to bf16, or is another than the mean cross-entropy of the batch",
            look="inside autocast the cross-entropy is one of the operations that are kept in fp32",
        )
        require_close(
            job,
            "grad_norm",
            own["grad_norm"],
            right["grad_norm"],
            likely="the norm after clipping, or of gradients of two steps",
            look="clip_grad_norm_ returns the norm from before",
            rel_tol=1e-2,
        )
