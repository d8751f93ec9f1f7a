"""The check of exercise 3.1: several micro-batches, one update."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import are_equal, name_the_mistake, require_left_alone, twin_of
from autograder.lessons.lesson_03 import twins
from autograder.lessons.lesson_03.checks.windows import (
    CUT_LOSS,
    LEFT_BEHIND,
    LIMITED,
    LOSS,
    ROUNDING,
    put_told_calls,
    require_calls,
    require_cleared,
    require_frozen,
    require_told,
    require_untouched,
    require_updates,
)

# What another micro-batch of the same update keeps for backward may stand beside the one at work; the whole may not.
SAVED_BYTES_SLACK = 1.6
KEPT_SHARE = 0.5  # of a micro-batch's logits: losses of single labels, as numbers, are less
LONG = 70  # updates
_SEVERAL_GRAPHS = (
    "graphs of several micro-batches are alive at once, as when their losses are added up and one backward follows: "
    "every graph is alive until then"
)
_LOOK_EACH = "call `backward()` for each micro-batch: it adds to the gradients and frees the activations"
_DIVIDED_WRONG = "divided by the wrong count: "
WRONG_WEIGHTS = {
    "one group divided": "only the gradients of the optimizer's first parameter group are divided: those of the others "
    "stay sums",
    "one group cleared": "only the gradients of the optimizer's first parameter group are cleared",
    "left over": "gradients that were there before the call reach the first update: nothing clears them",
    "never cleared": "gradients are never cleared: each update adds those of all updates before",
    "cleared inside": "`zero_grad` inside the window: only the last micro-batch reaches the step",
    "first alone": "the windows begin at the wrong place: the first micro-batch makes an update of its own, and the "
    "last ones make none",
    "not divided": "the loss is not divided: the means of the micro-batches are added up, so the step grows with "
    "the number of micro-batches",
    "sum": "the loss is not divided: the sum over all labels is used as it is",
    "mean of means": f"{_DIVIDED_WRONG}the number of micro-batches. A label in a short micro-batch weighs more than "
    "one in a long one",
    "full window": f"{_DIVIDED_WRONG}`grad_accum_steps`, also where the last window is shorter and the micro-batches "
    "are uneven",
    "positions": f"{_DIVIDED_WRONG}all positions, padding and -100 included",
    "tokens": f"{_DIVIDED_WRONG}real tokens, also those whose label is -100",
    "rows": f"{_DIVIDED_WRONG}rows, not labels",
    "sum over steps": f"{_DIVIDED_WRONG}sums of losses, divided by the number of micro-batches",
    "pass": f"{_DIVIDED_WRONG}the labels of the whole pass, not of the window",
    "clipped": "the gradient is clipped to a norm of 1, and the text asks for the gradient as it is",
    "mask from ids": "the mask is made from the ids, and is not the one that came: an id of 0 may stand inside a text",
    "mask from lengths": "the mask is made from the lengths, and is not the one that came: padding may stand before a "
    "text",
}
WRONG_LOSS = LOSS | {"positions": "a sum divided by all positions: padding and -100 are no labels"}


def check_train_accumulated(job: Job) -> None:
    """3.1: the weights of a loop with big batches, as many updates, and the memory of one micro-batch."""
    cases = _cases(job)
    twin = job.twin(twins.TRAIN_ACCUMULATED).call("accumulated_all", cases=cases)
    for case, right in zip(cases, twin, strict=True):
        answer = job.learner().call("accumulated_once", **case)
        put_told_calls(job, answer)
        _require_pass(job, case, answer, right)
        if case["is_counted"]:
            _require_nothing_hidden(job, case, answer, right)
            job.counts |= {name: answer[name] for name in ("optimizer_steps", "saved_bytes")}
    _require_nothing_kept(job)


def _require_nothing_hidden(
    job: Job, case: dict[str, Any], answer: dict[str, Any], right: dict[str, Any]
) -> None:
    """The same limit where autograd does not know what is kept: hooks and functions of one's own need not tell it."""
    job.counts["live_bytes"] = answer["live_bytes"]
    job.require(
        answer["live_bytes"] <= SAVED_BYTES_SLACK * right["live_bytes"],
        expected=f"the tensors of one micro-batch at a time: {right['live_bytes']:,} bytes",
        got=f"{answer['live_bytes']:,} bytes in memory at one time",
        likely=_SEVERAL_GRAPHS,
        look=_LOOK_EACH,
    )
    outside = [number for (number,) in job.learner().told.call.seen["outside"]]
    steps = case["grad_accum_steps"]
    windows = [outside[start : start + steps] for start in range(steps, len(outside), steps)]
    grown = max((window[-1] - window[0] for window in windows), default=0.0)
    job.require(
        grown <= KEPT_SHARE * right["saved_bytes"],
        expected="activations that are freed by each `backward()`",
        got=f"{grown:,.0f} bytes more outside of torch at the end of a window than at its beginning",
        likely="activations are kept as NumPy arrays or bytes, where torch does not see them",
        look=_LOOK_EACH,
    )


def _require_nothing_kept(job: Job) -> None:
    """In a long window with many classes, so that logits are large beside all that a loop may note of them."""
    num_classes = 60
    of_logits = 6 * 24 * num_classes * 4
    for collects in (False, True):
        job.learner().call(
            "held_by_micro_batch",
            seed=job.seed(),
            num_micro_batches=20,
            num_classes=num_classes,
            collects=collects,
        )
        growth = _growth([held for (held,) in job.learner().told.call.seen["held"]])
        if growth <= KEPT_SHARE * of_logits:
            break
    job.require(
        growth <= KEPT_SHARE * of_logits,
        expected="memory that does not grow from micro-batch to micro-batch",
        got=f"{growth:,.0f} bytes more after each, where its logits have {of_logits:,}",
        likely="what was made of the logits is kept: log-probabilities, a copy, or an array of them",
        look="keep the loss of each micro-batch, a number, and not what it is made of",
    )


def _growth(held: list[float]) -> float:
    """A micro-batch, once there are gradients, and a few micro-batches to be freed; none where hardly one came."""
    late = held[4:]
    return (late[-1] - late[0]) / (len(late) - 1) if len(late) > 1 else 0.0


def _cases(job: Job) -> list[dict[str, Any]]:
    """Passes that differ in all that the text leaves open. In the first, each known mistake gives other weights."""
    rng, steps = job.rng, int(job.rng.integers(3, 6))
    short = int(rng.integers(1, steps))
    counted = int(rng.choice((0, 1, 6)))  # of those with two whole windows: none knows that it is looked at
    sizes = [
        (2 * steps + short, steps, []),
        (2 * steps, steps, []),
        # Micro-batches without a label, in windows with some; also at the end of a window and of all.
        (steps + short, steps, [int(rng.integers(steps - 1))]),
        (3, 1, []),
        (2, int(rng.integers(3, 9)), [0]),
        (1, int(rng.integers(2, 9)), []),
        (2 * steps + 2, steps, [steps - 1, 2 * steps + 1]),
        (LONG, 1, []),  # what is done every so many updates, or fills up
        (steps, steps, []),
    ]
    return [
        {
            "seed": job.seed(),
            "num_micro_batches": num_micro_batches,
            "grad_accum_steps": grad_accum_steps,
            "empty": empty,
            "learning_rate": float(rng.uniform(0.05, 0.2)),
            "left": {1: None, 4: None, 5: math.nan}.get(number, 0.1),
            "is_frozen": number == 6,
            "is_in_groups": number % 2 == 0,
            "is_training": bool(number % 2),
            "is_counted": number == counted,  # operators: it costs, and one pass shows it
            "is_sure": number == 3,
            "is_steep": number == 8,  # one update: what follows so long a step is rounding
            "is_again": number == 1,
        }
        for number, (num_micro_batches, grad_accum_steps, empty) in enumerate(sizes)
    ]


def _require_pass(job: Job, case: dict[str, Any], answer: dict[str, Any], right: dict[str, Any]) -> None:
    def name(likely: Mapping[str, str]) -> str:
        return name_the_mistake(
            likely,
            twin=twin_of(job, twins.TRAIN_ACCUMULATED, "accumulated_all", {"cases": [case]}),
            is_same=lambda wrong: _are_alike(answer["moved"], wrong[0]["moved"]),
        )

    num_micro_batches, num_empty = case["num_micro_batches"], len(case["empty"])
    require_updates(
        job,
        answer,
        num_micro_batches=num_micro_batches,
        grad_accum_steps=case["grad_accum_steps"],
        updates=right["optimizer_steps"],
        name=name,
    )
    require_calls(job, answer["calls"], right["calls"], spare=num_empty)
    if num_empty:
        are_weights = not np.isfinite(answer["moved"]).all()
        job.require(
            not are_weights and math.isfinite(answer["report"].get("loss", 0.0)),
            expected="finite weights and a finite loss, also where a micro-batch has no label at all",
            got="NaN in the weights" if are_weights else "a loss of NaN",
            likely="the mean over the labels of one micro-batch: 0 / 0 where it has none",
            look="sum the losses; divide by the labels of the whole window, which always has some",
        )
    require_cleared(job, answer["moved"], case["left"])
    require_frozen(job, answer["frozen"], name, WRONG_WEIGHTS)
    if not are_equal(answer["moved"], right["moved"], "float32"):
        _fail_by_weights(answer, right, name(WRONG_WEIGHTS) or _why(job, case))
    job.require(
        answer["saved_bytes"] <= SAVED_BYTES_SLACK * right["saved_bytes"],
        expected=f"the activations of one micro-batch at a time: {right['saved_bytes']:,} bytes",
        got=f"{answer['saved_bytes']:,} bytes kept for backward",
        likely=_SEVERAL_GRAPHS,
        look=_LOOK_EACH,
    )
    job.require(
        answer["num_kept"] == 0,
        expected="what a micro-batch gave freed before the next: the last one or two may still have a name",
        got=f"outputs of {answer['num_kept']} earlier ones in memory",
        likely="logits or other outputs of the micro-batches are kept, such as for the loss of the whole pass: memory "
        "grows with their number",
        look="keep the loss of each micro-batch, a number, and not what it is made of",
    )
    require_left_alone(job, answer["set_before"], answer["set_after"], when="after the call")
    require_untouched(job, is_changed=answer["is_changed"])
    updates = {"": "something else than optimizer steps is counted, such as micro-batches"}
    require_told(job, answer, right["report"], {"loss": WRONG_LOSS, "num_updates": updates}, rel_tol=ROUNDING)


def _why(job: Job, case: dict[str, Any]) -> str:
    """Of weights that no twin has; those of a second pass have a reason where they are right as those of the first."""
    if case["is_again"]:
        first = case | {"is_again": False}
        got, right = job.both(twins.TRAIN_ACCUMULATED, "accumulated_once", **first)
        return LEFT_BEHIND * are_equal(got["moved"], right["moved"], "float32")
    # A sure model's gradients may be long, too.
    return f"{CUT_LOSS}; or {LIMITED}" if case["is_sure"] else LIMITED * case["is_steep"]


def _fail_by_weights(answer: dict[str, Any], right: dict[str, Any], mistake: str) -> None:
    """The weights are wrong."""
    difference = float(np.abs(answer["moved"] - right["moved"]).max())
    raise failure(
        expected="the weights of a loop that takes each window as one big batch",
        got="other weights" if mistake else f"weights that differ by up to {difference:.3g}",
        likely=mistake
        or "another loss than the mean over the labels of the window, gradients of other micro-batches, or gradients "
        "that are changed before the step",
        look="two micro-batches, one with 1 label and one with 3: what does each label weigh?"
        if mistake
        else "compare `p.grad` before the step with that of one big batch made of the same rows",
    )


def _are_alike(got: np.ndarray, wrong: np.ndarray) -> bool:
    """Equal, or NaN at the same places: a mistake may make weights that no float32 holds."""
    lost = ~np.isfinite(wrong)
    if lost.any() and np.array_equal(lost, ~np.isfinite(got)):
        return True
    return are_equal(got, wrong, "float32")
