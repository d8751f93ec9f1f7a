"""Wrong solutions with names, and the claims of an exercise's text that they go against."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

Edit = tuple[str, str]
"""Old text, new text."""
Mistake = tuple[str, str, str] | tuple[str, *tuple[Edit, ...]]
"""What the check must say of it, and the edit that makes it: `(says, old, new)`, or `(says, edit, edit, …)`."""
Claims = Mapping[str, tuple[str, ...]]
"""Words quoted from an exercise's text → the names of the wrong solutions that go against them, or EXPLAINS."""
EXPLAINS = ("explains",)
"""Of words that ask nothing of a solution."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A wrong solution with a name. Its check must fail with a reason that contains `says`.

    `is_timed` tells that only the clock shows what is wrong with it.
    """

    name: str
    source: str
    says: str
    is_timed: bool = False


def wrong(source: str, mistakes: Mapping[str, Mistake], *, is_timed: bool = False) -> tuple[Mutant, ...]:
    """A right solution with one mistake after the other made in it, as a table.

    Args:
        mistakes: `{name: (says, old, new)}`; where it takes several edits, `{name: (says, (old, new), (old, new))}`.
        is_timed: only the clock shows what is wrong with these. `{name: (says,)}` is then `source` as it stands: right,
            and too slow.

    Raises:
        ValueError: an edit finds nothing to replace, or there is none, so that a mutant would be a right solution.
    """
    mutants = []
    for name, (says, *edits) in mistakes.items():
        if not edits and not is_timed:
            raise ValueError(f"{name!r} edits nothing: its source would be right")
        pairs = [(edits[0], edits[1])] if edits and isinstance(edits[0], str) else edits
        mutants.append(Mutant(name=name, source=edited(source, *pairs), says=says, is_timed=is_timed))
    return tuple(mutants)


def edited(source: str, *edits: Edit) -> str:
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


def load_claims(lesson_id: str) -> dict[str, Claims]:
    """The claims of a lesson's exercises, by exercise id."""
    claims: dict[str, Claims] = importlib.import_module(
        f"autograder.lessons.lesson_{lesson_id}.claims"
    ).CLAIMS
    return claims
