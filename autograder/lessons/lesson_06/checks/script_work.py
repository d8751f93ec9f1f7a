"""What 6.3 asks of the work behind the weights: each row learnt on one rank, and what was learnt exchanged."""

from __future__ import annotations

from typing import Any

from autograder.engine import Job
from autograder.lessons.lesson_06 import baselines
from autograder.lessons.lesson_06.checks.common import require_together

Ranks = list[dict[str, Any]]
MIN_WORK, MAX_WORK = 0.3, 1.5
"""FLOPs of all ranks over those of one process: padding that is cut off makes them fewer, a look at the loss more."""


def told_of_ranks(job: Job, answer: dict[str, Any]) -> Ranks:
    """The answers of the ranks, each with what was told of it as it happened; a rank that was not forked tells
    nothing."""
    ranks, told = require_together(job, answer), job.learner().told.call
    if not told.counts:
        return ranks
    for rank, seen in enumerate(ranks):
        for name in ("rows", "learnt"):
            seen[name] = int(sum(number for of, number in told.seen[name] if of == rank))
        counts = [each for each in told.counts if each.of == f"rank {rank}"]
        seen["flops"] = sum(each.total_flops for each in counts)
        seen["all_reduces"] = sum(each.num_all_reduces for each in counts)
    return ranks


def require_shared_rows(
    job: Job, ranks: Ranks, rows: list[int], nodes: str, *, is_two_machines: bool
) -> None:
    """Fail unless each row goes forward on one rank, where a gradient can come back to it."""
    found, total = [seen["rows"] for seen in ranks], sum(rows)
    job.require(
        max(seen["learnt"] for seen in ranks) > 0,
        expected="a model that trains in training mode",
        got="no forward pass in training mode that a gradient came back to",
        likely="`model.train()` is missing, or the batches are never used",
        look="the loop over `job['batches']`",
    )
    job.require(
        sum(found) == total,
        expected=f"{total} rows through the model, on all ranks together{nodes}",
        got=f"{sum(found)}",
        likely="no sampler: every rank computes the whole batch, many times the work for the same result"
        if sum(found) >= total * len(ranks)
        else "the samples are dealt out by LOCAL_RANK or LOCAL_WORLD_SIZE: those are of one machine, and here are two"
        if is_two_machines
        else "rows are dropped or repeated where a batch does not divide evenly, or whole batches are",
        look="each row of a batch belongs to one rank",
    )
    job.require(
        min(found) > 0,
        expected=f"rows on every rank{nodes}",
        got=f"{found}",
        likely="one rank does the work of all: the others have nothing to compute",
        look="every batch has at least one row for each rank",
    )


def require_split_work(job: Job, ranks: Ranks, arguments: dict[str, Any], nodes: str) -> None:
    """Fail where right weights come of other rows than those that went through the model on their rank.

    Last, when the weights are known to be right: a wrong loss may leave a row without a gradient, and has a name.
    """
    learnt, total = [seen["learnt"] for seen in ranks], sum(arguments["rows"])
    job.require(
        sum(learnt) == total,
        expected=f"a gradient for each of {total} rows, on all ranks together{nodes}",
        got=f"one for {sum(learnt)}",
        likely="the rows go through the model for show: what trains it is computed elsewhere",
        look="`backward()` of the loss of this rank's own rows, and no other",
    )
    asked = {name: arguments[name] for name in ("seed", "rows", "settings")}
    plain = job.twin(baselines.nothing(job.entry)).call("work_alone", **asked)
    work = sum(seen["flops"] for seen in ranks) / plain
    job.require(
        MIN_WORK <= work <= MAX_WORK,
        expected=f"the work of one process, shared by {len(ranks)}: about as many FLOPs, on all ranks together{nodes}",
        got=f"{work:.2f} times as many",
        likely="every rank computes the whole batch, beside its own rows or in their place"
        if work > MAX_WORK
        else "the model's products are not computed as such, but written out, as by multiply and sum",
        look="one forward and one backward for each batch, of this rank's rows",
    )
    if not all(seen["all_reduces"] for seen in ranks):
        job.flag("no all-reduce was seen on some rank: how do its gradients reach the others?")
