"""What must be the same in every process: seen in fresh interpreters, where it can be another one at all."""

from __future__ import annotations

from typing import Any

from autograder.engine import Job


def require_same_elsewhere(job: Job, elsewhere: dict[str, Any], *, what: str, likely: str) -> None:
    """Fail unless two fresh interpreters drew the same: the answer of the harness' `same_elsewhere`."""
    job.require(
        not elsewhere["trouble"],
        expected="a cell that runs in a fresh interpreter too",
        got=elsewhere["trouble"],
        likely="the cell needs something that stands outside it",
        look="run this cell alone in a new kernel",
    )
    job.require(
        elsewhere["is_same"],
        expected=f"the same {what} in every process",
        got="others after Python was started again",
        likely=likely,
        look="seeds are numbers: `[seed, epoch]`, or `hashlib` of a text",
    )
