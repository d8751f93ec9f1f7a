"""How anything is said on a terminal: without control characters, and with lines that are ours to begin."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from typing import TextIO

from autograder.common import MARK, printable


def say(text: str, file: TextIO | None = None) -> None:
    """Print, at once, with the escape of whatever would act on a terminal. To stdout by default."""
    print(printable(text), file=file or sys.stdout, flush=True)


def folded(text: str, columns: int = 0) -> str:
    """The text with no line longer than the terminal is wide, and with a mark before each continued one: the window
    would break a line anywhere, and what a learner wrote could stand at the edge like a line of ours.

    Args:
        columns: of the window; by default of the one that stdout is, and where it is none the text stays.
    """
    if not columns:
        columns = shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else 0
    if columns <= 2 * len(MARK):
        return text
    return "\n".join(part for line in text.split("\n") for part in _parts(line, columns))


def _parts(line: str, columns: int) -> list[str]:
    parts = []
    while (most := _num_fitting(line, columns)) < len(line):
        end = line.rfind(" ", most // 2, most + 1)
        end = most if end < 0 else end
        parts.append(line[:end].rstrip())
        line = MARK + line[end:].lstrip()
    return [*parts, line]


def _num_fitting(line: str, columns: int) -> int:
    """How many characters of a line fit."""
    for number, char in enumerate(line):
        columns -= 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if columns < 0:
            return number
    return len(line)
