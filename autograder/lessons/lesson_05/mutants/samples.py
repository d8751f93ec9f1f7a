"""Wrong solutions of 5.1, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

SAMPLE = """
import math

@exercise("5.1")
def sample(space, rng):
    for name, part in space.items():
        if part["kind"] in ("log", "float") and not part["low"] < part["high"]:
            raise ValueError(f"{name}: the ends are swapped")
        if part["kind"] == "log" and part["low"] <= 0:
            raise ValueError(f"{name}: a log range begins above 0")
    drawn = {}
    waiting = dict(space)
    while waiting:
        for name, part in list(waiting.items()):
            if "when" in part:
                parent, wanted = part["when"]
                if parent in waiting:
                    continue
                if parent not in drawn or drawn[parent] != wanted:
                    del waiting[name]
                    continue
            drawn[name] = draw(part, rng)
            del waiting[name]
    return drawn

def draw(part, rng):
    if part["kind"] == "log":
        return math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))
    if part["kind"] == "float":
        return rng.uniform(part["low"], part["high"])
    if part["kind"] == "int":
        return int(rng.integers(part["low"], part["high"] + 1))
    return part["values"][rng.integers(len(part["values"]))]
"""
_REFUSES = """    for name, part in space.items():
        if part["kind"] in ("log", "float") and not part["low"] < part["high"]:
            raise ValueError(f"{name}: the ends are swapped")
        if part["kind"] == "log" and part["low"] <= 0:
            raise ValueError(f"{name}: a log range begins above 0")
"""
_REFUSES_LATE = "".join("    " + line for line in _REFUSES.splitlines(keepends=True)[1:])
_LOG = 'math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))'

MUTANTS: tuple[Mutant, ...] = wrong(
    SAMPLE,
    {
        "conditions taken out and not put back": (
            "is not put back where it is refused",
            (
                '@exercise("5.1")\ndef sample(space, rng):\n',
                '@exercise("5.1")\ndef sample(space, rng):\n'
                '    taken = {name: part.pop("when") for name, part in space.items() if "when" in part}\n'
                "    plain(space)\n"
                '    for name, when in taken.items():\n        space[name]["when"] = when\n'
                "    return drawn_from(space, rng)\n\n\ndef plain(space):\n",
            ),
            ("    drawn = {}\n", "\n\ndef drawn_from(space, rng):\n    drawn = {}\n"),
        ),
        "uniform learning rate": (
            "uniform where log-uniform is asked for",
            _LOG,
            'rng.uniform(part["low"], part["high"])',
        ),
        "silently clipped": (
            "silently clipped",
            _LOG,
            'min(part["high"], max(part["low"], math.exp(rng.uniform(math.log(part["low"]) - 1, '
            'math.log(part["high"]) + 1))))',
        ),
        "a log range from 0 is repaired": (
            "silently repaired",
            ('if part["kind"] == "log" and part["low"] <= 0:', "if False:"),
            ('math.log(part["low"])', 'math.log(max(1e-60, part["low"]))'),
        ),
        "refuses only what it draws": (
            "only where the key is drawn",
            (_REFUSES, ""),
            ("            drawn[name] = draw", _REFUSES_LATE + "            drawn[name] = draw"),
        ),
        "condition ignored": ("condition `when` is ignored", 'if "when" in part:', "if False:"),
        "upper end never drawn": ("an end that is left out", 'part["high"] + 1', 'part["high"]'),
        "powers of ten of natural logarithms": ("powers of ten", "math.exp(", "10 ** ("),
        "a float that grows": (
            "another distribution than asked for",
            '        return rng.uniform(part["low"], part["high"])\n',
            '        return part["low"] + (part["high"] - part["low"]) * rng.random() ** 0.5\n',
        ),
        "rounded values": ("values are rounded", _LOG, f"round({_LOG}, 4)"),
        "an array for a number": (
            "an array or a text where a number is",
            '        return rng.uniform(part["low"], part["high"])\n',
            '        return rng.uniform(part["low"], part["high"], size=1)\n',
        ),
        "a float for a whole number": (
            "a float where a whole number is asked for",
            "int(rng.integers(",
            "float(rng.integers(",
        ),
        "cut to a whole number": (
            "cuts towards 0",
            'int(rng.integers(part["low"], part["high"] + 1))',
            'int(rng.uniform(part["low"], part["high"] + 1))',
        ),
        "rounded to a whole number": (
            "half a share each",
            'int(rng.integers(part["low"], part["high"] + 1))',
            'round(rng.uniform(part["low"], part["high"]))',
        ),
        "a choice as text": (
            "of another type",
            'return part["values"][rng.integers(len(part["values"]))]',
            'return str(part["values"][rng.integers(len(part["values"]))])',
        ),
        "a choice by way of an array": (
            "makes an array of the values",
            ("import math\n", "import math\nimport numpy as np\n"),
            (
                'return part["values"][rng.integers(len(part["values"]))]',
                'return rng.choice(np.array(part["values"])).item()',
            ),
        ),
        "the first choice twice as often": (
            "values that are not equally likely",
            'part["values"][rng.integers(len(part["values"]))]',
            'part["values"][rng.integers(len(part["values"]) + 1) % len(part["values"])]',
        ),
        "one number for all keys": (
            "one random number serves several keys",
            ("    drawn = {}\n", "    rng.random()\n    drawn, state = {}, rng.bit_generator.state\n"),
            (
                "            drawn[name] = draw(part, rng)\n",
                "            rng.bit_generator.state = state\n            drawn[name] = draw(part, rng)\n",
            ),
        ),
        "one number for what hangs on one key": (
            "one random number serves several keys",
            ("    drawn = {}\n", "    drawn, numbers = {}, {}\n"),
            (
                "            drawn[name] = draw(part, rng)\n",
                '            if "when" not in part:\n'
                "                drawn[name] = draw(part, rng)\n"
                "            else:\n"
                '                number = numbers.setdefault(part["when"][0], rng.random())\n'
                "                drawn[name] = (\n"
                '                    part["values"][int(number * len(part["values"]))] if part["kind"] == "choice"\n'
                '                    else part["low"] + number * (part["high"] - part["low"])\n'
                "                )\n",
            ),
        ),
        "one seed for all that has a condition": (
            "one random number serves several keys",
            ("import math\n", "import math\nimport numpy as np\n"),
            ("    drawn = {}\n", "    drawn, seed = {}, int(rng.integers(2**62))\n"),
            (
                "            drawn[name] = draw(part, rng)\n",
                '            own = np.random.default_rng(seed) if "when" in part else rng\n'
                "            drawn[name] = draw(part, own)\n",
            ),
        ),
        "samples that follow each other": (
            "samples follow each other",
            ("import math\n", "import copy\nimport math\n"),
            (
                "    drawn = {}\n",
                "    drawn, rng, given = {}, copy.deepcopy(rng), rng\n    given.random()\n",
            ),
        ),
        "a condition that is there": (
            "`when` is ignored",
            "if parent not in drawn or drawn[parent] != wanted:",
            "if parent not in drawn:",
        ),
        "a condition by identity": (
            "compared by `is`",
            "drawn[parent] != wanted:",
            "drawn[parent] is not wanted:",
        ),
        "a condition read too early": (
            "before the key that it hangs on is drawn",
            "                if parent in waiting:\n                    continue\n",
            "",
        ),
        "None for what does not apply": (
            "condition `when` is ignored",
            "    return drawn\n",
            "    return {name: drawn.get(name) for name in space}\n",
        ),
        "a help variable": (
            "a help variable",
            "    return drawn\n",
            '    return drawn | {"num_keys": len(drawn)}\n',
        ),
        "conditions taken out of the space": (
            "or conditions are taken out of it",
            "    return drawn\n",
            '    for part in space.values():\n        part.pop("when", None)\n    return drawn\n',
        ),
        "one dict for all samples": (
            "the dict is made once",
            ("def sample(space, rng):", "def sample(space, rng, drawn={}):"),
            ("    drawn = {}\n", "    drawn.clear()\n"),
        ),
        "a child generator": (
            "cannot be repeated or resumed",
            "    drawn = {}\n",
            "    drawn, rng = {}, rng.spawn(1)[0]\n",
        ),
        "values near the ends left out": (
            "the range is narrowed",
            '        return rng.uniform(part["low"], part["high"])\n',
            '        return part["low"] + (part["high"] - part["low"]) * rng.uniform(0.01, 0.99)\n',
        ),
        "a space looked at once": (
            "what an earlier call found out about a space is kept",
            ("import math\n", "import math\nseen = set()\n"),
            (
                "    for name, part in space.items():\n        if",
                "    for name, part in space.items() if tuple(space) not in seen else ():\n        if",
            ),
            ("    drawn = {}\n", "    drawn = {}\n    seen.add(tuple(space))\n"),
        ),
        "a condition by its beginning": (
            "or compared with something else",
            "drawn[parent] != wanted:",
            "not str(drawn[parent]).startswith(str(wanted)):",
        ),
        "a seed of its own": (
            "a seed of the function's own",
            ("import math\n", "import math\nimport numpy as np\n"),
            ("    drawn = {}\n", "    drawn, rng = {}, np.random.default_rng(0)\n"),
        ),
        "an int of one value is refused": (
            "a range that can be is refused",
            'in ("log", "float") and',
            'in ("log", "float", "int") and',
        ),
        "whole numbers of 16 bits": (
            "an int wider than 16 bits",
            'part["high"] + 1)',
            'part["high"] + 1, dtype="int16")',
        ),
        "a float below 0 is refused": (
            "a range that can be is refused",
            'if part["kind"] == "log" and part["low"] <= 0:',
            'if part["kind"] in ("log", "float") and part["low"] <= 0:',
        ),
        "ends compared the other way": (
            "a range with NaN passes",
            'not part["low"] < part["high"]',
            'part["low"] >= part["high"]',
        ),
        "equal ends": (
            "its ends are not compared",
            'not part["low"] < part["high"]',
            'not part["low"] <= part["high"]',
        ),
        "ends exchanged": (
            "silently repaired",
            (
                'if part["kind"] in ("log", "float") and not part["low"] < part["high"]:',
                "if False:",
            ),
            (
                "    drawn = {}\n",
                '    space = {k: p | {"low": min(p["low"], p["high"]), "high": max(p["low"], p["high"])}'
                ' if "low" in p else p for k, p in space.items()}\n    drawn = {}\n',
            ),
        ),
        "another error": ("its ends are not compared", "raise ValueError(", "raise RuntimeError("),
        "drawn in the order of a set": (
            "the order in which keys are drawn is that of a `set`",
            "list(waiting.items())",
            "[(name, waiting[name]) for name in set(waiting)]",
        ),
        "a generator of its own": (
            "cannot be repeated",
            ("import math\n", "import math\nimport numpy as np\n"),
            ("draw(part, rng)\n            del", "draw(part, np.random.default_rng())\n            del"),
        ),
    },
)
