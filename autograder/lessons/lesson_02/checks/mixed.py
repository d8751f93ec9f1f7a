"""The check of exercise 2.3: a step in bf16, without a scaler."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    TOLERANCES,
    are_equal,
    name_the_mistake,
    put_told,
    require_close,
    require_equal,
    require_keys,
    require_left_alone,
    require_products,
    twin_of,
    watched,
)
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.lesson_02.checks.around import relative, require_reports_left
from autograder.lessons.lesson_02.checks.rounding import all_of_16_bits
from autograder.lessons.lesson_02.checks.traces import (
    put_told_steps,
    require_clipped,
    require_own_device,
    require_told,
    require_trained,
    require_untouched,
)

MIN_SHARE = 0.9
MAX_SAVED = 0.65
_ROOMY = 1e3  # more than any norm here
_INSIDE = "inside autocast the cross-entropy is one of the operations that are kept in fp32"


def check_mixed_step(job: Job) -> None:
    """2.3: the products in bf16, weights, loss and gradients in fp32, autocast closed before backward."""
    tight, middle, loose = (
        round(float(job.rng.uniform(*limits)), 3) for limits in ((0.005, 0.02), (0.3, 0.6), (5, 9))
    )
    others = [(int(rows), int(job.rng.integers(4, 20)), loose) for rows in job.rng.permutation([1, 2, 7])]
    others += [(6, 9, tight), (5, 11, _ROOMY), (9, 8, _ROOMY)]
    arguments: dict[str, Any] = {
        "seed": job.seed(),
        "rows": 16,
        "width": 32,
        "max_norms": [tight, _ROOMY, middle],
        "others": others,
    }
    answer, twin = job.both(baselines.STEP, "bf16_steps", **arguments)
    require_countable(job, answer)
    put_told_steps(job.learner(), answer["steps"][: len(arguments["max_norms"])], "the first")
    put_told_steps(job.learner(), answer["steps"][len(arguments["max_norms"]) :], "the later")
    put_told(job, [answer], flops="flops", saved_bytes="peak_saved_bytes", unwatched="num_unwatched")
    answer["saved_bytes"] += job.learner().counts()[0].old_bytes_written  # kept in what was there before
    full = job.twin(baselines.STEP.replace("torch.bfloat16", "torch.float32")).call("bf16_steps", **arguments)
    _require_types(job, answer)
    require_products(job, answer["flops"], full["flops"])
    saved = answer["saved_bytes"] / full["saved_bytes"]
    job.counts["saved_bytes_ratio"] = round(saved, 3)
    watched(job, answer, "operators are not counted")
    _require_reports(job, answer, len(twin["steps"]))
    require_told(job, answer["stumbled"])  # an autocast that stays open after it changes all that comes later
    _require_closed(job, answer)
    job.require(
        saved <= MAX_SAVED,
        expected=f"at most {MAX_SAVED:g} of the bytes that fp32 saves for backward",
        got=f"{saved:.2f}",
        likely="activations are saved in fp32 as well, by conversions of your own",
        look="leave the types inside the model to autocast",
    )
    norms = arguments["max_norms"] + [norm for *_, norm in others]
    rows = [arguments["rows"]] * len(arguments["max_norms"]) + [shape[0] for shape in others]
    job.require(
        not all_of_16_bits(answer["weights"], "bfloat16"),
        expected="weights in float32",
        got="weights that are all bfloat16 numbers",
        likely="the weights are rounded to 16 bits: updates smaller than that are lost",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    for number, (norm, num_rows) in enumerate(zip(norms, rows, strict=True)):
        _require_loss(job, answer, twin, number, num_rows, arguments)
        _require_gradients(job, answer, twin, number, norm, arguments)
        _require_kept(job, answer, twin, number)
    require_left_alone(job, answer["set_before"], answer["set_after"], when="after the steps")
    require_untouched(job, answer["changed"])
    require_reports_left(job, answer["changed_reports"])
    odd = job.learner().call("odd_steps", seed=job.seed())
    job.require(
        odd["left"] == "float32",
        expected="a model that computes in float32 again after the step, where no autocast is open",
        got=odd["left"],
        likely="autocast is wrapped around the model's `forward`, or opened in a hook of it, and stays there",
        look="leave the model's `forward` as it is: a `with` around its call ends by itself",
    )
    require_left_alone(
        job, odd["no_label"]["before"], odd["no_label"]["after"], when="after an error of the loss"
    )
    job.require(
        math.isnan(odd["loss_of_nan"]),
        expected="loss = NaN of a model that has a NaN among its weights",
        got=f"{odd['loss_of_nan']:g}",
        likely="a loss that is not finite is replaced in the report: a broken step looks like a good one",
        look="report the loss as it comes",
    )
    beside: dict[str, Any] = {"source": job.source, "entry": job.entry, "seed": job.seed()}
    require_own_device(job, job.learner().call("step_beside_a_gpu", **beside), "bfloat16")


def require_countable(job: Job, answer: dict[str, Any]) -> None:
    """Fail where torch could not differentiate while the check counted."""
    job.require(
        not answer["uncountable"],
        expected="gradients by `backward()` or `torch.autograd.grad`: what they keep can be counted",
        got=f"torch says: {answer['uncountable']}",
        likely="`torch.func` makes the gradients: torch counts nothing in it",
        look="`loss.backward()`",
    )


def _require_types(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        answer["weight_dtypes"] == ["float32"],
        expected="weights that are float32 before, during and after a step",
        got=f"weights of {', '.join(answer['weight_dtypes'])}",
        likely="`.bfloat16()` or `.half()` on the model: updates smaller than the rounding of the weights are lost",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    total = max(1, sum(answer["flops"].values()))
    share = answer["flops"].get("bfloat16", 0) / total
    job.counts["bfloat16_share"] = round(share, 3)
    likely = "autocast is around the loss alone, or not open while the model runs"
    if answer["flops"].get("float16", 0) > 0:
        likely = "autocast got another type: in fp16 small gradients underflow, and there is no scaler"
    job.require(
        share >= MIN_SHARE,
        expected=f"at least {MIN_SHARE:.0%} of the matrix products' FLOPs in bfloat16",
        got=", ".join(f"{flops / total:.0%} in {dtype}" for dtype, flops in answer["flops"].items()),
        likely=likely,
        look="the call of the model must stand inside the `with`",
    )


def _require_closed(job: Job, answer: dict[str, Any]) -> None:
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


def _require_reports(job: Job, answer: dict[str, Any], calls: int) -> None:
    num_steps = sum(step["num_steps"] for step in answer["steps"])
    job.require(
        len(answer["gradients"]) == num_steps == calls,
        expected=f"{calls} optimizer steps for as many calls",
        got=f"{num_steps}",
        likely="the step is missing, or taken twice",
        look="one `optimizer.step()` a call",
    )
    for step in answer["steps"]:
        kinds = step["kinds"]
        require_keys(job, step["report"], ("loss", "grad_norm"))
        require_trained(job, step["num_forwards"], is_evaluated=step["is_evaluated"])
        job.require(
            kinds["loss"] == "0-d float32" and kinds["grad_norm"] in ("0-d float32", "0-d float64"),
            expected="a loss and a norm, both as 0-d tensors of float32",
            got=", ".join(f"{name}: {kind}" for name, kind in kinds.items()),
            likely="the loss is computed outside autocast, from bf16 logits: it has three digits left"
            if "16" in kinds["loss"]
            else "a number was read, which is a sync at every step, or a tensor has a dimension or a type too many",
            look=_INSIDE if "16" in kinds["loss"] else "`.detach()` keeps a tensor, and waits for nothing",
        )
    losses, norms = ([step["report"][name] for step in answer["steps"]] for name in ("loss", "grad_norm"))
    job.require(
        not all_of_16_bits(norms, "bfloat16"),
        expected="a norm that is computed in float32",
        got=f"norms that are all bfloat16 numbers, such as {norms[0]:g}",
        likely="the norm is computed of rounded gradients, or rounded: it has three digits left",
        look="gradients are fp32, and so is their norm",
    )
    job.require(
        not all_of_16_bits(losses, "bfloat16"),
        expected="a loss that is computed in float32",
        got=f"losses that are all bfloat16 numbers, such as {losses[0]:g}",
        likely="the loss is computed outside autocast, from bf16 logits, or rounded: it has three digits left",
        look=_INSIDE,
    )


_LIKELY = {
    "not cleared": "gradients of two steps: those of the step before, or of another backward, are still there",
    "clipped by value": "each number is clipped by itself, and not the norm of all",
    "never clipped": "the gradients are not clipped, or only after the step, or to another norm than `max_norm`",
    "always clipped": "gradients shorter than `max_norm` are made longer: only longer ones are to be clipped",
    "mask ignored": "the model does not get the attention mask: padding is read as text",
    "mask of ids": "the mask is made of the ids: what is padding, the batch's own mask says",
    "each group": "a group of the optimizer is clipped by itself, and not the norm of all gradients",
    "old copies": "autocast's 16-bit copies of the weights stay from one step to the next: forward computes with old "
    "weights",
}
_LIKELY_LOSS = "mask ignored", "mask of ids", "old copies"


def _require_loss(
    job: Job,
    answer: dict[str, Any],
    twin: dict[str, Any],
    number: int,
    num_rows: int,
    arguments: dict[str, Any],
) -> None:
    got, expected = (each["steps"][number]["report"]["loss"] for each in (answer, twin))
    if math.isclose(got, expected, rel_tol=TOLERANCES["float32"], abs_tol=1e-6):
        return
    likely = "another loss than the cross-entropy of the batch, or not all of it is computed in fp32"
    if num_rows > 1 and math.isclose(got, num_rows * expected, rel_tol=1e-2):
        likely = "the sum over the batch, where its mean is asked for"
    mistaken = twin_of(job, baselines.STEP, "bf16_steps", arguments)
    mistake = name_the_mistake(
        {name: _LIKELY[name] for name in _LIKELY_LOSS},
        twin=lambda name: mistaken(name)["steps"][number]["report"]["loss"],
        is_same=lambda wrong: math.isclose(got, wrong, rel_tol=TOLERANCES["float32"]),
    )
    require_close(job, "loss", got, expected, likely=mistake or likely, look=_INSIDE)


def _require_gradients(
    job: Job,
    answer: dict[str, Any],
    twin: dict[str, Any],
    number: int,
    max_norm: float,
    arguments: dict[str, Any],
) -> None:
    own, right = answer["gradients"][number], twin["gradients"][number]
    for part in ("body", "head"):
        if not are_equal(own[part], right[part], "bfloat16"):
            _fail_by_name(job, own, right, number, part, arguments)
    got, expected = (each["steps"][number]["report"]["grad_norm"] for each in (answer, twin))
    is_after = math.isclose(got, min(expected, max_norm), rel_tol=1e-2)
    require_close(
        job,
        "grad_norm",
        got,
        expected,
        likely="the norm after clipping" if is_after else "not the norm of all gradients",
        look="clip_grad_norm_ returns the norm from before",
        rel_tol=1e-2,
    )
    require_clipped(job, own, got, max_norm)


def _require_kept(job: Job, answer: dict[str, Any], twin: dict[str, Any], number: int) -> None:
    """Rounded is what autocast rounds by itself, and the weights move by the optimizer's step alone."""
    own, right = (each["steps"][number] for each in (answer, twin))
    job.require(
        set(answer["rounded"][number]) <= set(twin["rounded"][number]),
        expected="gradients in float32",
        got="gradients that are all numbers of 16 bits, where autocast leaves them float32",
        likely="the gradients are rounded to 16 bits: they stay fp32, as the weights do",
        look="backward leaves them in the type of the weights",
    )
    job.require(
        set(own["rounded_weights"]) <= set(right["rounded_weights"]),
        expected="weights in float32",
        got=f"numbers of 16 bits alone in {', '.join(sorted(own['rounded_weights'])[:2])}",
        likely="the weights are rounded to 16 bits: updates smaller than that are lost",
        look="autocast makes 16-bit copies for the products and leaves the weights alone",
    )
    away = relative(own["moved"], right["moved"])
    job.require(
        away <= TOLERANCES["bfloat16"],
        expected="weights that move as the optimizer says",
        got=f"weights that move otherwise, by {away:.0%} of the way",
        likely="beside the optimizer's step the weights, its momentum or its learning rate are changed",
        look="a step is one call of the optimizer",
    )


def _fail_by_name(
    job: Job, own: dict[str, Any], right: dict[str, Any], number: int, part: str, arguments: dict[str, Any]
) -> None:
    """The gradients of one step are wrong, and all before it were right."""
    mistaken = twin_of(job, baselines.STEP, "bf16_steps", arguments)
    mistake = name_the_mistake(
        _LIKELY,
        twin=lambda name: mistaken(name)["gradients"][number],
        is_same=lambda wrong: all(are_equal(own[each], wrong[each], "bfloat16") for each in wrong),
    )
    if mistake:
        raise failure(
            expected="the clipped gradients of this batch alone",
            got="other gradients",
            likely=mistake,
            look="clear, backward, clip, step",
        )
    require_equal(
        job,
        own[part],
        right[part],
        dtype="bfloat16",
        what=f"clipped gradients of the {part}",
        likely="gradients of another loss, or clipped to another norm than `max_norm`",
        look="clear, backward, clip, step",
    )
