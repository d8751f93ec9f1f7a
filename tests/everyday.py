"""Which cases of a parametrized test are run every day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(values: Iterable[Any], number: int = 1) -> list[Any]:
    """Values for `parametrize`, of which the first `number` are everyday cases and the others are further ones."""
    values = list(values)
    others = (value if isinstance(value, tuple) else (value,) for value in values[number:])
    return [*values[:number], *(pytest.param(*each, marks=pytest.mark.further) for each in others)]
