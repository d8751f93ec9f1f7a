"""A cell's text as Python reads it, with what is meant for IPython alone left out."""

from __future__ import annotations

import ast
import contextlib
import re
import textwrap
import warnings

MAX_CELL = 200_000  # characters; what a learner writes for an exercise has some thousands
#: What parsing and compiling raise for a text that is no Python.
NO_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
_CELL_MAGIC = re.compile(r"\A(\s*)(%%)")
# None of these can try one character more often than a few times, whatever the text.
_INDENTED = re.compile(r"(?:[ \t]*\n)*[ \t]+\S")
_PROMPT = re.compile(r"^[ \t]*(?:>>>|In \[)", re.MULTILINE)
_MAGIC = re.compile(r"([ \t]*)([%!?].*|%{0,2}[\w*][\w.*]*\?{1,2}[ \t\r]*)")
_ASSIGNED = re.compile(r"([^=#]*=[ \t]*)([%!].*)")
_SIGN = re.compile(r"""\\.?|\"{3}|'{3}|["'#]|[(\[{]|[)\]}]""")


def as_python(source: str) -> str:
    """A cell as Python reads it, line by line: what is meant for IPython (magics, shell lines, questions) becomes a
    comment, with what an assignment needs in its place. Nothing of it would do anything in the sandbox.

    In one pass over the text, whatever it holds; what is no Python otherwise stays so.
    """
    if len(source) > MAX_CELL or parse(source):
        return source
    cell = _CELL_MAGIC.sub(r"\1# \2", source)
    if _INDENTED.match(cell):
        cell = textwrap.dedent(cell)
    if _PROMPT.search(cell):  # pasted from an interpreter
        from IPython.core import inputtransformer2 as ipython

        cell = "".join(ipython.ipython_prompt(ipython.classic_prompt(cell.splitlines(keepends=True))))
    return _without_magics(cell)


def _without_magics(cell: str) -> str:
    lines, quote, depth = cell.split("\n"), "", 0
    goes_on = is_magic = False  # after a backslash at the end of the line before
    for number, line in enumerate(lines):
        if goes_on and is_magic:
            lines[number] = f"# {line}"
        elif not (goes_on or quote or depth):
            lines[number] = _line_without_magic(line)
        is_magic = lines[number] != line
        if is_magic:
            goes_on = line.rstrip("\r").endswith("\\")
        else:
            quote, depth, goes_on = _state_after(line.rstrip("\r"), quote, depth)
    return "\n".join(lines)


def _line_without_magic(line: str) -> str:
    if found := _MAGIC.fullmatch(line):
        return f"{found[1]}pass  # {found[2]}"
    if found := _ASSIGNED.fullmatch(line):
        return f"{found[1]}None  # {found[2]}"
    return line


def _state_after(line: str, quote: str, depth: int) -> tuple[str, int, bool]:
    """Behind a line: the quotes that the text stands in, how many brackets are open, and whether the line goes on."""
    goes_on = False
    for match in _SIGN.finditer(line):
        sign = match[0]
        if sign[0] == "\\":
            goes_on = len(sign) == 1
        elif quote:
            if sign == quote or sign == 3 * quote:  # three of them end it, begin another and end that
                quote = ""
        elif sign == "#":
            break
        elif sign[0] in "\"'":
            quote = sign
        else:
            depth = max(0, depth + (1 if sign in "([{" else -1))
    return (quote if len(quote) == 3 or goes_on else ""), depth, goes_on


def parse(source: str) -> ast.Module | None:
    """The tree of a cell, or None where Python cannot read it."""
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(*NO_PYTHON):
        return ast.parse(source)
    return None


def is_python(source: str) -> bool:
    """Whether Python can read a cell, magics aside."""
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(*NO_PYTHON):
        compile(as_python(source), "<cell>", "exec", dont_inherit=True)
        return True
    return False
