"""Finds the exercise cells of a notebook, whatever was moved, copied or renamed around them."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.common import ApartError, run_apart
from course_lib.base import UserError

MAX_CELL = 200_000  # characters; what a learner writes for an exercise has some thousands
#: What parsing and compiling raise for a text that is no Python.
NO_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)
_CELL_MAGIC = re.compile(r"\A(\s*)(%%)")
# None of these can try one character more often than a few times, whatever the text.
_MARK = re.compile(
    r"""^[ \t]*@(?:autograder\.)?exercise\([ \t]*(['"])(?P<id>\d{1,4}\.\d{1,4})\1[ \t]*\)""", re.MULTILINE
)
_INDENTED = re.compile(r"(?:[ \t]*\n)*[ \t]+\S")
_PROMPT = re.compile(r"^[ \t]*(?:>>>|In \[)", re.MULTILINE)
_MAGIC = re.compile(r"([ \t]*)([%!?].*|%{0,2}[\w*][\w.*]*\?{1,2}[ \t\r]*)")
_ASSIGNED = re.compile(r"([^=#]*=[ \t]*)([%!].*)")
_SIGN = re.compile(r"""\\.?|\"{3}|'{3}|["'#]|[(\[{]|[)\]}]""")


def read_notebook(path: Path) -> dict[str, Any]:
    """The notebook as nbformat's dict. Raises `UserError` for what is not one."""
    try:
        notebook = json.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a notebook, for it is not valid JSON ({error})") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UserError(f"{path}: not a notebook of format 4; open and save it in JupyterLab once")
    return notebook


def sources_in(path: Path) -> dict[str, str]:
    """`exercise_sources` of a notebook's file, read apart. Raises `UserError` for what cannot be read as one."""
    try:
        found: list[tuple[str, list[str]]] = apart_or_by_text(_sources_in, str(path))
    except ApartError as why:
        raise UserError(
            f"{path}: not read, for that {why}; hand in a notebook as JupyterLab saves it"
        ) from None
    return {mark: source for source, marks in found for mark in marks}


def apart_or_by_text(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function that reads cells gives, run apart. Its last argument is whether exercises are found by their
    text alone: so they are where one cell keeps Python's parser busy, and the others are judged all the same."""
    try:
        return run_apart(function, *arguments, False)
    except ApartError:
        return run_apart(function, *arguments, True)


def _sources_in(path: str, by_text: bool) -> list[tuple[str, list[str]]]:
    """Each cell once with its exercises: one cell may name thousands."""
    marks_of: dict[str, list[str]] = {}
    for mark, source in exercise_sources(read_notebook(Path(path)), by_text=by_text).items():
        marks_of.setdefault(source, []).append(mark)
    return list(marks_of.items())


def code_cells(notebook: dict[str, Any]) -> list[str]:
    """The source of every code cell, as text."""
    cells = [cell for cell in notebook["cells"] if isinstance(cell, dict)]
    return [text_of(cell.get("source")) for cell in cells if cell.get("cell_type") == "code"]


def text_of(source: object) -> str:
    """A cell's text, which may stand there in lines; what is none counts as empty."""
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def as_python(source: str) -> str:
    """A cell as Python reads it, line by line: what is meant for IPython (magics, shell lines, questions) becomes a
    comment, with what an assignment needs in its place. Nothing of it would do anything in the sandbox.

    In one pass over the text, whatever it holds; what is no Python otherwise stays so.
    """
    if len(source) > MAX_CELL or _parse(source):
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


def _parse(source: str) -> ast.Module | None:
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


def exercise_ids(source: str) -> list[str]:
    """The ids that a cell gives to `exercise`; found by text where Python cannot read it: an error hides nothing."""
    if "exercise" not in source:
        return []
    tree = _parse(as_python(source)) if len(source) <= MAX_CELL else None
    if tree is None:
        return marked_ids(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [found for call in calls if (found := _exercise_of(call))]


def marked_ids(source: str) -> list[str]:
    """The ids of `@exercise("…")` at the start of a line, whether or not Python can read the cell."""
    return [match["id"] for match in _MARK.finditer(source)]


def _exercise_of(call: ast.Call) -> str | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name == "exercise" and len(given) == 1 and isinstance(given[0], ast.Constant):
        value = given[0].value
        return (
            str(value) if isinstance(value, str | float) else None
        )  # a whole number may have too many digits
    return None


def exercise_sources(notebook: dict[str, Any], *, by_text: bool = False) -> dict[str, str]:
    """Exercise id → source of its cell. Of several cells for one exercise the last counts, as in a kernel.

    Args:
        by_text: do not ask Python, which one of the cells may keep busy.
    """
    ids = marked_ids if by_text else exercise_ids
    return {mark: source for source in code_cells(notebook) for mark in ids(source)}


def is_stub(source: str, entry: str) -> bool:
    """Whether the cell is as it came: every body of `entry` that matters still raises NotImplementedError."""
    tree = _parse(source) if len(source) <= MAX_CELL else None
    for node in reversed(tree.body if tree else []):  # the last to have the name is what Python keeps
        if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == entry for name in node.targets):
            return False
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == entry:
            methods = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            marks = [_is_left_open(method) for method in methods if method.name != "__init__"]
            return bool(marks) and all(marks)
    return False


def _is_left_open(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = function.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
