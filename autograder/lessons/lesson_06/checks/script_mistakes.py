"""What goes wrong in scripts of 6.3, in a learner's words."""

from __future__ import annotations

import re

from autograder.engine import CheckFailed, Job, failure
from autograder.lessons.lesson_06.checks.common import ROUNDED_AWAY

NEAR = 0.02  # a share of it, from which on a mistake is no small one any more
ALMOST = (
    "almost right: a step that is not quite plain SGD's, as with a little weight decay, or gradients that are rounded "
    "on their way"
)
_RANK_MEANS = "mean of rank means: a rank with few rows weighs as much as one with many"
MISTAKES = {
    "mean of rank means": _RANK_MEANS,
    "mean of rank means of pieces": _RANK_MEANS,
    "sum of rank means": "the gradients of the ranks' means are summed: a step is world_size times too long",
    "multiplied twice": "multiplied by the ranks, but nothing divides by them: a step is world_size times too long",
    "divided twice": "divided by the ranks once too often: DDP makes a mean of their gradients",
    "a sum": "a sum over the rows, never divided by their number",
    "a sum by ranks": "a sum over the rows that is divided by ranks, and never by rows",
    "old gradients": "gradients of earlier steps are left in: nothing sets them to zero",
    "large losses left out": ROUNDED_AWAY,
    "clipped": "gradients are clipped, as in the worked example: that is no plain SGD any more",
}


UNKNOWN = (
    "the ranks agree with each other but not with one process: the start differs from the job's seed, the step from "
    "plain SGD with the job's learning rate, or the loss from the mean over the batch"
)


def too_few_parts(job: Job, error: CheckFailed) -> CheckFailed | None:
    """What it is when a rank has no part of a small batch."""
    if "IndexError" not in error.reason.got or not re.search(r"(?<!tensor_)(chunk|split)\(", job.source):
        return None
    return failure(
        expected="a part of each batch on every rank: it has at least one row for each",
        got=error.reason.got,
        likely="a rank has no part: `chunk` and `split` give fewer parts than there are ranks where a batch is small: "
        "of 4 rows for 3 ranks two parts of 2",
        look="`tensor[rank::world_size]`, or `tensor_split`, which gives as many parts as you ask for",
    )
