"""Hand-ins that were written to stop a class, or came about so: each puts what it holds into a student's folder."""

from __future__ import annotations

import base64
import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
Put = Callable[
    [Path, str, Notebook], object
]  # into the folder, with the lesson's name, from the release's notebook
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()


def _wrote(change: Callable[[Notebook], object]) -> Put:
    """The release's notebook, changed."""

    def put(folder: Path, slug: str, release: Notebook) -> None:
        notebook = copy.deepcopy(release)
        change(notebook)
        (folder / f"{slug}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")

    return put


def _code(source: str) -> Put:
    return _wrote(lambda notebook: notebook["cells"].append(code(source)))


def _text(source: str, **fields: Any) -> Put:
    cell = {"cell_type": "markdown", "metadata": {}, "source": source, **fields}
    return _wrote(lambda notebook: notebook["cells"].append(cell))


def _beside(name: str, content: str | bytes) -> Put:
    """The release's notebook, and another file."""

    def put(folder: Path, slug: str, release: Notebook) -> None:
        _wrote(lambda notebook: None)(folder, slug, release)
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name.format(slug)).write_bytes(data)

    return put


def _instead(make: Callable[[Path], object]) -> Put:
    """Something else where the notebook should lie."""
    return lambda folder, slug, release: make(folder / f"{slug}.ipynb")


def _dig(folder: Path, depth: int) -> None:
    """Folders within each other, with a name that is longer than any call takes."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("twelve_signs", dir_fd=here)
        below = os.open("twelve_signs", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def code(source: str) -> dict[str, Any]:
    """A cell of code."""
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}


#: Of each kind what stopped a class once, then what is like it.
KNOWN: dict[str, Put] = {
    "bad dedent": _code('if True:\n        x = "exercise"\n   y = 1\n'),
    "digits as an id": _code(f"exercise(0x{'f' * 5_000})"),
    "decimal digits as an id": _code(f"exercise({'1' * 5_000})"),
    "magics": _code("x = 'exercise'\n" + "%time 1\n" * 600),
    "line ends": _code("exercise (" + "\n" * 60_000),
    "spaces in a text": _text("x" + " " * 40_000 + "x"),
    "environments": _text(r"\begin{a}" * 20_000),
    "local names": _code(
        'def exercise():\n    x = "exercise"\n' + "".join(f" a{i}=1\n" for i in range(60_000))
    ),
    "garbage for a time": _beside("timestamp.txt", "the day before yesterday, or so\x00"),
}
FURTHER: dict[str, Put] = {
    "exercises of another lesson": _code(
        '@exercise("1.1")\ndef a():\n    pass\n@exercise("1.2")\ndef b():\n    pass'
    ),
    "a lost attachment": _text("![image.png](attachment:image.png)"),
    "an attachment of another kind": _text(
        "![a](attachment:a)", attachments={"a": {"text/html": "<script>"}}
    ),
    "attachments of odd types": _text("![a](attachment:a)", attachments={"a": [3], "b": {"image/png": {}}}),
    "one image many times": _text(
        "![a](attachment:a)\n" * 9_000, attachments={"a": {"image/png": "A" * 4_000_000}}
    ),
    "more line ends": _code("@exercise(" + "\n" * 60_000 + "%"),
    "signs one after the other": _code("exercise\n" + "-" * 190_000 + "1"),
    "brackets": _code("exercise\n" + "(" * 100_000),
    "braces": _code("exercise\n" + "{" * 99_000 + ":"),
    "a cell of 20 MB": _code("exercise\n" + "a\n" * 10_000_000),
    "10,000 cells": _wrote(lambda notebook: notebook["cells"].extend([code("exercise")] * 10_000)),
    "colours": _code("*" * 200_000),
    "dots": _code("." * 19_000),
    "imports of the library": _code("from course_lib import (\n" * 8_000 + '@exercise("0.1")\ndef f(): pass'),
    "an import of a long name": _code('@exercise("0.1")\ndef f(): import course_lib.' + "a" * 5_000),
    "huge outputs": _wrote(
        lambda notebook: notebook["cells"].append(
            code("1") | {"outputs": [{"output_type": "stream", "name": "stdout", "text": "9" * 30_000_000}]}
        )
    ),
    "deep outputs": _instead(lambda path: path.write_text('{"cells": ' + "[" * 90_000)),
    "deep within the limit": _wrote(
        lambda notebook: notebook["cells"][0].update(source=json.loads("[" * 400 + "]" * 400))
    ),
    "digits of a number": _instead(
        lambda path: path.write_text('{"cells": [], "nbformat": ' + "1" * 9_000 + "}")
    ),
    "NaN": _instead(lambda path: path.write_text('{"cells": [NaN, Infinity, 1e999], "nbformat": 4}')),
    "surrogates": _wrote(lambda notebook: notebook["cells"].append(code("x = '\ud800 exercise'"))),
    "a null byte": _code('@exercise("0.1")\nx = 1\0'),
    "one id for all": _wrote(lambda notebook: [cell.update(id="same") for cell in notebook["cells"]]),
    "no types at all": _wrote(
        lambda notebook: [cell.update({field: {} for field in cell}) for cell in notebook["cells"]]
    ),
    "a lexer of its own": _wrote(
        lambda notebook: notebook["metadata"].update(language_info={"pygments_lexer": "perl", "name": []})
    ),
    "a folder for the notebook": _instead(lambda path: path.mkdir()),
    "a pipe": _instead(lambda path: os.mkfifo(path)),
    "a link": _instead(lambda path: path.symlink_to("/dev/zero")),
    "deep folders": _instead(lambda path: _dig(path.parent, 400)),
    "many notebooks": _instead(
        lambda path: [path.with_name(f"{number}\n.ipynb").write_text("[]") for number in range(300)]
    ),
    "answers: deep": _beside("{}_answers.json", '{"answers": {"a": ' + '{"a":' * 5_000),
    "answers: digits": _beside("{}_answers.json", '{"answers": {"a": {"choice": ' + "1" * 9_000 + "}}}"),
    "answers: large": _beside("{}_answers.json", b" " * 6_000_000),
    "answers: odd types": _beside(
        "{}_answers.json", json.dumps({"answers": {"00.1": {"choice": [{}]}, "problem": {"a": "b" * 9_000}}})
    ),
    "a time before all": _beside("timestamp.txt", "0001-01-01 00:00:00 +9999"),
    "a time of 5 MB": _beside("timestamp.txt", b"2" * 5_000_000),
    "a time of another file": _beside("timestamp.txt", "2027-01-01 00:00 /etc/passwd"),
}
#: Names of folders in `submitted`.
NAMES = (
    "with\nline",
    "with\x1b[2Jcontrol",
    "*",
    "[ab]",
    "?",
    "x" * 250,
    ".hidden",
    "disk is full",
    "b\udcff",
)


def hand_in(course: Path, student: str, slug: str, put: Put, release: Notebook) -> None:
    """Put one into `submitted`."""
    folder = course / "submitted" / student / slug
    folder.mkdir(parents=True)
    put(folder, slug, release)
