"""A cell before it runs: as Python reads it, whether it is still the stub, and where it is no Python.

It is read apart (`autograder.common.apart`): no text keeps the engine busy or ends it.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from autograder.common import CELL_SECONDS, ApartError, Reason, run_apart
from autograder.engine.source.marks import is_stub
from autograder.engine.source.python import MAX_CELL, NO_PYTHON, as_python

WIDTH = 100  # characters of a line that are shown
_MAX_MESSAGE = 200
_NEWLINE = re.compile(r"\r\n|\r|\n")
_TOO_DEEP = "an expression that is nested deeper than Python can read"
_ELSEWHERE = (
    "a bracket, a quote or a colon that is missing in this line or in the one above, or a word too many"
)
#: What Python's words about a mistake begin with or hold, and the mistake that was really made.
_LIKELY = {
    "expected ':'": "the line that opens a block lacks the colon at its end",
    "expected an indented block": "what belongs to the line above is not indented, or is missing",
    "unexpected indent": "the line is indented more than the one above, which opens no block",
    "unindent does not match": "the line is indented by another number of spaces than any block it could belong to",
    "inconsistent use of tabs": "some lines are indented with tabs and others with spaces: take spaces for all",
    "was never closed": "the bracket that is marked has no partner",
    "unmatched": "the bracket that is marked has no partner",
    "does not match opening": "two brackets of different kinds were taken for a pair",
    "unterminated": "a quote that ends the text is missing",
    "never closed": "the bracket that is marked has no partner",
    "perhaps you forgot a comma": "a comma or an operator is missing between the two things that are marked",
    "invalid character": "a sign that looks like code and is none, as word processors and web pages write quotes",
    "invalid non-printable": "an invisible sign that came along when the code was copied: delete and type it anew",
    "cannot assign": "`=` stands where `==` was meant, or on its left stands what cannot hold a value",
    "outside": "the line has slipped out of the function or loop that it belongs to: look at its indentation",
    "null byte": "a part of a file that is no text came along",
    "surrogates": "half of a sign, as a damaged or wrongly decoded file holds",
    "digits": "a number that was meant to be worked out, as `10**5000`, is written out",
    "nested": "brackets, signs or calls that were written by a program, or pasted many times over",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What reading a cell came to.

    Attributes:
        source: as Python reads it.
        is_stub: whether it is as it came.
        mistake: why Python cannot read it; None where it can.
    """

    source: str
    is_stub: bool = False
    mistake: Reason | None = None


def read_cell(source: str, entry: str) -> Cell:
    """Read a cell that should define `entry`. Whatever its text is, this returns."""
    if len(source) > MAX_CELL:
        return Cell(
            source=source,
            mistake=Reason(
                expected=f"a cell of at most {MAX_CELL:,} characters",
                got=f"{len(source):,} characters",
                likely="data or an output was pasted into the cell",
                next="keep what the exercise asks for, and take the rest out",
            ),
        )
    try:
        found = run_apart(_read, source, entry, seconds=CELL_SECONDS)
    except ApartError as why:
        return Cell(
            source=source,
            mistake=Reason(
                expected="code that Python can read",
                got=f"a cell of which reading {why}",
                likely="code that was written by a program, or pasted many times over",
                next="write what the exercise asks for by hand, in some tens of lines",
            ),
        )
    mistake = Reason(**found["mistake"]) if found["mistake"] else None
    return Cell(source=found["source"], is_stub=found["is_stub"], mistake=mistake)


def _read(source: str, entry: str) -> dict[str, object]:
    python = as_python(source)
    mistake = _mistake_in(python)
    return {"source": python, "is_stub": not mistake and is_stub(python, entry), "mistake": mistake}


def _mistake_in(source: str) -> dict[str, str] | None:
    """The parts of a `Reason`; None for Python."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(source, "<cell>", "exec", dont_inherit=True)
    except NO_PYTHON as error:
        what, line, first, last = _place(error, source)
        shown = _shown(source, line, first, last)
        likely = next((says for words, says in _LIKELY.items() if words in what.lower()), _ELSEWHERE)
        return {
            "expected": "code that Python can read",
            "got": f"{what}, in line {line} of the cell:\n{shown}",
            "likely": likely,
            "next": "mend the line that is marked, or the one above it, and run the cell; then check again",
        }
    return None


def _place(error: BaseException, source: str) -> tuple[str, int, int, int]:
    """What is wrong in Python's words, and where: line, first column and the one behind the last, from 1."""
    name, lines = type(error).__name__, _NEWLINE.split(source)
    if isinstance(error, UnicodeEncodeError):
        line, column = _line_and_column(source, error.start)
        return "surrogates, which are no text", line, column, column + 1
    if "\0" in source:
        line, column = _line_and_column(source, source.index("\0"))
        return "a null byte, which is no text", line, column, column + 1
    if isinstance(error, SyntaxError) and error.lineno:
        first = error.offset or 1
        is_one_line = error.end_lineno in (None, error.lineno)
        last = (error.end_offset or 0) if is_one_line else len(lines[error.lineno - 1]) + 1
        if isinstance(error, IndentationError) and error.lineno <= len(
            lines
        ):  # where the line begins, not its end
            text = lines[error.lineno - 1]
            first, last = len(text) - len(text.lstrip()) + 1, 0
        return f"{name}: {error.msg.split(';')[0][:_MAX_MESSAGE]}", error.lineno, first, max(last, first + 1)
    longest = max(range(len(lines)), key=lambda index: len(lines[index]))
    what = _TOO_DEEP if isinstance(error, RecursionError | MemoryError) else f"{name}: {error}"
    return what[:_MAX_MESSAGE], longest + 1, 1, 2


def _line_and_column(source: str, index: int) -> tuple[int, int]:
    before = _NEWLINE.split(source[:index])
    return len(before), len(before[-1]) + 1


def _shown(source: str, line: int, first: int, last: int) -> str:
    """The line, and under it carets at the place: `Reason` marks both as quoted, and keeps their spaces."""
    lines = _NEWLINE.split(source)
    text = lines[line - 1] if line <= len(lines) else ""
    first = min(max(first, 1), len(text) + 1)
    begin = max(0, first - 1 - WIDTH // 2) if len(text) > WIDTH else 0
    cut = text[begin : begin + WIDTH]
    signs = "".join(sign if sign.isprintable() else " " for sign in cut)
    before, after = "…" * bool(begin), "…" * (begin + WIDTH < len(text))
    place = first - 1 - begin
    carets = " " * (len(before) + place) + "^" * max(1, min(last - first, WIDTH - place))
    return f"{before}{signs}{after}\n{carets}"
