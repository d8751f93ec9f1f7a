"""Which cases of a parametrized test are run every day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(values: Iterable[Any]) -> list[Any]:
    """Values for `parametrize`, of which the first is an everyday case and the others are further ones."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.further) for value in others)]
