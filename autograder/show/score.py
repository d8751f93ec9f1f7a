"""Points that know why."""

from __future__ import annotations

from typing import Any

from autograder.common import Result
from autograder.show.card import result_html


class Score(float):
    """Points, as a number that knows why.

    Its `repr` is the number, so that nbgrader reads it from a cell's output; notebooks show the card instead.
    """

    result: Any

    def __new__(cls, points: float, result: Any = None) -> Score:
        """`result`: what the points are of; a `Result`, or what a subclass shows."""
        score = super().__new__(cls, points)
        score.result = result
        return score

    def __repr__(self) -> str:
        return f"{float(self):g}"

    def _repr_html_(self) -> str:
        return result_html(self.result, flags=False) if isinstance(self.result, Result) else ""
