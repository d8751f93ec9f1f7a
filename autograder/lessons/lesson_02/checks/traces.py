"""What a step or an epoch leaves behind beside its weights, after an error of the model too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import require_left_alone

MIN_SHARE = 0.9


def require_own_device(job: Job, found: Mapping[str, Any], dtype: str) -> None:
    """Fail where the device is not taken from the model: `found` by the harness's `beside_a_gpu`."""
    job.require(
        found["share"] >= MIN_SHARE,
        expected=f"{dtype} for a model that lies on the CPU, on a machine that has a GPU as well",
        got=found["said"] or f"{found['share']:.0%} of the matrix products in it",
        likely="the device is what the machine has, and not where the model lies",
        look="`next(model.parameters()).device.type`",
    )


def require_told(job: Job, stumbled: Mapping[str, Any]) -> None:
    """Fail where an error of the model was swallowed, or left a switch of the process other than it was."""
    job.require(
        stumbled["is_told"],
        expected="an error that the model raises to reach the caller",
        got="no error",
        likely="an error is caught and swallowed: the run goes on, and nobody knows that a step is missing",
        look="catch nothing that you cannot mend",
    )
    when = "after an error of the model, with an autocast of the caller's open"
    require_left_alone(job, stumbled["before"], stumbled["after"], when=when)
