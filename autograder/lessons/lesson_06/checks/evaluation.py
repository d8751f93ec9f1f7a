"""The check of exercise 6.5: an evaluation over ranks, exact on uneven shards."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import name_the_mistake, require_close, require_keys, require_left_alone
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import (
    FROM_IDS,
    HIDDEN,
    ROUNDED_AWAY,
    SECONDS,
    require_own_rows,
    require_together,
)

ROUNDED = "almost right, and rounded: the numbers of the report, or what they are made of"
OF_WEIGHTS = (
    "the sums are kept in the type of the model's weights: in bfloat16 a number has two or three digits, however exact "
    "the logits are"
)
INFINITE = (
    "the logarithm of a probability so small that float32 holds 0 for it, as `softmax(…).log()` takes it: infinity, "
    "where `log_softmax` gives a number"
)
EXACT = 2e-6  # of a mean, but for the order of its sum
KEYS = ("loss", "accuracy", "num_samples")
PLAIN = ("float", "int")
_MISTAKES = {
    "mean_of_rank_means": "mean of rank means: a rank with few samples weighs as much as one with many",
    "mean_of_batch_means": "a mean of batch means: a small batch weighs as much as a large one",
    "sums": "a sum over all samples, never divided by their number",
}


def check_evaluate(job: Job) -> None:
    """6.5: the numbers of one process on all samples, the same on every rank, whatever the shards."""
    job.talks = True
    few = [int(size) for size in job.rng.integers(1, 9, size=4)]
    # Shards, training before, gradients before, kind of model; those of two ranks one after the other in the same
    # processes.
    of_two: list[tuple[list[list[int]], bool, bool, str]] = [
        ([[12, 12, 12, 2], [5 + few[0]]], True, True, "loud"),
        ([[], [few[3] + 3, 1]], True, False, ""),
        ([[few[1], 4, few[0]], [few[2]]], False, True, "sick"),
    ]
    for cases in (of_two, [([[7, few[1]], [], [1, few[2], 9]], False, True, "halved")]):
        arguments: list[dict[str, Any]] = [
            {"seed": job.seed() % 10**6, "rows": rows, "kind": kind} for rows, *_, kind in cases
        ]
        calls = [
            own | {"training": training, "with_gradients": with_gradients}
            for own, (_, training, with_gradients, _) in zip(arguments, cases, strict=True)
        ]
        answer = job.learner().call("evaluated", seconds=SECONDS, cases=calls)
        ranks: Any = require_together(job, answer)  # of each rank its reports
        for number, (_, training, with_gradients, kind) in enumerate(cases):
            twin = job.twin(baselines.nothing(job.entry)).call("evaluated_alone", **arguments[number])
            for seen in ranks:
                _require_modes(job, seen[number], training, with_gradients)
            for rank, seen in enumerate(ranks):
                _require_numbers(job, seen[number], twin, rank, kind, is_first=number == 0)
                require_own_rows(job, seen[number]["num_foreign"], rank)
    job.counts["ranks_tried"] = 3


def _require_modes(job: Job, seen: dict[str, Any], training: bool, with_gradients: bool) -> None:
    names = {True: "training mode", False: "evaluation mode"}
    job.require(
        seen["num_training"] == 0,
        expected="evaluation mode while the model is measured",
        got="training mode while it is measured",
        likely="`model.eval()` is missing: dropout falsifies what is measured",
        look="exercise 1.4 of lesson 01 has it",
    )
    job.require(
        seen["left_training"] == training,
        expected=f"{names[training]} afterwards: the mode that the model came in",
        got=names[seen["left_training"]],
        likely="the mode that the model came in is not put back"
        if training
        else "the model is always left in training mode, whatever it came in",
        look="`model.training` tells the mode before you change it",
    )
    job.require(
        seen["parts_left"] == 0,
        expected=f"{names[training]} afterwards in all parts of the model",
        got=f"{seen['parts_left']} that are in the other one",
        likely="the flag of the outermost module alone is put back: the parts, such as dropout, stay as they were "
        "while the model was measured",
        look="`model.train(mode)` goes through all parts",
    )
    job.require(
        seen["num_recorded"] == 0,
        expected="an evaluation without gradients",
        got="logits that autograd could go back from",
        likely="`torch.no_grad()` is missing: activations of every batch are kept for a backward that never comes",
        look="what does `logits.requires_grad` say inside your loop?",
    )
    job.require(
        seen["left_with_gradients"] == with_gradients,
        expected=f"gradients switched {'on' if with_gradients else 'off'} afterwards, as before",
        got="the other way",
        likely="the switch of gradients is not given back: the next training step finds it where you left it",
        look="`with torch.no_grad():` puts it back by itself",
    )
    job.require(
        not seen["model_changed"],
        expected="the model as it was before the call",
        got=f"other {' and '.join(seen['model_changed'])}",
        likely="the model is changed: the training that goes on with it finds another one than it left",
        look="`torch.no_grad()` and the mode are all that an evaluation needs",
    )
    require_left_alone(job, *seen["switches"], when="before the call")


def _require_numbers(
    job: Job, seen: dict[str, Any], twin: dict[str, Any], rank: int, kind: str, *, is_first: bool
) -> None:
    job.require(
        seen["type"] == "dict",
        expected="a dict of three numbers",
        got=f"a value of type {seen['type']}",
        likely="nothing is returned on this rank"
        if seen["type"] == "NoneType"
        else "another type is returned",
        look="every rank returns the whole report",
    )
    require_keys(job, seen["types"], KEYS)
    odd = [key for key in KEYS if seen["types"][key] not in PLAIN]
    job.require(
        not odd,
        expected=f"plain Python numbers on rank {rank}",
        got=", ".join(f"{key} of type {seen['types'][key]}" for key in odd),
        likely="tensors or NumPy's numbers are returned as they are: they hold memory, and no JSON takes them",
        look="`.item()` or `.tolist()` makes Python numbers of them",
    )
    is_nan = math.isnan(twin["right"]["loss"])
    job.require(
        not is_nan or math.isnan(seen["report"]["loss"]),
        expected=f"the loss NaN on rank {rank}: the model gives NaN for one of the samples",
        got=f"{seen['report'].get('loss', math.nan):.5g}",
        likely=HIDDEN,
        look="whoever reads the report must see that the model has diverged: measure all the samples",
    )
    for key in ("num_samples",) if is_nan else KEYS:  # which of NaN logits is the largest is left open
        got, right = seen["report"].get(key, math.nan), twin["right"][key]
        is_of_weights = key == "loss" and kind == "halved" and math.isclose(got, right, rel_tol=0.02)
        require_close(
            job,
            f"{key} on rank {rank}",
            got,
            right,
            likely=FROM_IDS
            if seen["num_forwards"] and seen["is_from_ids"]
            else OF_WEIGHTS  # in float32 it was right
            if is_of_weights
            else ROUNDED
            if key != "num_samples" and math.isclose(got, right, rel_tol=2e-4)
            else _why(key, got, twin, rank, seen["num_forwards"])
            if is_first
            else "something of the call before is left in, such as sums that are not begun anew",
            look="add up in float64, or in Python numbers, whatever the weights are"
            if is_of_weights
            else "sums and counts cross the ranks; the division comes last",
            rel_tol=EXACT,
        )
        job.require(
            got == right or got not in (round(right, 6), round(right, 7)),  # no sum comes out so by itself
            expected=f"{key} = {right:.10g} on rank {rank}",
            got=f"{got:.10g}",
            likely=ROUNDED,
            look="return the number as it comes; whoever prints it rounds it",
        )
    job.require(
        seen["again"] == seen["first"],
        expected=f"the same report on rank {rank} when the same model is evaluated on the same batches once more",
        got=f"{seen['again'][:150]}, and not {seen['first'][:150]}",
        likely="something of the call before is left in, such as sums that are not begun anew",
        look="what does your function keep, and where?",
    )
    job.require(
        seen["num_changed"] == 0,
        expected="the batches as they were before the call",
        got=f"{seen['num_changed']} that are others",
        likely="parts are taken out of the caller's own batches, or written over: the next evaluation finds others",
        look="`batch[name]` reads what `batch.pop(name)` takes away",
    )


def _why(key: str, got: float, twin: dict[str, Any], rank: int, num_forwards: int) -> str:
    def is_same(wrong: float | None) -> bool:
        return wrong is not None and math.isclose(got, wrong, rel_tol=1e-4)

    if not num_forwards:  # rank 0 of the first call has batches
        return "no batch goes through the model: `batches` is gone over twice, and an iterator comes but once"
    if rank:  # rank 0's are right
        return "only rank 0 knows the result: the others have what `reduce` has left there"
    if any(is_same(own[key]) for own in twin["own"]):
        return f"rank {rank} reports its own shard: nothing was exchanged"
    mistake = name_the_mistake(_MISTAKES, twin=lambda name: twin[name].get(key), is_same=is_same)
    if mistake:
        return mistake
    if key == "loss" and math.isinf(got):
        return INFINITE
    large = twin["large"]
    all_of_large = got * twin["right"]["num_samples"] - large["sum_of_others"]
    if key == "loss" and 5 * large["number"] < all_of_large < 45 * large["number"]:  # each is about 50
        return ROUNDED_AWAY
    return "another number is summed over the ranks, or it is divided before it is summed"
