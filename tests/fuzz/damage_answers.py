"""The answers file: every type in every field, questions that are none, and its place, name and kind."""

from __future__ import annotations

import copy
import random
from functools import partial
from typing import Any

from tests.fuzz.damage import Change, damage, register_each
from tests.fuzz.damage_fields import VALUES, places
from tests.fuzz.hand_in import HandIn, Link, Pipe, Raw

ENTRY: dict[str, Any] = {
    "choice": "b",
    "first": "a",
    "tries": 2,
    "at": "2027-01-01T12:00:00+00:00",
    "value": 2.5,
}
PLACE: dict[str, Any] = {"seed": 77, "attempt": 1, "handed_in": 1}
FIELDS = ("format", "lesson", "answers", *(f"answers.question.{name}" for name in ("", *ENTRY)))


def _whole(hand_in: HandIn) -> None:
    """All fields that any version writes: there may have been no file yet."""
    hand_in.files.setdefault(hand_in.answers, b'{"format": 1, "lesson": "00", "answers": {}}')

    def change(document: Any) -> None:
        answers = document["answers"]
        for name in (*list(answers), "00.1", "predict:1a"):
            answers[name] = ENTRY | answers.get(name, {})
        answers.setdefault("exam", dict(PLACE))

    hand_in.edit(hand_in.answers, change)


def _exchange(hand_in: HandIn, chance: random.Random, field: str, value: Any) -> None:
    _whole(hand_in)

    def change(document: Any) -> None:
        *above, last = field.split(".")
        answers = document["answers"]
        if not above:
            document[field] = copy.deepcopy(value)
            return
        for name in [*answers] if chance.random() < 0.5 else [chance.choice([*answers])]:
            if last:
                answers[name][last] = copy.deepcopy(value)
            else:
                answers[name] = copy.deepcopy(value)

    hand_in.edit(hand_in.answers, change)


for _field in FIELDS:
    _cases: dict[str, Change] = {
        name: partial(_exchange, field=_field, value=value) for name, value in VALUES.items()
    }
    register_each("answers", f"answers: {_field} is", _cases)


def _place(hand_in: HandIn, chance: random.Random, field: str, value: Any) -> None:
    _whole(hand_in)
    hand_in.edit(hand_in.answers, lambda found: found["answers"].update(exam=PLACE | {field: value}))


_NUMBERS: dict[str, Any] = {
    "0": 0,
    "negative": -1,
    "50": 50,
    "a billion": 10**9,
    "of 5,000 digits": Raw("9" * 5000),
    "of 4,000 digits": Raw("9" * 4000),
    "a fraction": 1.0,
    "true": True,
    "a text": "1",
}
for _field in PLACE:
    register_each(
        "answers",
        f"exam: {_field} is",
        {name: partial(_place, field=_field, value=value) for name, value in _NUMBERS.items()},
    )


@damage("answers", weight=10)
def values_of_any_kind_in_the_answers(hand_in: HandIn, chance: random.Random) -> None:
    _whole(hand_in)

    def change(document: Any) -> None:
        for _ in range(chance.randint(1, 20)):
            _, holder, key = chance.choice(list(places(document)))
            holder[key] = copy.deepcopy(chance.choice(list(VALUES.values())))

    hand_in.edit(hand_in.answers, change)


@damage("answers", weight=5)
def answers_of_any_letter(hand_in: HandIn, chance: random.Random) -> None:
    _whole(hand_in)
    letters = [
        "a",
        "d",
        "z",
        "A",
        "",
        " a",
        "a\x00",
        "ä",
        "a,b",
        "\x1b[2J",
        "'; --",
        "a" * 10_000,
        0,
        None,
        ["a"],
    ]

    def change(document: Any) -> None:
        for entry in document["answers"].values():
            entry["choice"] = chance.choice(letters)

    hand_in.edit(hand_in.answers, change)


@damage("answers", weight=3)
def tens_of_thousands_of_answers(hand_in: HandIn, chance: random.Random) -> None:
    _whole(hand_in)
    name = chance.choice(["99.{}", "{}", "predict:{}", "exam{}", "09.1.{}", "problem{}"])
    more = {name.format(number): {"choice": "a"} for number in range(60_000)}
    hand_in.edit(hand_in.answers, lambda found: found["answers"].update(more))


@damage("answers", weight=4)
def an_answer_called_problem(hand_in: HandIn, chance: random.Random) -> None:
    """A key that the reader of the file uses itself."""
    _whole(hand_in)
    said = chance.choice([{"choice": "a"}, "<script>alert(1)</script>", "\x1b[2J\n  z-sound: 0", ["x"], {}])
    hand_in.edit(hand_in.answers, lambda found: found["answers"].update(problem=said))


@damage("answers", weight=3)
def answers_of_more_than_5_megabytes(hand_in: HandIn, chance: random.Random) -> None:
    hand_in.files[hand_in.answers] = hand_in.bytes_of(hand_in.answers) + b" " * chance.choice(
        [4_990_000, 6_000_000]
    )


@damage("answers", weight=6)
def the_answers_file_has_another_name(hand_in: HandIn, chance: random.Random) -> None:
    name = hand_in.answers
    new = [
        name.upper(),
        f"my {name}",
        f"sub/{name}",
        name.replace(".json", " (1).json"),
        "answers.json",
        f"{name}.txt",
    ]
    new += [f"\x1b[2J\n  z-sound: {name}", f"x{'y' * 200}answers.json", "answers\udcff.json", f".{name}"]
    hand_in.rename(name, chance.choice(new))


@damage("answers", weight=4)
def several_answers_files(hand_in: HandIn, chance: random.Random) -> None:
    for number in range(chance.choice([2, 300])):
        content = chance.choice([hand_in.bytes_of(hand_in.answers), b"{", b"[" * 10_000])
        hand_in.files[f"{number} {hand_in.answers}"] = content


@damage("answers", weight=6)
def the_answers_file_is_none(hand_in: HandIn, chance: random.Random) -> None:
    others: list[Link | Pipe | None] = [
        Link("../../z-sound/" + hand_in.folder + "/" + hand_in.answers),
        Link("/dev/zero"),
        Link("/etc/passwd"),
    ]
    others += [Link(hand_in.answers), Link("nowhere"), Pipe(), None]
    hand_in.files[hand_in.answers] = chance.choice(others)
