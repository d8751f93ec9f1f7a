"""What the harness hands to a cell is not the cell's own, by whatever way it comes in."""

from __future__ import annotations

import pytest

from autograder.engine.review import reasons

_DESCRIBED = """
import torch
class Peek:
    def __get__(self, thing, kind=None):
        return thing.__dict__
KINDS = [torch.nn.Linear]
"""
HANDED = {
    "a function that a class's body makes global": (
        "class A:\n    global solve\n    def solve(thing, name):\n        return thing.__dict__"
    ),
    "a name that others hand in, too": (
        "def solve(thing, name):\n    return getattr(thing, name)\nif False:\n    solve(1, 'real')"
    ),
    "a name that others hand in to what has its mark later": (
        "def solve(thing, name):\n    return getattr(thing, name)\ndef test():\n    solve(1, 'real')"
    ),
    "a descriptor in a class of a list": f"{_DESCRIBED}KINDS[0].looked_into = Peek()",
    "a descriptor in a class that a loop gives": f"{_DESCRIBED}for kind in KINDS:\n    kind.looked_into = Peek()",
    "a descriptor that a loop puts there": f"{_DESCRIBED}for KINDS[0].looked_into in [Peek()]:\n    pass",
    "a descriptor by setattr": f"{_DESCRIBED}for kind in KINDS:\n    setattr(kind, 'looked_into', Peek())",
    "a property in a class of a list": (
        "import torch\nKINDS = [torch.nn.Linear]\nclass A:\n    looked_into = property(lambda self: self.__dict__)\n"
        "    KINDS[0].looked_into = looked_into"
    ),
}
OWN = {
    "a function that only the cell calls": (
        "def pick(thing, name):\n    return getattr(thing, name)\ndef solve(thing):\n    return pick(thing, 'real')"
    ),
    "a descriptor of its own class": (
        "class Peek:\n    def __get__(self, thing, kind=None):\n        return thing.__dict__\n"
        "class A:\n    looked_into = Peek()\ndef solve(model):\n    for p in model.parameters():\n        p.grad = None"
    ),
}


@pytest.mark.parametrize("way", HANDED)
def test_what_is_handed_in_is_seen(way: str) -> None:
    assert reasons(HANDED[way], counts=False, entry="solve")


@pytest.mark.parametrize("way", OWN)
def test_what_is_its_own_is_not_noted(way: str) -> None:
    assert reasons(OWN[way], counts=False, entry="solve") == []
