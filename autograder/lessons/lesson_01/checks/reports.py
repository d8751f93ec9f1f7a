"""The report of an epoch or an evaluation: each number, and the mistake of which a wrong one comes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.engine import Job
from autograder.lessons.checking import TOLERANCES, require_keys, require_report

BY_HAND = "work NAME out by hand for two batches of 3 and 1 samples"
AVERAGED = "averaged batch means: the short last batch counts as much as a full one"
ROUNDED = TOLERANCES["float32"]
LAST = "the number of the last batch alone"


def require_known_report(
    job: Job,
    answer: dict[str, Any],
    expected: dict[str, float],
    known: Mapping[str, Mapping[str, str]],
    otherwise: Mapping[str, str],
) -> None:
    """Every number of the report as expected; a wrong one that equals that of a known mistake names it."""
    job.require(
        answer["type"] == "dict",
        expected=f"a dict with {', '.join(otherwise)}",
        got=f"a {answer['type']}",
        likely="nothing is returned, or not as a dict",
        look="the docstring lists the keys",
    )
    report = answer["report"]
    likely = {
        name: next(
            (
                text
                for wrong, text in known.get(name, {}).items()
                if is_close(report.get(name), expected[wrong])
            ),
            text_else,
        )
        for name, text_else in otherwise.items()
    } | {
        name: f"{name} is rounded: a small one loses all that it says"
        for name, got in report.items()
        if name in otherwise and got == round(got, 5) and math.isclose(got, expected[name], abs_tol=1e-3)
    }
    require_keys(job, report, likely)
    for name, text in likely.items():
        is_count = name not in ("loss", "grad_norm")
        require_report(
            job, report, expected, {name: text}, look=BY_HAND, rel_tol=1e-5 if is_count else ROUNDED
        )


def require_told(job: Job, answer: Mapping[str, Any]) -> None:
    """The error of a batch or sample that cannot be read reached the caller."""
    job.require(
        answer["is_told"],
        expected="the error of a batch that cannot be read or trained on",
        got="a report, or another error",
        likely="an error is caught on the way and the rest goes on: something is missing, and nobody learns of it",
        look="let errors of the data pass through your function",
    )


def require_unrounded(job: Job, numbers: Sequence[float], name: str = "loss") -> None:
    """Not all of these, which are of several epochs, have few digits; of full precision next to none has."""
    some = [number for number in numbers if number]
    job.require(
        not some or any(number != round(number, 5) for number in some),
        expected=f"{name} as it was worked out",
        got=", ".join(map(str, some[:4])),
        likely=f"{name} is rounded: a small one loses all that it says",
        look="round where a number is shown, not where it is returned",
    )


def require_infinite(job: Job, got: float, *, name: str = "loss") -> None:
    """An infinite loss of one sample makes the mean infinite, or NaN by the way that some take; so does a NaN."""
    what = "losses" if name == "loss" else "gradients"
    job.require(
        not math.isfinite(got),
        expected=f"a {name} that is not finite: that of one sample is infinite, or no number",
        got=f"{got:.6g}",
        likely=f"{what} that are not finite are left out or replaced, so that a sick model looks well",
        look="the mean is over all of them, whatever they are",
    )


def is_close(got: float | None, expected: float) -> bool:
    return got is not None and math.isclose(got, expected, rel_tol=TOLERANCES["float32"])
