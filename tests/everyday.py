"""Which cases of a parametrized test are run every day, and which by `workbook test --all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(values: Iterable[Any], everyday: int = 1, further: int | None = None) -> list[Any]:
    """Values for `parametrize`.

    Args:
        everyday: number of values, from the first on, that are run every day.
        further: number of those after them that `workbook test --all` runs too, None for all; what is left over is
            exhaustive.
    """
    values = list(values)
    tiers = [None] * everyday + [pytest.mark.further] * (len(values) if further is None else further)
    tiers += [pytest.mark.exhaustive] * len(values)
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=mark or ())
        for value, mark in zip(values, tiers, strict=False)
    ]
