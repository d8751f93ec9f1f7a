"""The last look at a graded release: nothing in the folder may tell what students are asked to find out.

Every file is searched, in every form that a text may hide in by accident: as it stands, inside JSON strings, in base64
(the form in which a bank seals its keys), in UTF-16. What cannot be searched, such as an archive, is a finding itself.
A phrase that the lesson shows to everybody, in the source's plain cells or in the questions, is none.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import html
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.quizzes import Bank

MAX_BYTES = 50_000_000
MIN_CODE = 20  # letters and digits of a line of code; shorter ones are anybody's
MIN_PHRASE = 8
_MAX_QUOTE = 120
_REGIONS = {"SOLUTION": "the solution", "HIDDEN TESTS": "the hidden tests"}
_REGION = re.compile(r"^\s*#+ BEGIN (SOLUTION|HIDDEN TESTS)\b.*?^\s*#+ END \1\b", re.M | re.S)
_MARK = re.compile(r"^\s*#+ BEGIN (SOLUTION|HIDDEN TESTS)\b", re.M)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_ESCAPES = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]")
_BINARY = {
    b"PK\x03\x04": "an archive, whose content cannot be searched",
    b"\x1f\x8b": "an archive, whose content cannot be searched",
    b"BZh": "an archive, whose content cannot be searched",
    b"\xfd7zXZ": "an archive, whose content cannot be searched",
    b"7z\xbc\xaf": "an archive, whose content cannot be searched",
    b"Rar!": "an archive, whose content cannot be searched",
    b"SQLite format 3": "a database",
}


@dataclass(frozen=True, order=True)
class Leak:
    """`what` the `file` (relative to the release's folder) gives away.

    Attributes:
        place: "line 3" of a text, "cell 5, line 3" of a notebook; "" where it stands in no text, or in a coded one.
        quote: what stands there.
    """

    file: str
    what: str
    place: str = ""
    quote: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, {self.place}" if self.place else self.file
        return f"{where}: {self.what}" + (f": “{self.quote}”" if self.quote else "")


def scan(folder: Path, source: Path, bank: Bank | None) -> list[Leak]:
    """What a release gives away; empty when it may go to students.

    Args:
        folder: the release of one lesson.
        source: the instructor's notebook that it was made from.
        bank: the graded questions with their keys, if the lesson has a quiz.
    """
    hidden, shown = _parts(source)
    secrets = {**_code(hidden, shown), **(_sealed(bank, shown) if bank else {})}
    keys = _keys(bank) if bank else []
    found: set[Leak] = set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found |= {
            Leak(name, what, *(_place(path, secret) if secret else ()))
            for what, secret in _in_file(path, name, secrets, keys)
        }
    return sorted(found)


def _place(path: Path, secret: str) -> tuple[str, str]:
    """Where a secret stands that was found in a file, and the words there."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, cell in enumerate(_cells(text), start=1):
        if line := _line(cell, secret):
            return f"cell {number}, line {line[0]}", line[1]
    line = _line(text, secret)
    return (f"line {line[0]}", line[1]) if line else ("in a coded part of it", "")


def _cells(text: str) -> list[str]:
    try:
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def _line(text: str, secret: str) -> tuple[int, str] | None:
    """The number of the line that a secret begins in, and what stands in the lines that it takes."""
    lines = text.splitlines()
    ends = list(itertools.accumulate(len(_squeezed(line)) for line in lines))
    start = "".join(map(_squeezed, lines)).find(secret)
    if start < 0:
        return None
    first, last = bisect.bisect_right(ends, start), bisect.bisect_left(ends, start + len(secret))
    words = " ".join(" ".join(lines[first : last + 1]).split())
    return first + 1, words if len(words) <= _MAX_QUOTE else f"{words[:_MAX_QUOTE]}…"


Finding = tuple[str, str]
"""What is given away, and the letters by which it was found; "" for what stands nowhere in a text."""


def _in_file(
    path: Path, name: str, secrets: dict[str, str], keys: list[re.Pattern[str]]
) -> Iterator[Finding]:
    if path.is_symlink():
        yield "a link, which leads out of the folder", ""
        return
    if not path.is_file():
        return
    if ".ipynb_checkpoints" in path.parts:
        yield "an older version of a notebook, kept by Jupyter", ""
    if "_answers" in path.name:
        yield "somebody's answers", ""
    if path.stat().st_size > MAX_BYTES:
        yield f"larger than {MAX_BYTES // 1_000_000} MB, too large to be searched", ""
        return
    data = path.read_bytes()
    yield from ((what, "") for magic, what in _BINARY.items() if data.startswith(magic))
    for text in _readings(data):
        yield from _in_text(text, secrets, keys)
        yield from ((what, "") for what in _in_document(text))


def _in_text(text: str, secrets: dict[str, str], keys: list[re.Pattern[str]]) -> Iterator[Finding]:
    squeezed = _squeezed(text)
    yield from ((what, secret) for secret, what in secrets.items() if secret in squeezed)
    told = [match for key in keys if (match := key.search(text))]
    if len(told) >= max(2, len(keys) / 2):
        yield f"the right answers of {len(told)} questions", _squeezed(told[0][0])
    for match in _MARK.finditer(text):
        yield f"{_REGIONS[match[1]]}, marked as such", _squeezed(match[0])
    if match := re.search(r"^\s*right\s*=\s*true\b", text, re.M):
        yield "the text of a quiz, with its right options", _squeezed(match[0])


def _in_document(text: str) -> Iterator[str]:
    """What the shape of a JSON document says."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    for table in _tables(document):
        if "sealed" in table:
            yield "keys of a quiz, sealed"
        if {"seed_sha256", "verdict"} & table.keys():
            yield "evidence of a check"
        if isinstance(table.get("answers"), dict):
            yield "somebody's answers"
        if table.get("cell_type") == "code" and (table.get("outputs") or table.get("execution_count")):
            yield "outputs of a cell that was run"


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        match stack.pop():
            case dict() as table:
                yield table
                stack += table.values()
            case list() as items:
                stack += items


def _readings(data: bytes, depth: int = 2) -> Iterator[str]:
    """The texts that a file may be read as."""
    for encoding in ("utf-16", "utf-8") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8",):
        text = data.decode(encoding, "replace")
        yield text
        yield from _strings(text)
        for blob in _BASE64.findall(text) if depth else ():
            try:
                inner = base64.b64decode(
                    blob + "=" * (-len(blob) % 4), altchars=b"-_" if re.search("[-_]", blob) else None
                )
            except (binascii.Error, ValueError):
                continue
            if b"\x00" not in inner[:200]:  # text, as far as one can see
                yield from _readings(inner, depth - 1)


def _strings(text: str) -> Iterator[str]:
    """All strings of a JSON document, and lists of them (a cell's lines) joined."""
    try:
        stack = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while stack:
        match stack.pop():
            case str() as string:
                yield string
            case list() as items if items and all(isinstance(item, str) for item in items):
                yield "".join(items)
            case dict() as table:
                stack += [*table, *table.values()]
            case list() as items:
                stack += items


def _parts(source: Path) -> tuple[list[tuple[str, str]], str]:
    """The lines that the release takes out, each with what it is, and all the rest of the source."""
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    hidden, shown = [], []
    for cell in cells:
        text = "".join(cell["source"])
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", cell.get("id", "a cell"))
        for region in _REGION.finditer(text):
            hidden += [
                (line, f"a line of {_REGIONS[region[1]]} of {name}") for line in region[0].splitlines()[1:-1]
            ]
        shown.append(_REGION.sub("", text))
    return hidden, _squeezed("\n".join(shown))


def _code(hidden: list[tuple[str, str]], shown: str) -> dict[str, str]:
    lines = ((_squeezed(line), what) for line, what in hidden)
    return {line: what for line, what in lines if len(line) >= MIN_CODE and line not in shown}


def _sealed(bank: Bank, shown: str) -> dict[str, str]:
    """What the bank seals: reasons, always; names of mistakes, where the lesson does not speak of them to everybody."""
    asked = _squeezed(" ".join(text for question in bank.questions for text in question.shown))
    found: dict[str, str] = {}
    for question in bank.questions:
        found |= {_squeezed(reason): f"a reason of question {question.id}" for reason in question.reasons}
        for mistake in question.mistakes:
            secret = _squeezed(mistake)
            if secret not in shown and secret not in asked:
                found.setdefault(secret, f"a mistake of question {question.id}")
    return {secret: what for secret, what in found.items() if len(secret) >= MIN_PHRASE}


def _keys(bank: Bank) -> list[re.Pattern[str]]:
    """For each question, what finds its id with the right letter next to it."""
    between = r"\W{1,6}(?:(?:is|key|right|answer|choice)\W{1,4}){0,2}"
    return [
        re.compile(rf"(?<!\d){re.escape(question.id)}{between}{question.key}\b", re.IGNORECASE)
        for question in bank.questions
    ]


def _squeezed(text: str) -> str:
    """Letters and digits alone, so that no layout, escape or quoting hides a phrase."""
    text = _ESCAPES.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", html.unescape(text))
    return re.sub(r"[\W_]+", "", text.casefold())
