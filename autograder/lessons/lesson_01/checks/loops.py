"""The check of exercise 1.3: one epoch of training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    are_equal,
    name_the_mistake,
    twin_of,
    watched,
)
from autograder.lessons.lesson_01 import baselines
from autograder.lessons.lesson_01.checks.reports import (
    AVERAGED,
    LAST,
    is_close,
    require_infinite,
    require_known_report,
    require_told,
    require_unrounded,
)

MAX_SYNCS_PER_EPOCH = 8
LONG = 300
"""Steps of an epoch in which a number every 50 steps is too many."""


def check_train_one_epoch(job: Job) -> None:
    """1.3: the weights and the report of a hand-written loop, without a sync per step."""
    answers, epochs = [], _drawn_epochs(job)
    for arguments in epochs:
        answer, twin = job.both(baselines.TRAIN_EPOCH, "train_epoch_once", **arguments)
        answer |= _counted(job, 2 if arguments["odd"] else 1)
        _require_steps(job, answer, len(arguments["rows"]) * (2 if arguments["odd"] else 1))
        if not are_equal(answer["weights"], twin["weights"], "float32"):
            _fail_by_name(job, answer, twin, arguments, of_large_gradients=epochs[1])
        _require_train_report(job, answer, twin["report"])
        job.require(
            answer["batches_kept"],
            expected="the batches as they came",
            got="others, or without one of their tensors",
            likely="something is written into a batch, or taken out of it (`batch.pop`)",
            look="read from a batch; what is changed is to be a copy",
        )
        answers.append(answer)
    for name in ("loss", "grad_norm"):
        require_unrounded(job, [answer["report"][name] for answer in answers], name)
    unwatched = sum(answer["unwatched"] for answer in answers)
    watched(job, {"unwatched": unwatched}, "syncs are not counted, as in another thread")
    for answer in answers:
        _require_few_syncs(job, answer)
    _require_long(job)
    _require_exact_counts(job)
    for where in ("batch", "model", "memory"):
        require_told(job, job.learner().call("train_epoch_broken_off", seed=job.seed(), where=where))
    answer = job.learner().call("train_epoch_infinite", seed=job.seed())
    require_infinite(job, answer["report"].get("loss", math.inf))
    sick = job.learner().call("train_epoch_sick", seed=job.seed())["report"]
    for name in ("loss", "grad_norm"):
        require_infinite(job, sick.get(name, math.inf), name=name)


def _counted(job: Job, num_epochs: int) -> dict[str, Any]:
    """What was told of the epochs of the last call: steps and modes of all, and the most syncs of one."""
    counts, modes = job.learner().counts(num_epochs), job.learner().told.call.seen["modes"]
    return {
        "train_mode": bool(modes) and not any(evaluating for _, evaluating in modes),
        "syncs": max(each.num_syncs for each in counts),
        "unwatched": sum(each.num_unwatched for each in counts),
        "optimizer_steps": sum(each.num_optimizer_steps for each in counts),
    }


def _require_long(job: Job) -> None:
    """Few syncs in a long epoch, and its late steps as the first ones."""
    answer, twin = job.both(baselines.TRAIN_EPOCH, "train_epoch_long", seed=job.seed(), num_steps=LONG)
    answer |= _counted(job, 1)
    _require_few_syncs(job, answer)
    _require_steps(job, answer, LONG)
    job.require(
        are_equal(answer["weights"], twin["weights"], "float32"),
        expected=f"the weights of a hand-written loop after {LONG} steps",
        got="others, where a short epoch was right",
        likely="late steps are not as the first ones: something fills up, or is done every so many steps",
        look="what in your loop depends on the number of the step?",
    )
    job.require(
        is_close(answer["report"].get("loss"), twin["report"]["loss"]),
        expected="the loss of a hand-written loop, where some texts have more than 1,024 tokens",
        got="another",
        likely="long texts are cut before the model gets them, or late losses are not counted as the first ones",
        look="the model gets `input_ids` and `attention_mask` as they come",
    )
    _require_train_report(job, answer, twin["report"])


def _require_exact_counts(job: Job) -> None:
    """More tokens than float32 counts one by one."""
    widths = (2**22 + 2 * job.rng.integers(1, 2**16, size=5) + [0, 1, 0, 0, 0]).tolist()
    answer = job.learner().call("train_epoch_vast", seed=job.seed(), widths=widths)
    right = 2 * sum(widths) - widths[1]
    got = answer["report"].get("num_tokens", math.nan)
    job.require(
        got == right,
        expected=f"{right:,} tokens",
        got=f"{got:,.0f}",
        likely="tokens are counted in float32, which has no whole numbers one by one above 2**24 = 16,777,216",
        look="the sum of a bool tensor is int64: add it to an int64 tensor",
    )


def _drawn_epochs(job: Job) -> list[dict[str, Any]]:
    """Epochs of gradients below and above the norm to clip at, of even and uneven batches, short and long.

    The next have norms to clip at that clip nothing, and all; the last one is a single batch.
    """
    rng = job.rng
    some, few = int(rng.integers(18, 26)), int(rng.integers(5, 9))
    kinds: list[tuple[list[int], dict[str, float], tuple[float, float]]] = [
        ([12] * some + [2], {"max_norm": float(rng.uniform(1.1, 1.3))}, (1.0, 0.25)),
        (
            [3, *rng.integers(4, 14, size=some).tolist(), 2],
            {"max_norm": float(rng.uniform(1.5, 4))},
            (20.0, 1.0),
        ),
        ([6] * few + [1], {}, (1.0, 1.0)),  # as if max_norm=1.0 were given
        ([5, 130, 4], {"max_norm": math.inf}, (20.0, 1.0)),
        ([5, 3, 4, 1], {"max_norm": 0.0}, (40.0, 1.0)),
        ([int(rng.integers(1, 4))], {"max_norm": 0.5}, (20.0, 1.0)),  # one batch alone
    ]
    return [
        {
            "seed": job.seed(),
            "rows": rows,
            "options": options,
            "scales": list(scales),
            "training": bool(number % 2),
            "learning_rate": float(rng.uniform(0.05, 0.12)) * (0.1 if number == 3 else 1.0),
            "groups": number == 1,
            "odd": number == 2,
            "sure": number == 4,
        }
        for number, (rows, options, scales) in enumerate(kinds)
    ]


def _require_steps(job: Job, answer: dict[str, Any], num_batches: int) -> None:
    steps, scheduled = answer["optimizer_steps"], answer["scheduler_steps"]
    job.require(
        steps == num_batches,
        expected=f"{num_batches} optimizer steps for {num_batches} batches",
        got=f"{steps}",
        likely="a batch is skipped" if steps < num_batches else "a batch is stepped more than once",
        look="one `optimizer.step()` per batch",
    )
    job.require(
        scheduled == num_batches,
        expected=f"{num_batches} scheduler steps, one per optimizer step",
        got=f"{scheduled}",
        likely={
            0: "the scheduler is not stepped at all",
            1: "the scheduler is stepped per epoch",
        }.get(scheduled, "the scheduler is stepped too often or too seldom"),
        look="the schedule counts steps: call it inside the loop, once for each batch",
    )
    job.require(
        answer["train_mode"],
        expected="the model in training mode at every step",
        got="evaluation mode: dropout was off",
        likely="`model.train()` is missing, or left out where the outermost module trains already: an evaluation "
        "before may have left the model in eval(), or a part of it",
        look="switch the mode in the first line of an epoch",
    )


_BY_VALUE = "each element is clipped by itself, not the norm of the whole gradient"


def _fail_by_name(
    job: Job,
    answer: dict[str, Any],
    twin: dict[str, Any],
    arguments: dict[str, Any],
    *,
    of_large_gradients: dict[str, Any],
) -> None:
    """The weights are wrong."""

    def unclipped(wrong: dict[str, Any]) -> str:
        found = job.learner().call("train_epoch_once", **of_large_gradients)
        by_value = twin_of(job, baselines.TRAIN_EPOCH, "train_epoch_once", of_large_gradients)(
            "clipped by value"
        )
        if are_equal(found["weights"], by_value["weights"], "float32"):
            return _BY_VALUE  # no element of the gradients here was beyond `max_norm`
        if is_close(answer["report"].get("grad_norm"), wrong["report"]["grad_norm"]):
            return (
                "clipping comes after the optimizer's step (or not at all), so the step itself is unclipped"
            )
        return "clipping comes before backward, so there is nothing to clip yet"

    def scaled_up(wrong: dict[str, Any]) -> str:
        if is_close(answer["report"].get("grad_norm"), wrong["report"]["grad_norm"]):
            return "small gradients are scaled up to `max_norm`: clipping only makes large ones smaller"
        return _SUM  # whose gradients are all large: clipped, they look alike

    mistake = name_the_mistake(
        {
            "scheduler first": "the scheduler is stepped before the optimizer, so every step uses the next step's lr",
            "gradients never cleared": "gradients are never cleared: each step adds those of all steps before",
            "gradients cleared late": "gradients that were there before the epoch are added to the first batch's: "
            "a step is of its own batch alone",
            "first group clipped": _ONE_GROUP,
            "last group clipped": _ONE_GROUP,
            "group by group": "each parameter group is clipped by itself, not the norm of the whole gradient",
            "first group cleared": "gradients are cleared in one parameter group of the optimizer, not in all of them",
            "unclipped": unclipped,
            "max_norm ignored": "the gradient is clipped at 1.0 whatever `max_norm` says",
            "scaled up": scaled_up,
            "clipped by value": _BY_VALUE,
            "sum": _SUM,
            "smoothed": "label smoothing: the plain cross-entropy is asked for",
            "mask ignored": "the attention mask does not reach the model, which then takes padding for text",
            "mask from ids": "the mask is made from the ids, and an id may equal the padding's inside a text",
        },
        twin=twin_of(job, baselines.TRAIN_EPOCH, "train_epoch_once", arguments),
        is_same=lambda wrong: are_equal(answer["weights"], wrong["weights"], "float32"),
    )
    if mistake:
        raise failure(
            expected="the weights of a loop that clears, goes backward, clips, steps, schedules",
            got="other weights",
            likely=mistake,
            look="write the five calls of a step in order on paper, then compare",
        )
    difference = float(np.abs(answer["weights"] - twin["weights"]).max())
    raise failure(
        expected="the weights of a hand-written loop on the same batches",
        got=f"weights that differ by up to {difference:.3g}",
        likely="dropout or a second epoch go wrong: a seed is set, the model is called more than once for a batch, "
        "or the optimizer is changed beside its steps"
        if arguments["odd"]
        else "another loss than the batch mean of the cross-entropy, or a step that works on something else",
        look="run one batch by hand and compare each number with your loop's",
    )


_ONE_GROUP = "one parameter group of the optimizer is clipped, not the gradient of all of them"
_SUM = "the loss that goes backward is the sum over the batch, where its mean is asked for"
_ONE_STEP = "the norm of one step alone, the last or the largest, where the mean of all is asked for"


def _require_train_report(job: Job, answer: dict[str, Any], expected: dict[str, float]) -> None:
    known = {
        "loss": {
            "mean_of_means": AVERAGED,
            "loss after the step": "the loss is worked out once more after the step, not the one that was trained on",
            "loss of the last": LAST,
        },
        "grad_norm": {
            "norm after clipping": "the norm after clipping; clip_grad_norm_ returns the one before",
            "norm of the last": _ONE_STEP,
            "largest norm": _ONE_STEP,
            "norm of sums": "the gradient of the batch's summed loss, where that of its mean is asked for",
            "norm of a group": "the gradient norm of one parameter group alone",
            "norm by samples": "steps weighed by their samples, where each step counts alike",
        },
        "num_samples": {"num_batches": "batches counted, not samples"},
        "num_tokens": {"num_slots": "padding counted as tokens"},
        "pad_fraction": {
            "mean_of_fractions": "the mean of the batches' fractions; it is one fraction over the whole epoch",
        },
    }
    otherwise = {
        "loss": "a sum where a mean is asked for, or a mean over the wrong number",
        "grad_norm": "a sum where a mean is asked for, or a mean over the wrong number",
        "num_samples": "batches counted as if all were full",
        "num_tokens": "tokens counted by something else than the attention mask, such as their ids",
        "pad_fraction": "the share of real tokens, or the width counted wrongly: 1 - real tokens / (rows x width)",
    }
    require_known_report(job, answer, expected, known, otherwise)


def _require_few_syncs(job: Job, answer: dict[str, Any]) -> None:
    syncs, steps = answer["syncs"], answer["optimizer_steps"]
    for name, number in (("syncs_per_epoch", syncs), ("steps_per_epoch", steps)):
        job.counts[name] = max(number, job.counts.get(name, 0))
    job.require(
        syncs <= MAX_SYNCS_PER_EPOCH,
        expected=f"at most {MAX_SYNCS_PER_EPOCH} device syncs in an epoch of {steps} steps",
        got=f"{syncs}",
        likely="a sync every step: `.item()`, `float()`, `int()`, `if tensor` or an index of booleans in the loop; or "
        "a result copied to the CPU, by `.cpu()`, `.numpy()` or into a tensor whose memory an array shares: here that "
        "costs nothing, on a GPU it waits until all queued work is done"
        if syncs >= steps
        else "numbers brought to Python one by one, in the loop or after it",
        look="keep sums as tensors, and bring them to Python after the loop",
    )
