"""Every field of nbformat and of nbgrader's mark holds every type, huge and deep values too."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.fuzz.damage import Change, damage, register_each
from tests.fuzz.hand_in import EXAMPLE, HandIn, Raw

#: By type. A depth that a reader of JSON takes may be too deep for all that comes after.
VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "a whole number": 7,
    "a negative number": -3,
    "a fraction": 2.5,
    "a number of 5,000 digits": Raw("9" * 5000),
    "infinite": Raw("1e999"),
    "NaN": Raw("NaN"),
    "a text": "text",
    "a long text": "x" * 1_000_000,
    "control characters": "\x00\x1b[2J\x1b]0;title\x07\x08\x7f\x9b31m\r\n\u202e\u2028",
    "half a character": "\ud800",
    "a list": [],
    "a list of lists": [[None, [3]], {"a": []}],
    "an object": {},
    "an object of objects": {"a": {"b": None}, "": 3, "__class__": "x", "a" * 300: []},
    "90 deep": Raw("[" * 90 + "]" * 90),
    "900 deep": Raw('{"a":' * 900 + "1" + "}" * 900),
    "100,000 deep": Raw("[" * 100_000 + "]" * 100_000),
}
_WIDE = 50_000


def places(value: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each field's name, as `cells.metadata.tags`, with what holds it and its key or index there."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, held in pairs:
        own = f"{name}.{key}".strip(".") if isinstance(value, dict) else f"{name}[]"
        yield own, value, key
        if isinstance(held, dict | list):
            yield from places(held, own)


FIELDS = sorted({name for name, _, _ in places(EXAMPLE)})


def _exchange(hand_in: HandIn, chance: random.Random, field: str, value: Any) -> None:
    def change(notebook: Any) -> None:
        found = [(holder, key) for name, holder, key in places(notebook) if name == field]
        for holder, key in found if chance.random() < 0.5 else found[-1:]:
            holder[key] = copy.deepcopy(value)  # what follows may change it in place

    hand_in.edit(hand_in.notebook, change)


def _without(hand_in: HandIn, chance: random.Random, field: str) -> None:
    def change(notebook: Any) -> None:
        for holder, key in [
            (h, k) for name, h, k in places(notebook) if name == field and isinstance(h, dict)
        ]:
            holder.pop(key)

    hand_in.edit(hand_in.notebook, change)


for _field in FIELDS:
    _cases: dict[str, Change] = {
        name: partial(_exchange, field=_field, value=value) for name, value in VALUES.items()
    }
    register_each("field", f"{_field} is", _cases)
register_each("field", "without", {name: partial(_without, field=name) for name in FIELDS if name[-1] != "]"})


@damage("field", weight=40)
def two_fields_exchanged(hand_in: HandIn, chance: random.Random) -> None:
    def change(notebook: Any) -> None:
        (_, one, a), (_, other, b) = chance.sample(list(places(notebook)), 2)
        one[a], other[b] = other[b], one[a]

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=20)
def values_of_any_kind_anywhere(hand_in: HandIn, chance: random.Random) -> None:
    def change(notebook: Any) -> None:
        for _ in range(chance.randint(2, 40)):
            _, holder, key = chance.choice(list(places(notebook)))
            holder[key] = copy.deepcopy(chance.choice(list(VALUES.values())))

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=5)
def cells_in_any_order_some_twice_some_gone(hand_in: HandIn, chance: random.Random) -> None:
    def change(notebook: Any) -> None:
        cells = notebook.get("cells") if isinstance(notebook, dict) else None
        if isinstance(cells, list) and cells:
            notebook["cells"] = [chance.choice(cells) for _ in range(chance.randint(0, 2 * len(cells)))]

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=3)
def tens_of_thousands_of_cells(hand_in: HandIn, chance: random.Random) -> None:
    cell = {
        "cell_type": chance.choice(["code", "markdown", "raw", "?"]),
        "metadata": {},
        "source": "# exercise",
    }
    hand_in.edit(hand_in.notebook, lambda found: found | {"cells": [*found["cells"], *[cell] * _WIDE]})


@damage("field", weight=3)
def tens_of_thousands_of_keys(hand_in: HandIn, chance: random.Random) -> None:
    def change(notebook: Any) -> None:
        objects = [notebook, *(held[key] for _, held, key in places(notebook) if isinstance(held[key], dict))]
        chance.choice(objects).update({f"key {number}": number for number in range(_WIDE)})

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=3)
def a_source_of_tens_of_thousands_of_lines(hand_in: HandIn, chance: random.Random) -> None:
    line = chance.choice(["\n", "x = 1\n", "", "# exercise\n", "\r\n"])

    def change(notebook: Any) -> None:
        chance.choice(notebook["cells"])["source"] = [line] * _WIDE

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=3)
def outputs_of_twenty_megabytes(hand_in: HandIn, chance: random.Random) -> None:
    text = chance.choice(["9", "<b>", "\x1b[31m", "é"]) * (20_000_000 // 3)
    stream = {"output_type": "stream", "name": "stdout", "text": text}
    shown = {"output_type": "display_data", "data": {"text/html": text}, "metadata": {}}

    def change(notebook: Any) -> None:
        cells = [cell for cell in notebook["cells"] if cell.get("cell_type") == "code"]
        chance.choice(cells)["outputs"] = [chance.choice([stream, shown])]

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=2)
def a_json_within_json(hand_in: HandIn, chance: random.Random) -> None:
    """The notebook as a text within a notebook, several times over."""
    from tests.fuzz.hand_in import dumped

    def change(notebook: Any) -> None:
        text = dumped(notebook)
        for _ in range(chance.randint(1, 4)):
            text = dumped({"cells": [{"cell_type": "code", "source": text}]})
        notebook["cells"][chance.randrange(len(notebook["cells"]))]["source"] = text

    hand_in.edit(hand_in.notebook, change)


@damage("field", weight=4)
def an_older_or_a_later_format(hand_in: HandIn, chance: random.Random) -> None:
    version = chance.choice([0, 1, 2, 3, 4, 5, 99, -1])

    def change(notebook: Any) -> Any:
        cells = [cell | {"input": cell.get("source"), "level": 1} for cell in notebook["cells"]]
        sheets = {
            "nbformat": version,
            "metadata": {},
            "worksheets": [{"cells": cells}] * chance.randint(0, 3),
        }
        return sheets if chance.random() < 0.5 else notebook | {"nbformat": version}

    hand_in.edit(hand_in.notebook, change)
