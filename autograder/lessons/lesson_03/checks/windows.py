"""What the checks of accumulation ask alike: updates, calls of the model, and numbers that are told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import TOLERANCES, put_told, require_close, require_keys

Answer = dict[str, Any]
# Of windows that are cut in another way, for a twin that cuts them so.
TAIL = {
    "tail dropped": "the last partial window is dropped: its gradients never reach the weights",
    "tail joined": "the last partial window is joined to the one before: it is an update of its own",
}


def put_told_calls(job: Job, answer: dict[str, Any]) -> None:
    """Put into the learner's answer what was told of that call: steps, bytes, precision, and each call of the model."""
    put_told(job, [answer], optimizer_steps="num_optimizer_steps", saved_bytes="peak_saved_bytes")
    answer["calls"] = job.learner().told.call.seen["call"]
    (counts,) = job.learner().counts()
    answer["saved_bytes"] += counts.old_bytes_written  # kept in what was there before
    answer["live_bytes"] = counts.peak_live_bytes + counts.old_bytes_written
    answer["flops"] = counts.flops
    answer |= {dtype: counts.share_of_flops(dtype) for dtype in ("bfloat16", "float16")}


def require_updates(
    job: Job,
    answer: Answer,
    *,
    num_micro_batches: int,
    grad_accum_steps: int,
    updates: int,
    name: Callable[[Mapping[str, str]], str],
) -> None:
    """Fail unless the model was trained, by as many steps as there are windows. `name` asks twins for a mistake."""
    got = answer["optimizer_steps"]
    job.require(
        got > 0 or bool(answer["moved"].any()),
        expected="the given model, trained in place",
        got="its weights as they were, and no step of an optimizer of theirs",
        likely="a copy was trained, or nothing steps"
        if answer["calls"]
        else "no micro-batch reached the model: an iterator that was gone through once is used up",
        look="train `model` itself, with `optimizer`",
    )
    likely = "there are windows without a step, such as an empty one at the end, or with more than one"
    if got == num_micro_batches:
        likely = "a step at every micro-batch: the window never gathers, and the batch stays small"
    elif answer["num_looks"] > 1:
        likely = (
            "`micro_batches` is asked for an iterator again and again, as by `islice` in a loop: what is no iterator "
            "itself begins anew each time, and this one has nothing left"
        )
    elif got == num_micro_batches // grad_accum_steps:
        likely = name(TAIL) or "the last partial window has no update of its own"
    job.require(
        got == updates,
        expected=f"{updates} optimizer steps for {num_micro_batches} micro-batches in windows of {grad_accum_steps}",
        got=f"{got}",
        likely=likely,
        look="list by hand which micro-batches belong to which update, the last one included",
    )


def require_calls(job: Job, calls: list[list[float]], expected: list[list[float]], *, spare: int = 0) -> None:
    """Fail unless each micro-batch went through the model alone, in training mode.

    Args:
        calls: rows, width, real tokens and mode of each call; `expected` those of a right solution.
        spare: so many micro-batches have nothing to learn from, and may be left out.
    """
    largest = max(rows for rows, *_ in expected)
    likely = "micro-batches are computed more than once"
    if any(rows > largest for rows, *_ in calls):
        likely = (
            "micro-batches are put together into a bigger one: its memory is what accumulation should save"
        )
    elif len(calls) < len(expected):
        likely = "there are micro-batches that never reach the model"
    job.require(
        len(expected) - spare <= len(calls) <= len(expected) and all(rows <= largest for rows, *_ in calls),
        expected=f"{len(expected)} forward passes, one for each micro-batch",
        got=f"{len(calls)}",
        likely=likely,
        look="one micro-batch at a time through the model",
    )
    require_training(job, calls)


def require_training(job: Job, calls: list[list[float]]) -> None:
    """Fail unless all parts of the model were in training mode at each call."""
    shares = [share for *_, share in calls]
    job.require(
        min(shares, default=1.0) == 1.0,
        expected="a model in training mode",
        got="one in evaluation mode: no dropout"
        if min(shares, default=1.0) == 0.0
        else "one of which some parts are in evaluation mode",
        likely="it came in evaluation mode, and `train()` is missing; or `eval()` was called"
        if min(shares, default=1.0) == 0.0
        else "the mode is set on some modules alone, or not at all where the outermost one trains already; `train()` "
        "of the model reaches all that are in it",
        look="`model.train()` before the first micro-batch",
    )


def require_cleared(job: Job, moved: np.ndarray, left: float | None) -> None:
    """Fail where NaN that was left in `p.grad` has reached the weights, or has kept them from moving."""
    if left is not None and math.isnan(left):
        job.require(
            bool(np.isfinite(moved).all() and moved.any()),
            expected="updates from gradients of this call alone, also where `p.grad` was NaN before",
            got="weights that are NaN, or that no step has moved",
            likely="gradients that were there before the call are multiplied by 0, not cleared: NaN stays NaN",
            look="`optimizer.zero_grad()` before the first backward",
        )


def require_frozen(
    job: Job, frozen: list[str], name: Callable[[Mapping[str, str]], str], known: Mapping[str, str]
) -> None:
    """Fail where frozen parameters are moved, or others are frozen after the call.

    `name` asks twins for a mistake, for those `known` too.
    """
    thawed = "parameters that came frozen are trained: `requires_grad_(True)` is not asked for"
    job.require(
        "values" not in frozen,
        expected="frozen parameters as they were",
        got="others in their place",
        likely=(name({"thawed": thawed, **known}) if "values" in frozen else "")
        or "a frozen parameter has a gradient from before, or zeros in its place: the step moves it by that, or by its "
        "weight decay",
        look="after `zero_grad()`, `p.grad` is None, and the step passes over it; zeros it takes for a gradient",
    )
    job.require(
        "hooks" not in frozen,
        expected="parameters without hooks on their gradients, after the call as before",
        got="hooks that are still there",
        likely="what was hooked onto the gradients is not taken off: the next call has it, too, and its own besides",
        look="`handle.remove()`, in `finally`",
    )
    job.require(
        not frozen,
        expected="the parameters frozen that came frozen, and no others",
        got="others",
        likely="`requires_grad_` is not put back as it was",
        look="no loop needs `requires_grad_`",
    )


def require_untouched(job: Job, *, is_changed: bool) -> None:
    """Fail where the caller's data are others than before the call."""
    job.require(
        not is_changed,
        expected="the data that were handed in, as they were",
        got="others in their place",
        likely="tensors or arrays of the caller are changed in place: the next epoch finds others",
        look="`masked_fill` in place of `masked_fill_`, and a copy before `x[mask] = …`",
    )


def require_told(
    job: Job,
    answer: Answer,
    right: Mapping[str, float],
    wrong: Mapping[str, Mapping[str, str]],
    *,
    rel_tol: float,
) -> None:
    """Fail unless a solution returned each number as a plain one, and right.

    Args:
        right: what a twin told, with numbers that a wrong report may hold.
        wrong: by the number's name: the name of such a number → why it is told, "" → what else may be wrong.
    """
    job.require(
        answer["kind"] == "dict",
        expected=f"a dict with {', '.join(wrong)}",
        got=f"a {answer['kind']}",
        likely="a `return` is missing, or returns something else",
        look="the docstring lists what comes back",
    )
    report = answer["report"]
    require_keys(job, report, wrong)
    others = [f"{name}: a {kind}" for name, kind in answer["not_plain"].items() if name in wrong]
    job.require(
        not others,
        expected="plain numbers",
        got="; ".join(others),
        likely="a tensor in place of a number: it holds on to its device, and JSON cannot write it; nor one of NumPy's",
        look="`float(t)` or `t.item()`, once, at the end",
    )
    for name, likely in wrong.items():
        told = report[name]
        away = {other: abs(told - right[other]) for other in likely if other}
        least = min(away.values(), default=math.inf)
        # Two mistakes may give the same number, as where the last is the largest: then both are named.
        closest = [other for other, far in away.items() if far <= least + 1e-6 * abs(told)]
        if not math.isfinite(told) or least > rel_tol * abs(told):
            closest = [""]
        why = "; or ".join(likely[other] for other in closest)
        require_close(job, name, told, right[name], likely=why, rel_tol=rel_tol)


LOSS = {
    "mean of means": "a mean of the micro-batches' means: an item of a short one weighs more",
    "mean of windows": "a mean of the windows' means: an item of the short one weighs more",
    "last window": "the loss of the last window alone",
    "sum": "a sum that is divided by nothing",
    "": "another loss than the mean over all items of the pass, as it was seen while training",
}
CUT_LOSS = (
    "another loss than the cross-entropy: one of 20 and more is cut, as the logarithm of a probability that was "
    "rounded, limited or added to"
)
LIMITED = (
    "the gradient is limited, such as clipped to a norm that few reach, and the text asks for it as it is"
)
LEFT_BEHIND = (
    "an earlier call is still at work, or its state is gone: a hook on the model or the optimizer that was not taken "
    "off, settings of the optimizer, or the momentum that it had"
)
ROUNDING = TOLERANCES["float32"]
