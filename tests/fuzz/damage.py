"""The damages: what can happen to a hand-in, each a small function with a name, and the order in which they come.

A damage changes a `HandIn` in place, by its own random numbers, and leaves alone what it finds no longer there, so that
any of them follow each other. `damaged(number, …)` is the hand-in of that number: the same on every machine.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz.hand_in import HandIn

Change = Callable[[HandIn, random.Random], None]
#: What is inside comes first: a notebook that is no JSON any more has no fields to exchange.
STAGES = ("field", "text", "answers", "bytes", "file", "name")
_FURTHER = 0.25  # of the hand-ins have more than one damage


@dataclass(frozen=True)
class Damage:
    """`weight`: how often it comes in a round of all damages, because chance has a part in it."""

    name: str
    stage: str
    change: Change
    weight: int = 1


REGISTERED: list[Damage] = []


def damage(stage: str, weight: int = 1) -> Callable[[Change], Change]:
    """Register a function as a damage, called what it is called."""

    def register(change: Change) -> Change:
        REGISTERED.append(Damage(change.__name__.replace("_", " ").strip(), stage, change, weight))
        return change

    return register


def register_each(stage: str, name: str, cases: dict[str, Change], weight: int = 1) -> None:
    """Register a row of like damages."""
    REGISTERED.extend(Damage(f"{name}: {case}", stage, change, weight) for case, change in cases.items())


@functools.cache
def all_damages() -> tuple[Damage, ...]:
    """Every damage there is."""
    from tests.fuzz import (
        damage_answers,
        damage_bytes,
        damage_fields,
        damage_files,
        damage_names,
        damage_texts,
    )

    rooms = (damage_fields, damage_texts, damage_answers, damage_bytes, damage_files, damage_names)
    assert all(rooms), "imported for what they register"
    return tuple(sorted(REGISTERED, key=lambda each: (STAGES.index(each.stage), each.name)))


@functools.cache
def _round(seed: int) -> tuple[Damage, ...]:
    """Each damage as often as its weight says, shuffled: any stretch of it is a fair sample."""
    found = [each for each in all_damages() for _ in range(each.weight)]
    random.Random(f"round {seed}").shuffle(found)
    return tuple(found)


def round_length() -> int:
    """After so many hand-ins each damage has come."""
    return len(_round(0))


def damages_of(number: int, seed: int) -> list[Damage]:
    """The damages of one hand-in, in the order in which they are done."""
    in_turn = _round(seed)
    chance = random.Random(f"{seed}:{number} which")
    found = [in_turn[number % len(in_turn)]]
    while chance.random() < _FURTHER:
        found.append(chance.choice(in_turn))
    return sorted(found, key=lambda each: STAGES.index(each.stage))


def damaged(number: int, seed: int, bases: Sequence[Callable[[], HandIn]]) -> tuple[HandIn, list[str]]:
    """A hand-in made of one of the sound `bases`, and the names of its damages."""
    hand_in = random.Random(f"{seed}:{number} base").choice(bases)()
    hand_in.student = f"{'dp'[number % 2]}-{number:05d}"  # before or after one of the sound ones
    done = damages_of(number, seed)
    for place, each in enumerate(done):
        each.change(hand_in, random.Random(f"{seed}:{number}:{place} {each.name}"))
    return hand_in, [each.name for each in done]
