"""What the checks of lesson 06 ask of every group of processes."""

from __future__ import annotations

from typing import Any

from autograder.engine import Job

ROUNDED_AWAY = (
    "the logarithm of a probability, as of a softmax with an ε or a limit: of a label that the model thinks all but "
    "impossible the loss stops, and no gradient comes"
)
HIDDEN = "a loss that is NaN is hidden or left out: what comes out is that of fewer samples, and nobody knows"
FROM_IDS = (
    "the mask is made of the ids, and not the batch's own: an id like that of padding may stand inside a text"
)
CUT = "words are cut off: padding is taken to stand at the end of each row, and in some it stands at the beginning"
EVALUATED = "the model is switched to evaluation mode: without dropout it trains on something else"
FROZEN_MOVED = (
    "frozen parameters are moved: a gradient that they had from before is left in, or zeros, and weight decay or "
    "momentum moves what has one. None leaves it alone"
)
OTHER_MODES = (
    "parts of the model are switched to another mode: one that was left in evaluation mode trains now"
)
SECONDS = 60.0  # for a call that starts processes: where none can be forked, each imports torch first


def require_together(job: Job, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of the ranks; fails when one waited for another that never came."""
    job.require(
        not answer["parted"],
        expected="every rank in the same collectives, in the same order, to the end",
        got=answer["parted"] or "-",
        likely="a barrier or another collective in one branch only: some ranks call it and others do not",
        look="print the rank before each collective; the number of calls may not depend on rank or on its data",
    )
    return list(answer["ranks"])


def require_own_rows(job: Job, num_foreign: int, rank: int) -> None:
    """Fail where rows of other ranks went through the model: each rank would do the work of all."""
    job.require(
        num_foreign == 0,
        expected=f"rank {rank}'s own rows through its model, and no others",
        got=f"{num_foreign} texts of other ranks",
        likely="the samples cross the ranks, and each rank computes all of them: nothing is shared but the data",
        look="what has to cross is small: gradients, sums and counts",
    )
