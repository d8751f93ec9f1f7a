"""The check of exercise 3.6: the best throughput that a byte budget allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.engine import Job, failure, measure_speedup
from autograder.lessons.checking import are_equal, name_the_mistake, require_equal, twin_of
from autograder.lessons.lesson_03 import twins
from autograder.lessons.lesson_03.checks.windows import (
    CUT_LOSS,
    LEFT_BEHIND,
    LIMITED,
    LOSS,
    ROUNDING,
    put_told_calls,
    require_cleared,
    require_frozen,
    require_told,
    require_training,
    require_untouched,
)

TEXTS_PER_UPDATE, LONGEST, ROWS_OF_THE_LONGEST = 64, 96, 12  # as in the harness
HELD_SHORT = "ids are held in 16 bits, or in fewer words than there are: any id may stand in a text"
BUDGET_SLACK = 1.05  # batches and indices are live too
WRONG_WEIGHTS = {
    "one group divided": "only the gradients of the optimizer's first parameter group are divided: those of the others "
    "stay sums",
    "one group cleared": "only the gradients of the optimizer's first parameter group are cleared",
    "left over": "gradients that were there before the call reach the first update: nothing clears them",
    "sorted as a whole": "all samples are sorted, and texts of one update go into another",
    "never cleared": "gradients are never cleared: each update adds those of all updates before",
    "clipped": "the gradient is clipped to a norm of 1, and nothing is to be clipped",
    "sum": "the loss is not divided: the sum over the texts is used as it is",
    "full update": "divided by the wrong count: `global_batch_size`, also where the last update has fewer texts",
    "mask from ids": "the mask is made from the ids, and an id of 0 stands inside of texts, too: mask by length",
}


def check_train_in_budget(job: Job) -> None:
    """3.6: the same updates within the budget, 1.3 times as fast as micro-batches of 4."""
    for case in _cases(job):
        answer, plain = job.both(twins.TRAIN_IN_BUDGET, "budget_once", of_twin={"is_counted": False}, **case)
        put_told_calls(job, answer)
        answer |= {"steps": answer["optimizer_steps"], "peak": _peak(job)}
        _require_pass(job, case, answer, plain)
        if case["is_counted"]:
            per_update = len(answer["calls"]) / answer["steps"]
    job.counts["micro_batches_per_update"] = round(per_update, 2)
    line, lengths = [*plain["line"][:2], 0.0], [1]

    def compare(baseline: dict[str, Any], learner: dict[str, Any]) -> None:
        lengths.append(_require_same_updates(job, baseline, learner, line))

    _require_peak_as_timed(job, lengths[-1], line)
    measure_speedup(
        job,
        function="budget_segment",
        compare=compare,
        likely=f"{per_update:.1f} micro-batches an update: each costs something whatever its size"
        if per_update > 8
        else "few micro-batches, and yet no faster: padding, or work for each text",
        shows_idea=per_update <= 8,
        look="which is the largest micro-batch that the budget holds? And what if like lengths stand together?",
    )
    _require_peak_as_timed(job, lengths[-1], line)  # nobody knows that no clock runs any more


def _require_peak_as_timed(job: Job, num_steps: int, line: list[float]) -> None:
    job.learner().call("budget_segment", seconds=120.0, seed=job.seed(), num_steps=num_steps, operators=True)
    _require_peak(job, _peak(job), _step_bytes(ROWS_OF_THE_LONGEST, LONGEST, line), "timed_")


def _require_peak(job: Job, peak: int, budget: int, where: str) -> None:
    allowed = round(BUDGET_SLACK * budget)
    job.counts |= {f"{where}peak_bytes": peak, "budget_bytes": budget, "allowed_bytes": allowed}
    job.require(
        peak <= allowed,
        expected=f"a peak of at most {allowed / 1e6:.2f} MB: the budget, and 5 % for the batches themselves",
        got=f"{peak / 1e6:.2f} MB{', in updates like those under the clock' * bool(where)}",
        likely="micro-batches are larger there than elsewhere"
        if where
        else "each micro-batch is small enough, so the graphs of several are alive at once",
        look="call `backward()` for each micro-batch: it frees what its forward pass kept",
    )


def _peak(job: Job) -> int:
    """As told of the last call, with what is kept in memory that was there before."""
    (counts,) = job.learner().counts()
    return counts.peak_live_bytes + counts.old_bytes_written


def _cases(job: Job) -> list[dict[str, Any]]:
    """First the longest texts, mixed ones and a rest; then other sizes of update and budget, also exact fits."""
    rng = job.rng
    size = int(rng.integers(66, 80))
    passes = [
        (
            TEXTS_PER_UPDATE,
            [TEXTS_PER_UPDATE, TEXTS_PER_UPDATE, ROWS_OF_THE_LONGEST * int(rng.integers(1, 4)) + 1],
            ROWS_OF_THE_LONGEST,
        ),
        (size, [size, size], int(rng.integers(3, 5))),
        (size + 1, [int(rng.integers(2, size))], int(rng.integers(1, 4))),
        (1, [1] * 70, 5),  # many: what is done every so many updates, or fills up
        (128, [128], ROWS_OF_THE_LONGEST),
        (128, [128], ROWS_OF_THE_LONGEST),
    ]
    cases: list[dict[str, Any]] = []
    for number, (global_batch_size, updates, longest_rows) in enumerate(passes):
        mixed = [np.maximum(1, (LONGEST * rng.random(texts) ** 3).astype(int)).tolist() for texts in updates]
        if number == 0:  # of the longest, full micro-batches and a rest; a lone text at the end
            mixed[0], mixed[2] = [LONGEST] * updates[0], [LONGEST] * updates[2]
        if number == 4:  # so many rows fit that a few of them are a small share
            mixed[0] = [LONGEST // 3] * updates[0]
        if number == 5:  # as many positions in short rows cost far more than in long ones
            mixed[0] = [LONGEST, *rng.integers(6, 10, size=updates[0] - 1).tolist()]
        if number == 1:  # shapes that were asked for before, and cost more now
            mixed[0][:10] = [LONGEST] * 10
            mixed[1][: longest_rows + 2] = [LONGEST] * (
                longest_rows + 2
            )  # few of them, and the others are short
        lengths = [length for update in mixed for length in update]
        cases.append(
            {
                "seed": job.seed(),
                "lengths": lengths,
                "global_batch_size": global_batch_size,
                "longest_rows": longest_rows,
                # Counted bytes are those of our model, which lie on a line; other models' need not.
                "bend": 0.0 if number == 0 else float(rng.uniform(1.2 if number == 1 else 0.7, 2.0)),
                "left": {2: math.nan, 3: None}.get(number, 0.1),
                "is_frozen": number == 4,  # after NaN, which shows what is not cleared at all
                "is_in_groups": number % 2 == 0,
                "is_training": bool(number % 2),
                "is_counted": number == 0,
                "is_sure": number == 3,
                "is_steep": number == 4,  # one update: what follows so long a step is rounding
                "is_again": number == 1,
                "is_far": number == 2,
                "spare_bytes": -(number == 1),  # a byte more, and another row would fit
            }
        )
    return cases


def _step_bytes(rows: int, width: int, line: list[float]) -> int:
    rise = width / LONGEST + rows / 20
    return round(line[0] + line[1] * rows * width * (1 + line[2] * rise))


def _require_pass(job: Job, case: dict[str, Any], answer: dict[str, Any], plain: dict[str, Any]) -> None:
    _require_updates(job, answer, math.ceil(len(case["lengths"]) / case["global_batch_size"]))
    _require_samples(job, answer, case["lengths"])
    limits = case["global_batch_size"], plain["budget"], plain["line"]
    _require_budget(job, answer, *limits)
    if case["is_counted"]:
        _require_peak(job, answer["peak"], plain["budget"], "")

    def name(likely: Mapping[str, str]) -> str:
        if are_equal(answer["moved"], plain["moved"], "float32"):  # what is wrong is not how they moved
            return ""
        return name_the_mistake(
            likely,
            twin=twin_of(job, twins.TRAIN_IN_BUDGET, "budget_once", case),
            is_same=lambda wrong: are_equal(answer["moved"], wrong["moved"], "float32"),
        )

    require_cleared(job, answer["moved"], case["left"])
    require_frozen(job, answer["frozen"], name, WRONG_WEIGHTS)
    if not are_equal(answer["moved"], plain["moved"], "float32"):
        raise failure(
            expected="the weights of micro-batches of 4: an update's gradient does not depend on how it is cut",
            got="other weights",
            likely=name(WRONG_WEIGHTS)
            or _why(job, case)
            or "the loss of a micro-batch is divided by the wrong count, or the gradient is not that of the mean over "
            "the texts of the update: micro-batches are uneven, and each text must weigh the same",
            look="sum over the texts, divided by the number of texts of the update",
        )
    job.require(
        not answer["is_list_changed"],
        expected="`samples` as it was",
        got="another list",
        likely="the caller's list is sorted or emptied in place: the next epoch has other updates, or none",
        look="`sorted(samples[a:b])` makes a list of its own, `samples.sort()` and `del` change the one that came",
    )
    require_untouched(job, is_changed=answer["is_changed"])
    updates = {"": "something else than optimizer steps is counted, such as micro-batches"}
    require_told(job, answer, plain["report"], {"loss": LOSS, "num_updates": updates}, rel_tol=ROUNDING)


def _why(job: Job, case: dict[str, Any]) -> str:
    """Of weights that no twin has; those of a second pass have a reason where they are right as those of the first."""
    if case["is_again"]:
        first = case | {"is_again": False}
        got, right = job.both(twins.TRAIN_IN_BUDGET, "budget_once", **first)
        return LEFT_BEHIND * are_equal(got["moved"], right["moved"], "float32")
    if case["is_far"]:
        near = case | {"is_far": False}
        got, right = job.both(twins.TRAIN_IN_BUDGET, "budget_once", **near)
        return HELD_SHORT * are_equal(got["moved"], right["moved"], "float32")
    # A sure model's gradients may be long, too.
    return f"{CUT_LOSS}; or {LIMITED}" if case["is_sure"] else LIMITED * case["is_steep"]


def _require_samples(job: Job, answer: dict[str, Any], lengths: list[int]) -> None:
    rows = sum(rows for rows, *_ in answer["calls"])
    tokens = sum(tokens for _, _, tokens, _ in answer["calls"])
    job.require(
        rows == len(lengths),
        expected=f"{len(lengths)} texts through the model, each once",
        got=f"{rows}",
        likely="texts are left out, such as the rest of an update that fills no micro-batch, or one that stands "
        "there twice"
        if rows < len(lengths)
        else "texts are computed more than once",
        look="the number of texts is a multiple of nothing, on purpose",
    )
    if tokens != sum(lengths):
        likely = "the mask is made from the ids, and an id of 0 stands inside of texts, too: mask by length"
        if tokens > sum(lengths):
            likely = "padding is marked as real"
        elif max(width for _, width, *_ in answer["calls"]) < max(lengths):
            likely = "texts are cut"
        raise failure(
            expected=f"{sum(lengths)} real tokens",
            got=f"{tokens}",
            likely=likely,
            look="every text whole, and as many real tokens in its row as it is long",
        )
    require_training(job, answer["calls"])


def _require_budget(
    job: Job,
    answer: dict[str, Any],
    global_batch_size: int,
    budget: int,
    line: list[float],
) -> None:
    calls = answer["calls"]
    rows, width = max(
        ((rows, width) for rows, width, *_ in calls), key=lambda shape: _step_bytes(shape[0], shape[1], line)
    )
    needs = _step_bytes(rows, width, line)
    # One text cannot be cut.
    job.require(
        needs <= budget or rows == 1,
        expected=f"micro-batches within the budget: `step_bytes(rows, width)` of at most {budget:,}",
        got=f"{needs:,} for {rows} texts, {width} wide",
        likely="micro-batches are padded to more than their longest text, such as to a multiple of 8, and `step_bytes` "
        "was asked for a smaller width than the one they have"
        if answer["is_too_wide"]
        else _why_over_budget(calls, global_batch_size, budget, line),
        look="`step_bytes(rows, width)` with the width of the longest text of the micro-batch",
    )


def _why_over_budget(calls: list[list[int]], global_batch_size: int, budget: int, line: list[float]) -> str:
    over, is_rest, seen, last = [], [], 0, sum(rows for rows, *_ in calls)
    for rows, width, *_ in calls:
        is_first, seen = seen % global_batch_size == 0, seen + rows
        if _step_bytes(rows, width, line) > budget and rows > 1:
            over.append((rows, width))
            is_rest.append((seen % global_batch_size == 0 or seen == last) and not is_first)
    if all(_step_bytes(*shape, line) <= BUDGET_SLACK * budget for shape in over):
        return (
            "the budget is exceeded by a little, as where `step_bytes` is asked for less than comes: the 5 % are for "
            "the batches themselves"
        )
    if line[2] and all(_step_bytes(*shape, [*line[:2], 0.0]) <= budget for shape in over):
        return (
            "bytes are worked out from rows × width, from another call's `step_bytes`, or from rows and width in each "
            "other's place; here they grow faster than a line"
        )
    if all(is_rest) or all(_step_bytes(rows - 1, width, line) <= budget for rows, width in over):
        return (
            "texts are added to a micro-batch that was full, such as one more or the rest of the update: `step_bytes` "
            "was not asked for what comes of it"
        )
    return (
        "micro-batches too large for the longest texts, as those of an earlier call's limits: what fits at 20 tokens "
        "does not at 96"
    )


def _require_updates(job: Job, answer: dict[str, Any], updates: int) -> None:
    likely = "updates are joined or left out"
    if answer["steps"] == updates - 1:
        likely = (
            "the last partial window is dropped or joined to another, or updates are of another size than "
            "`global_batch_size`"
        )
    elif answer["steps"] == len(answer["calls"]):
        likely = "a step at every micro-batch: other updates, another training"
    elif answer["steps"] > updates:
        likely = "the updates are of other sizes than `global_batch_size`"
    job.require(
        answer["steps"] == updates,
        expected=f"{updates} optimizer steps, one for each `global_batch_size` texts and one for what is left",
        got=f"{answer['steps']}",
        likely=likely,
        look="one step for each `global_batch_size` texts",
    )


def _require_same_updates(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], line: list[float]
) -> int:
    """Returns the number of updates."""
    for one in (baseline, learner):
        steps = [counts.num_optimizer_steps for counts in one["told"].counts]
        one |= {"steps": sum(steps), "calls": one["told"].seen["call"]}
    wanted, got = ([one["steps"], sum(call[2] for call in one["calls"])] for one in (baseline, learner))
    job.require(
        got == wanted,
        expected=f"{wanted[0]} updates on {wanted[1]} tokens under the clock",
        got=f"{got[0]} on {got[1]}",
        likely="under the clock the loop does less than it did before",
        look="does your loop depend on how often it is called?",
    )
    budget = _step_bytes(ROWS_OF_THE_LONGEST, LONGEST, line)
    _require_budget(job, learner, TEXTS_PER_UPDATE, budget, line)
    require_equal(
        job,
        learner["moved"],
        baseline["moved"],
        dtype="float32",
        what="weights",
        likely="under the clock the updates are others than those of micro-batches of 4",
        look="compare the weights after a few updates with those of micro-batches of 4",
    )
    return int(wanted[0])
