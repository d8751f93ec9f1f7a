"""Wrong solutions of 5.1 that are right in the spaces that one thinks of first."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_05.mutants.samples import SAMPLE

_VALUE = 'return part["values"][rng.integers(len(part["values"]))]'

MUTANTS: tuple[Mutant, ...] = wrong(
    SAMPLE,
    {
        "whole numbers of 32 bits": (
            "wider than 16 bits",
            'part["high"] + 1)',
            'part["high"] + 1, dtype="int32")',
        ),
        "whole numbers between whole ends": (
            "values are rounded, or drawn from a grid",
            '    if part["kind"] == "float":\n',
            '    if part["kind"] == "float" and isinstance(part["low"], int) and part["high"] > part["low"] + 1:\n'
            '        return float(rng.integers(part["low"], part["high"]))\n'
            '    if part["kind"] == "float":\n',
        ),
        "a choice by way of a dict": (
            "or for keys of a dict",
            _VALUE,
            'values = list(dict.fromkeys(part["values"]))\n    return values[rng.integers(len(values))]',
        ),
        "never more than eight choices": (
            "an end that is left out",
            _VALUE,
            'return part["values"][rng.integers(min(8, len(part["values"])))]',
        ),
        "a pair for either of two": (
            "with something else",
            "drawn[parent] != wanted:",
            "drawn[parent] not in (wanted if isinstance(wanted, tuple) else [wanted]):",
        ),
        "one key for each that others hang on": (
            "with something else",
            (
                "    drawn = {}\n",
                '    drawn, last = {}, {p["when"][0]: n for n, p in space.items() if "when" in p}\n',
            ),
            ("drawn[parent] != wanted:", "drawn[parent] != wanted or last[parent] != name:"),
        ),
        "a value that is never drawn": (
            "a space that can be is refused",
            "    drawn = {}\n",
            "    drawn = {}\n    for part in space.values():\n"
            '        if "values" in space.get(part.get("when", [0])[0], ()):\n'
            '            space[part["when"][0]]["values"].index(part["when"][1])\n',
        ),
        "a space without a key": (
            "a space that can be is refused",
            "    drawn = {}\n",
            '    drawn = {}\n    if not space:\n        raise ValueError("nothing to draw")\n',
        ),
        "ends that are nearly equal": (
            "a space that can be is refused",
            'not part["low"] < part["high"]',
            '(math.isclose(part["low"], part["high"]) or not part["low"] < part["high"])',
        ),
        "one draw for each part": (
            "or a part that two names share is drawn once",
            ("    drawn = {}\n", "    drawn, of_part = {}, {}\n"),
            ("drawn[name] = draw(part, rng)", "drawn[name] = of_part.setdefault(id(part), draw(part, rng))"),
        ),
        "one number for two keys, from both ends": (
            "though not in a line",
            ("    drawn = {}\n", "    drawn, first = {}, rng.random()\n"),
            ("draw(part, rng)\n            del", "draw(part, rng, first)\n            del"),
            ("def draw(part, rng):", "def draw(part, rng, first):"),
            (
                '        return rng.uniform(part["low"], part["high"])\n',
                '        return part["low"] + (part["high"] - part["low"]) * abs(2 * first - 1)\n',
            ),
            (
                'math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))',
                'part["low"] * (part["high"] / part["low"]) ** first',
            ),
        ),
    },
)
