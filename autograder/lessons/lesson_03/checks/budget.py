"""The check of exercise 3.6: the best throughput that a byte budget allows."""

from __future__ import annotations

import math
from typing import Any

from autograder.engine import Job, measure_speedup
from autograder.lessons.checking import are_equal, require_equal, require_report

TEXTS_PER_UPDATE = 64  # as in the harness
BUDGET_SLACK = 1.05  # batches and indices are live too
POSITIONS_SLACK = 1.3  # a budget in positions fills to the last one where rows are short


def check_train_in_budget(job: Job) -> None:
    """3.6: the same updates within the budget, 1.3 times as fast as micro-batches of 4."""
    num_extra = int(job.rng.integers(9, 50))
    arguments: dict[str, Any] = {"seed": job.seed(), "num_extra": num_extra}
    answer = job.learner().call("budget_once", **arguments)
    plain = job.worker("baseline", job.baseline).call("budget_once", **arguments)
    updates = math.ceil((2 * TEXTS_PER_UPDATE + num_extra) / TEXTS_PER_UPDATE)
    _require_samples(job, answer)
    _require_updates(job, answer, updates)
    allowed = round(BUDGET_SLACK * plain["budget"])
    job.counts |= {"peak_bytes": answer["peak"], "budget_bytes": plain["budget"], "allowed_bytes": allowed}
    job.counts["micro_batches_per_update"] = round(answer["forwards"] / updates, 2)
    job.require(
        answer["peak"] <= allowed,
        expected=f"a peak of at most {allowed / 1e6:.2f} MB: the budget, and 5 % for the batches themselves",
        got=f"{answer['peak'] / 1e6:.2f} MB",
        likely="micro-batches too large for the longest texts: what fits at 20 tokens does not at 96. Or the graphs of "
        "several micro-batches are alive at once",
        look="`step_bytes(rows, width)` with the width of the longest text of the micro-batch",
    )
    job.require(
        are_equal(answer["weights"], plain["weights"], "float32"),
        expected="the weights of micro-batches of 4: an update's gradient does not depend on how it is cut",
        got="other weights",
        likely="the loss is divided by the wrong count: micro-batches are uneven, and each text must weigh the same. "
        "Or texts of one update went into another",
        look="sum over the texts, divided by the number of texts of the update",
    )
    likely = "a mean of the micro-batches' means, or a wrong count"
    require_report(job, answer["report"], plain["report"], dict.fromkeys(("loss", "num_updates"), likely))
    measure_speedup(
        job,
        function="budget_segment",
        compare=lambda a, b: _require_same_updates(job, a, b, answer["positions"]),
        likely=f"{answer['forwards'] / updates:.1f} micro-batches an update: each costs something whatever its size"
        if answer["forwards"] / updates > 8
        else "few micro-batches, and yet no faster: padding, or work for each text",
        look="which is the largest micro-batch that the budget holds? And what if like lengths stand together?",
    )


def _require_samples(job: Job, answer: dict[str, Any]) -> None:
    missing = answer["expected_rows"] - answer["rows"]
    job.require(
        missing == 0,
        expected=f"{answer['expected_rows']} texts through the model, each once",
        got=f"{answer['rows']}",
        likely="the last partial window is dropped, or the rest of an update that fills no micro-batch"
        if missing > 0
        else "texts are computed more than once",
        look="the number of texts is a multiple of nothing, on purpose",
    )
    job.require(
        answer["tokens"] == answer["expected_tokens"],
        expected=f"{answer['expected_tokens']} real tokens",
        got=f"{answer['tokens']}",
        likely="texts are cut to fit, or padding is marked as real",
        look="every text whole",
    )


def _require_updates(job: Job, answer: dict[str, Any], updates: int) -> None:
    job.require(
        answer["steps"] == updates,
        expected=f"{updates} optimizer steps, the last of a shorter window",
        got=f"{answer['steps']}",
        likely="a step at every micro-batch: other updates, another training"
        if answer["steps"] > updates
        else "the last partial window is dropped: its gradients never reach the weights",
        look="one step for each `global_batch_size` texts",
    )


def _require_same_updates(
    job: Job, baseline: dict[str, Any], learner: dict[str, Any], most_positions: int
) -> None:
    job.require(
        learner["steps"] == baseline["steps"] and learner["tokens"] == baseline["tokens"],
        expected=f"{baseline['steps']} updates on {baseline['tokens']} tokens under the clock",
        got=f"{learner['steps']} on {learner['tokens']}",
        likely="under the clock the loop does less than it did before",
        look="does your loop depend on how often it is called?",
    )
    job.require(
        learner["positions"] <= POSITIONS_SLACK * most_positions,
        expected=f"micro-batches of about {most_positions} positions at most, as where memory was counted",
        got=f"{learner['positions']}",
        likely="under the clock the micro-batches are larger than the budget allows",
        look="the budget holds in every update",
    )
    require_equal(
        job,
        learner["weights"],
        baseline["weights"],
        dtype="float32",
        what="weights",
        likely="under the clock the updates are others than those of micro-batches of 4",
        look="compare the weights after a few updates with those of micro-batches of 4",
    )
