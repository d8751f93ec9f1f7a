"""Wrong solutions with names."""

from __future__ import annotations

import importlib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A wrong solution with a name. Its check must fail with a reason that contains `says`.

    `is_timed` tells that only the clock shows what is wrong with it.
    """

    name: str
    source: str
    says: str
    is_timed: bool = False


def edited(source: str, *edits: tuple[str, str]) -> str:
    """A right solution with a mistake made in it: each edit is (old text, new text).

    Raises:
        ValueError: the old text is not there, so that a mutant would be a right solution.
    """
    for old, new in edits:
        if old not in source:
            raise ValueError(f"the source has no {old!r} to replace")
        source = source.replace(old, new)
    return source


def load_mutants(lesson_id: str) -> dict[str, tuple[Mutant, ...]]:
    """The named wrong solutions of a lesson, by exercise id."""
    mutants: dict[str, tuple[Mutant, ...]] = importlib.import_module(
        f"autograder.lessons.lesson_{lesson_id}.mutants"
    ).MUTANTS
    return mutants
