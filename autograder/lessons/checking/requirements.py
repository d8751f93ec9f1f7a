"""What the checks of several lessons ask of a report: its keys, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from autograder.engine import Job
from autograder.lessons.checking.quality import TOLERANCES


def require_keys(job: Job, report: Mapping[str, object], names: Iterable[str]) -> None:
    """Fail unless the report has a number under each of these names."""
    names = tuple(names)
    missing = [name for name in names if name not in report]
    job.require(
        not missing,
        expected=f"a report with {', '.join(names)}",
        got=f"no {', '.join(missing)}",
        likely="a key is missing or misspelt, or its value is not one number",
        look="the docstring lists them",
    )


def require_close(
    job: Job,
    name: str,
    got: float,
    expected: float,
    *,
    likely: str,
    look: str = "",
    rel_tol: float = TOLERANCES["float32"],
) -> None:
    """Fail unless the number called `name` is what it should be, up to rounding."""
    job.require(
        math.isclose(got, expected, rel_tol=rel_tol, abs_tol=1e-6),
        expected=f"{name} = {expected:.6g}",
        got=f"{got:.6g}",
        likely=likely,
        look=look or f"work {name} out by hand for a case of two or three numbers",
    )
