"""The kinds of things that a name or an expression of a cell can stand for."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.engine.review import allowed

OWN = "an object of the cell's own classes"
OWN_CLASS = "a class of the cell's own"
OWN_FUNCTION = "a function of the cell's own"
A_CLASS = "a class, whoever's"  # what `type(x)` gives
MADE = "an object that a library made"
CHOSEN = "what something has under a name that is made as the cell runs"
UNKNOWN = "anything"
UNBOUND = "a name that nothing binds"


@dataclass(frozen=True)
class Known:
    """A part of a library by its dotted path; `kind` as in `allowed.kind_of`, "" for what is not on the list."""

    path: str
    kind: str

    @classmethod
    def at(cls, path: str) -> Known:
        return cls(path, allowed.kind_of(path))


Value = Known | str
