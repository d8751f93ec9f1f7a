"""What may stand in a cell: code that is none, code that is long or deep, and markdown that takes a parser long."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from tests.fuzz.damage import Change, damage, register_each
from tests.fuzz.hand_in import HandIn

_DEF = "def speedup(a, b):\n"
#: Put into a cell with the word `exercise`, where the grader has reason to parse it. `%d`: a number that differs.
CODE: dict[str, str] = {
    "a bad dedent": "if True:\n        x = 1\n    y = 2\n",
    "a bad indent": "x = 1\n    y = 2\n",
    "tabs and spaces": "if True:\n\tx = 1\n        y = 2\n",
    "an open string": 'x = "never closed\n',
    "an open block of text": 'x = """never closed\n',
    "an open bracket": "x = ([{(\n",
    "a lone closing bracket": ")]}\n",
    "a null character": "x = 1\x00\n",
    "control characters": "x = '\x1b[2J\x07\x08\x7f\x9b'\n\x0c\x1b]0;owned\x07\n",
    "half a character": "x = '\ud800'\n",
    "text that turns around": "x = '\u202e\u2066 z-sound: 0 \u2069'\n",
    "line ends of every kind": "x = 1\r\ny = 2\rz = 3\x0b\x0c\x1c\x85\u2028\u2029w = 4\n",
    "a declared encoding": "# -*- coding: utf-7 -*-\nx = 1\n",
    "an unknown encoding": "# -*- coding: nothing-of-the-kind -*-\nx = 1\n",
    "a byte order mark": "\ufeffx = 1\n",
    "Python 2": "print 'hello'\nexec 'x = 1'\nraise E, 'x'\n",
    "another language": "#include <stdio.h>\nint main() { return 0; }\n",
    "a merge conflict": "<<<<<<< mine\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n",
    "two byte letters": "ﬁ = 1\n𝐱 = 2\nдлина = 3\n",
    "an id of 5,000 digits": "@exercise(" + "9" * 5000 + ")\n" + _DEF + "    return a / b\n",
    "an id as a text of 5,000 digits": "@exercise('" + "9" * 5000 + ".1')\n" + _DEF + "    return a / b\n",
    "an id in hexadecimal": "@exercise(0x" + "f" * 5000 + ")\n" + _DEF + "    return a / b\n",
    "an id of bytes": "@exercise(b'\\xff')\n" + _DEF + "    return a / b\n",
    "an infinite id": "@exercise(1e999)\n" + _DEF + "    return a / b\n",
    "an id that is no text": "@exercise(...)\n@exercise(None)\n@exercise(1j)\n" + _DEF + "    return a / b\n",
    "an id with control characters": "@exercise('0.1\\x1b[2J\\n  z-sound: 0')\n"
    + _DEF
    + "    return a / b\n",
    "an exercise of another lesson": "@exercise('1.1')\n" + _DEF + "    return a / b\n",
    "an exercise that is not there": "@exercise('99.9')\n" + _DEF + "    return a / b\n",
    "6,000 ids": "".join(f"exercise('{number}.1')\n" for number in range(6000)),
    "600 magics": "%time x = 1\n" * 600,
    "6,000 magics in a block": "if True:\n" + "    %timeit exercise\n" * 6000,
    "600 shell lines": "!echo exercise $(hostname)\n" * 600,
    "600 questions": "exercise??\n" * 600,
    "a cell magic": "%%bash\nrm -rf exercise\n",
    "a cell magic of 100,000 signs": "%" * 100_000 + " exercise\n",
    "magics that never end": "%time (\n" * 3000,
    "60,000 line ends after exercise": "exercise (" + "\n" * 60_000,
    "60,000 spaces after exercise": "@exercise" + " " * 60_000 + "(\n",
    "60,000 line ends before exercise": "\n" * 60_000 + "@exercise(",
    "60,000 blanks and signs": " \t@exercise( '0.1'\n" * 8000 + "(\n",
    "20,000 open calls": "exercise(" * 20_000,
    "60,000 local names": "def f():\n" + "".join(f"    a{n} = {n}\n" for n in range(60_000)),
    "60,000 names read": "def f():\n    return [" + ", ".join(f"a{n}" for n in range(60_000)) + "]\n",
    "20,000 functions": "".join(f"def f{n}(): return exercise\n" for n in range(20_000)),
    "5,000 decorators": "@exercise\n" * 5000 + "def f(): pass\n",
    "5,000 nested functions": "".join(" " * n + f"def f{n}():\n" for n in range(90)) + " " * 90 + "pass\n",
    "brackets 150 deep": "x = " + "(" * 150 + ")" * 150 + "\n",
    "brackets 100,000 deep": "x = " + "[" * 100_000 + "]" * 100_000 + "\n",
    "100,000 signs": "x = " + "-" * 100_000 + "1\n",
    "3,000 signs": "x = " + "-" * 3000 + "1\n",
    "a sum of 50,000": "x = " + "1+" * 50_000 + "1\n",
    "a sum of 2,500": "x = " + "1+" * 2500 + "1\n",
    "50,000 attributes": "x = exercise" + ".a" * 50_000 + "\n",
    "2,500 attributes": "x = exercise" + ".a" * 2500 + "\n",
    "a thousand lambdas": "x = " + "lambda: " * 1000 + "1\n",
    "a thousand comparisons": "x = " + "1 if exercise else " * 1000 + "1\n",
    "a list of 300,000": "x = [" + "1," * 300_000 + "]\n",
    "a table of 60,000": "x = {" + "".join(f"'{n}': exercise," for n in range(60_000)) + "}\n",
    "a line of 5 MB": "x = '" + "exercise " * 550_000 + "'\n",
    "5 MB of lines": "# exercise\n" * 450_000,
    "100,000 backslashes": "x = '" + "\\" * 100_000 + "'\n",
    "100,000 joined lines": "x = 1 " + "\\\n" * 100_000 + "\n",
    "a nested f-text": "x = " + "f'{" * 60 + "1" + "}'" * 60 + "\n",
    "20,000 f-texts": "x = f'{exercise}' " * 20_000 + "\n",
    "30,000 open imports": "from autograder.common import (\n" * 30_000,
    "30,000 imports": "".join(f"import a{n}\nfrom course_lib import b{n}\n" for n in range(15_000)),
    "a number of a million digits": "x = " + "9" * 1_000_000 + "\n",
    "a power that never ends": "x = 9 ** 9 ** 9 ** 9\n",
    "a text that never ends": "x = 'a' * (10 ** 12)\n",
    "an error with control characters": "raise ValueError('\\x1b[2J\\x9b\\x00\\n  z-sound: error: no grade')\n",
    "an error of 10 MB": "raise ValueError('x' * 10_000_000)\n",
    "an error that has no text": "class E(Exception):\n    def __str__(self): raise self\nraise E\n",
    "the end of the process": "import os\nos._exit(0)\n",
    "a loop without end": "while True: pass\n",
}
MARKDOWN: dict[str, str] = {
    "40,000 spaces": "a" + " " * 40_000 + "b",
    "40,000 spaces at line ends": (" " * 400 + "\n") * 100,
    "20,000 begins": r"\begin{a}" * 20_000,
    "20,000 begins and ends": r"\begin{a}x\end{a}" * 20_000,
    **{
        f"{name}, 50,000 of it": sign * 50_000
        for name, sign in {
            "open brackets": "[",
            "open links": "[a](",
            "open pictures": "![a](<",
            "stars": "*",
            "stars and letters": "*a **b ",
            "lines below": "_a",
            "open tags": "<a ",
            "open comments": "<!--",
            "open declarations": "<!A ",
            "open instructions": "<?",
            "marks of code": "`",
            "marks of code, growing": "`a``b",
            "ampersands": "&#x",
            "dollars": "$",
            "double dollars": "$$a",
            "backslashes": "\\",
            "open formulas": r"\(\[",
            "exclamation marks": "!",
            "waves": "~~a~",
            "quotes": ">",
            "quotes in lines": "> a\n",
            "footnotes": "[^a]: b\n",
            "references": "[a]: b 'c\n",
            "bars": "|a",
            "rows of a table": "|a|b|\n|-|-|\n",
            "lists": "- ",
            "lines of a list": "- a\n",
            "heads": "#",
            "underlines": "a\n=\n",
            "addresses": "http://a.b ",
            "mails": "a@b.",
            "line ends": "\n",
            "carriage returns": "\r",
            "tabs": "\t",
            "null characters": "\x00",
            "attachments": "![](attachment:a.png)",
        }.items()
    },
    "a list 500 deep": "".join("  " * n + "- a\n" for n in range(500)),
    "quotes 2,000 deep": "".join("> " * n + "a\n" for n in range(0, 2000, 20)),
    "a table of 2,000 columns": "|"
    + "a|" * 2000
    + "\n|"
    + "-|" * 2000
    + "\n"
    + ("|" + "b|" * 2000 + "\n") * 20,
    "a script": "<script>alert(document.cookie)</script><img src=x onerror=alert(1)>",
    "an address that runs": "[a](javascript:alert(1)) ![b](data:text/html,<script>1</script>)",
    "an address that is none": "[a](http://[::1) [b](http://a:b:c) [c](//\ud800)",
    "control characters": "\x1b[2J\x9b31m\x00\x07\u202e",
    "half a character": "\ud800",
}
_SOUP = "\\[]()<>*_`~$&!#|>-+:\"'^{}=\n\t a0."
_WORDS = (
    "exercise", "(", ")", "[", "]", "{", "}", ":", "\n", "    ", "def", "class", "lambda", "x", "=", "@", "'", '"""',
    "%", "!", "?", "#", "1", "9e9", ".", ",", "*", "if", "else", "for", "in", "match", "case", "_", "async", "yield",
    "f'", "\\", ";", "->", ":=", "return", "import", "from", "as", "try", "except", "\t", "\x0c",
)  # fmt: skip


def _code(hand_in: HandIn, chance: random.Random, text: str) -> None:
    """Into an exercise's own cell, before or behind its code or in its place, or into a cell of its own."""

    def change(notebook: Any) -> None:
        cells = notebook["cells"]
        own = [cell for cell in cells if "@exercise" in "".join(cell.get("source", ""))]
        how = chance.choice(["before", "behind", "instead", "apart"])
        if how == "apart" or not own:
            new = {
                "cell_type": "code",
                "metadata": {},
                "source": f"# an exercise of mine\n{text}",
                "outputs": [],
            }
            cells.insert(chance.randint(0, len(cells)), new | {"execution_count": None})
            return
        cell = chance.choice(own)
        source = "".join(cell["source"])
        cell["source"] = {"before": f"{text}\n{source}", "behind": f"{source}\n{text}", "instead": text}[how]

    hand_in.edit(hand_in.notebook, change)


def _markdown(hand_in: HandIn, chance: random.Random, text: str) -> None:
    """Into a cell that is there, which may be one that nbgrader knows, or into a new one."""

    def change(notebook: Any) -> None:
        cells = [cell for cell in notebook["cells"] if cell.get("cell_type") == "markdown"]
        if not cells or chance.random() < 0.5:
            cells = [{"cell_type": "markdown", "metadata": {}}]
            notebook["cells"].insert(chance.randint(0, len(notebook["cells"])), cells[0])
        chance.choice(cells)["source"] = text

    hand_in.edit(hand_in.notebook, change)


_OF_CODE: dict[str, Change] = {name: partial(_code, text=text) for name, text in CODE.items()}
_OF_TEXT: dict[str, Change] = {name: partial(_markdown, text=text) for name, text in MARKDOWN.items()}
# More than once, for where it stands is left to chance.
register_each("text", "code", _OF_CODE, weight=4)
register_each("text", "markdown", _OF_TEXT, weight=3)


@damage("text", weight=60)
def markdown_of_any_signs(hand_in: HandIn, chance: random.Random) -> None:
    signs = chance.sample(_SOUP, chance.randint(1, 4)) if chance.random() < 0.7 else list(_SOUP)
    _markdown(hand_in, chance, "".join(chance.choices(signs, k=chance.choice([300, 5000, 40_000]))))


@damage("text", weight=60)
def code_of_any_words(hand_in: HandIn, chance: random.Random) -> None:
    words = chance.sample(_WORDS, chance.randint(2, 5)) if chance.random() < 0.7 else list(_WORDS)
    between = chance.choice(["", " "])
    _code(hand_in, chance, between.join(chance.choices(words, k=chance.choice([30, 3000, 20_000]))))


@damage("text", weight=60)
def one_letter_of_the_code_is_another(hand_in: HandIn, chance: random.Random) -> None:
    def change(notebook: Any) -> None:
        own = [cell for cell in notebook["cells"] if "@exercise" in "".join(cell.get("source", ""))]
        for cell in own:
            source = list("".join(cell["source"]))
            for _ in range(chance.choice([1, 1, 1, 5, 50])):
                source[chance.randrange(len(source))] = chance.choice(_WORDS)
            cell["source"] = "".join(source)

    hand_in.edit(hand_in.notebook, change)


@damage("text", weight=20)
def one_line_of_the_code_is_indented(hand_in: HandIn, chance: random.Random) -> None:
    def change(notebook: Any) -> None:
        for cell in notebook["cells"]:
            if cell.get("cell_type") == "code" and "exercise" in (text := "".join(cell.get("source", ""))):
                lines = text.splitlines(keepends=True)
                lines[chance.randrange(len(lines))] = (
                    " " * chance.randint(1, 9) + chance.choice(lines).lstrip()
                )
                cell["source"] = lines

    hand_in.edit(hand_in.notebook, change)
