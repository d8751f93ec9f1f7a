"""The check of exercise 2.4: an epoch in the precision that is asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job, failure
from autograder.lessons.checking import (
    TOLERANCES,
    name_the_mistake,
    put_told,
    require_keys,
    require_left_alone,
    require_products,
    require_report,
    twin_of,
    watched,
)
from autograder.lessons.lesson_02 import baselines
from autograder.lessons.lesson_02.checks.epoch_counts import (
    require_counts,
    require_few_syncs,
    require_loss_in_fp32,
    require_plain_values,
    require_precision,
)
from autograder.lessons.lesson_02.checks.mixed import require_countable
from autograder.lessons.lesson_02.checks.timed_epochs import measure_epochs
from autograder.lessons.lesson_02.checks.traces import (
    require_own_device,
    require_told,
    require_used,
)

LONG, LATE = 640, 100  # batches: a sync now and then, such as every 64, shows as well
_ROOMY = 1e3  # more than any norm here


def check_train_epoch(job: Job) -> None:
    """2.4: the precision that is asked for and no other, no sync per step, and bf16 faster where it can be."""
    cases = _cases(job)
    answer, twin = job.both(baselines.EPOCH, "epochs", of_twin={"is_counted": False}, cases=cases)
    require_countable(job, answer)
    twins = twin["epochs"]
    put_told(
        job,
        answer["epochs"],
        flops="flops",
        forwards="num_forwards",
        steps="num_optimizer_steps",
        syncs="num_syncs",
        unwatched="num_unwatched",
    )
    # An epoch each: where a case has several, the later ones can only be told after the earlier ones.
    cases = [
        case | {"precision": name, "place": place}
        for case in cases
        for place, name in enumerate(case["precisions"])
    ]
    of_a_row: dict[str, int] = job.twin(baselines.EPOCH).call("work_of_a_row", seed=job.seed())
    for case, own in zip(cases, answer["epochs"], strict=True):
        require_counts(job, own, len(case["rows"]))
        require_precision(job, own, case["precision"])
        plain = {dtype: sum(case["rows"]) * flops for dtype, flops in of_a_row.items()}
        require_products(job, own["flops"], plain)
        require_plain_values(job, own)
    require_loss_in_fp32(job, cases, answer["epochs"])
    require_left_alone(job, answer["set_before"], answer["set_after"], when="after the epochs")
    whole = zip(cases, answer["epochs"], twins, strict=True)
    for case, own, right in sorted(whole, key=_exact_first):
        _require_same_epoch(job, case, own, right)
    _require_nothing_hidden(job)
    _require_long(job)
    beside: dict[str, Any] = {"source": job.source, "entry": job.entry, "seed": job.seed()}
    require_own_device(job, job.learner().call("epoch_beside_a_gpu", **beside), "bfloat16")
    job.counts["syncs_per_epoch"] = max(own["syncs"] for own in answer["epochs"])
    watched(job, answer["epochs"][0], "operators are not counted")
    measure_epochs(job)


def _cases(job: Job) -> list[dict[str, Any]]:
    """Epochs in both precisions, bf16 first: what it leaves behind must not reach the plain loop."""
    tight, middle = (round(float(job.rng.uniform(*limits)), 3) for limits in ((0.02, 0.1), (0.3, 0.6)))
    rows, short = int(job.rng.integers(9, 13)), int(job.rng.integers(2, 4))
    shapes: list[tuple[str, list[int], float | None]] = [
        ("bf16-mixed", [rows] * 11 + [short], middle),
        ("32-true", [rows] * 11 + [short], tight),
        # One after the other on one model: a hook, a wrapped forward or an average that is left shows in the second.
        ("bf16-mixed 32-true", [5, 4, 5, 3], tight),
        ("32-true", [7, 7, 1], None),
        ("bf16-mixed", [5, 5, 2], _ROOMY),
        ("32-true", [6, 1], _ROOMY),
        # One batch of a power of two: its mean loss comes back as it was computed.
        ("bf16-mixed", [8], None),
        ("bf16-mixed", [1], middle),
        ("bf16-mixed", [2], _ROOMY),
        ("bf16-mixed", [16], tight),
        ("bf16-mixed", [4], _ROOMY),
        ("32-true", [1], middle),
    ]
    return [
        {
            "seed": job.seed(),
            "precisions": precision.split(),
            "rows": rows,
            "max_norm": max_norm,
            "is_in_groups": len(rows) > 3,
            "is_sure": rows == [6, 1],
        }
        for precision, rows, max_norm in shapes
    ]


def _require_long(job: Job) -> None:
    """Few syncs in a long epoch, and its late steps as the first ones."""
    answers, twins = job.both(
        baselines.EPOCH, "long_epochs", seconds=120.0, seed=job.seed(), num_batches=LONG
    )
    for (precision, own), counts in zip(answers.items(), job.learner().counts(len(answers)), strict=True):
        right, dtype = twins[precision], "float32" if precision == "32-true" else "bfloat16"
        require_few_syncs(job, counts.num_syncs, LONG)
        late = _late_syncs(counts.events)
        job.require(
            not late,
            expected="no sync in the loop late in an epoch",
            got=f"{late} between step {LATE} and step {LONG}",
            likely="a sync every few steps inside the loop: in a longer epoch there are more than 8 of them",
            look="keep sums as tensors, and bring them to Python after the loop",
        )
        job.require(
            own["train_mode"],
            expected=f"the model in training mode at each of {LONG} steps",
            got="evaluation mode at some: dropout would be off",
            likely="`model.train()` is missing, or left out where the outermost module trains already: an evaluation "
            "before, or a look in between, left the model in eval(), or a part of it",
            look="switch the mode in the first line of an epoch, and nowhere else",
        )
        away = _away(own, right)
        job.require(
            away <= TOLERANCES[dtype],
            expected=f"the weights of a plain loop after {LONG} steps of {precision!r}",
            got=f"weights that moved otherwise, by {away:.2g} of the way",
            likely="late steps are not as the first ones: something fills up, or is done every so many steps",
            look="what in your loop depends on the number of the step?",
        )
        require_report(
            job,
            own["report"],
            right["report"],
            dict.fromkeys(("loss", "num_samples"), "in a long epoch something else is added up"),
            rel_tol=1e-3 if dtype == "float32" else 1e-2,
        )


def _late_syncs(events: list[tuple[str, int]]) -> int:
    """Between the late forwards of an epoch: what comes behind the last one may be for the report."""
    forwards = [place for place, (name, _) in enumerate(events) if name == "num_forwards"]
    within = events[forwards[LATE] : forwards[-1]] if len(forwards) > LATE else []
    return sum(number for name, number in within if name == "num_syncs")


def _require_nothing_hidden(job: Job) -> None:
    """A NaN in the loss of one batch shows in the mean, and an error of the model reaches the caller."""
    rows = [int(number) for number in job.rng.integers(2, 6, size=4)]
    answer = job.learner().call("broken_epochs", seed=job.seed(), rows=rows, at=int(job.rng.integers(4)))
    require_told(job, answer["stumbled"])
    job.require(
        answer["is_told_by_batches"],
        expected="an error that `batches` raises to reach the caller",
        got="no error",
        likely="an error is caught and swallowed: the epoch ends early, and nobody knows that batches are missing",
        look="catch nothing that you cannot mend: `for batch in batches` ends by itself",
    )
    require_left_alone(
        job, answer["no_label"]["before"], answer["no_label"]["after"], when="after an error of the loss"
    )
    for report in answer["reports"]:
        require_keys(job, report, ("loss", "num_samples"))
        loss = report["loss"]
        job.require(
            math.isnan(loss),
            expected="loss = NaN for an epoch in which the loss of a batch is NaN",
            got=f"{loss:g}",
            likely="a loss that is not finite is replaced or left out of the mean: a broken epoch looks good",
            look="add the losses up as they come; a NaN in one of them is a NaN in the sum",
        )


_ONE_AUTOCAST = (
    "one autocast around several steps: it keeps its 16-bit copies of the weights, and later forwards compute with "
    "those of the first"
)
_LIKELY_WEIGHTS = {
    "not cleared": "gradients of several steps: those of the step before are still there",
    "cleared late": "gradients of another backward, from before the epoch, take part in the first step: they are "
    "cleared after it, and not before backward",
    "max_norm ignored": "the gradient is clipped to 1, whatever `max_norm` is",
    "never clipped": "the gradient is not clipped, or only after the step",
    "always clipped": "gradients shorter than `max_norm` are made longer: only longer ones are to be clipped",
    "each group": "a group of the optimizer is clipped by itself, and not the norm of all gradients",
    "one group": "a group of the optimizer is clipped by itself, and not the norm of all gradients",
    "sum": "the sum over the batch is minimised, where its mean is asked for",
    "mask ignored": "the model does not get the attention mask: padding is read as text",
    "mask of ids": "the mask is made of the ids: what is padding, the batch's own mask says",
    "one autocast": _ONE_AUTOCAST,
}
_LIKELY_OTHERWISE = {  # by whether autocast was open at a step
    False: "another loss than the batch mean of the cross-entropy, another clipping, or other gradients",
    True: _ONE_AUTOCAST,
}
_LIKELY_LOSS = {
    "mean of means": "a mean of batch means: the short last batch counts as much as a full one",
    "last batch": "the loss of the last batch alone",
    "not divided": "a sum over all samples: it is never divided by their number",
}


_NOT_MOVED = (
    "the model that was handed over has not moved at all: a copy is trained, or no step reaches its weights"
)


def _require_same_epoch(job: Job, case: dict[str, Any], own: dict[str, Any], right: dict[str, Any]) -> None:
    dtype = "float32" if case["precision"] == "32-true" else "bfloat16"
    mistaken = twin_of(job, baselines.EPOCH, "epochs", {"cases": [_alone(case)], "is_counted": False})
    away = _away(own, right)
    if not away <= TOLERANCES[dtype]:
        raise failure(
            expected=f"the weights of a plain loop after an epoch of {case['precision']!r}, but for {dtype}'s rounding",
            got="NaN or infinity"
            if math.isnan(away)
            else f"weights that moved otherwise, by {away:.2g} of the way",
            likely=_NOT_MOVED
            if np.array_equal(own["before"], own["weights"])
            else name_the_mistake(
                _LIKELY_WEIGHTS,
                twin=lambda name: mistaken(name)["epochs"][case["place"]],
                is_same=lambda wrong: _away(own, wrong) <= TOLERANCES[dtype],
            )
            or _LIKELY_OTHERWISE[own["is_open_at_step"]],
            look="in '32-true' your loop must be the plain one: compare the weights after one step",
        )
    require_used(job, case, own, right)
    # The loss of a first step is computed before anything that was rounded otherwise.
    rel_tol = 2e-5 if dtype == "float32" else 1e-4 if len(case["rows"]) == 1 else 1e-2
    require_keys(job, own["report"], ("loss", "num_samples"))
    got, expected = own["report"], right["report"]
    likely = "not the mean over samples of the losses that were trained on"
    if dtype == "bfloat16" and math.isclose(got["loss"], expected["loss"], rel_tol=1e-2):
        likely = "the loss is computed in bf16 in part, such as its `log_softmax`, and has three digits left"
    if not math.isclose(got["loss"], expected["loss"], rel_tol=rel_tol):
        likely = (
            name_the_mistake(
                _LIKELY_LOSS,
                twin=lambda name: mistaken(name)["epochs"][case["place"]]["report"]["loss"],
                is_same=lambda wrong: math.isclose(got["loss"], wrong, rel_tol=rel_tol),
            )
            or likely
        )
    of_number = "not the number of samples: batches are counted, or the short last one as a full one"
    require_report(job, got, expected, {"loss": likely, "num_samples": of_number}, rel_tol=rel_tol)


def _exact_first(epoch: tuple[dict[str, Any], dict[str, Any], dict[str, Any]]) -> tuple[int, str]:
    """Epochs in fp32 come first, for there nothing is rounded; second ones of a model last."""
    return epoch[0]["place"], epoch[0]["precision"]


def _alone(case: dict[str, Any]) -> dict[str, Any]:
    """A case as the harness takes it."""
    return {name: value for name, value in case.items() if name not in ("precision", "place")}


def _away(own: dict[str, Any], right: dict[str, Any]) -> float:
    """How far apart the weights are, as a share of the way that right ones went: of the weights it would be nothing."""
    way = np.linalg.norm((right["weights"] - right["before"]).astype(np.float64))
    return float(np.linalg.norm((own["weights"] - right["weights"]).astype(np.float64)) / way)
