"""Finds the exercise cells of a notebook, whatever was moved, copied or renamed around them."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from course_lib.errors import UserError

_MARK = re.compile(r"""^\s*@exercise\(\s*(['"])(?P<id>\d+\.\d+)\1\s*\)""", re.MULTILINE)


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


def code_cells(notebook: dict[str, Any]) -> list[str]:
    """The source of every code cell, as text."""
    sources = []
    for cell in notebook["cells"]:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            sources.append("".join(map(str, source)) if isinstance(source, list) else str(source))
    return sources


def exercise_ids(source: str) -> list[str]:
    """The ids that a cell marks with `@exercise("…")`; found by text, so that a syntax error hides nothing."""
    return [match["id"] for match in _MARK.finditer(source)]


def exercise_sources(notebook: dict[str, Any]) -> dict[str, str]:
    """Exercise id → source of its cell. Of several cells for one exercise the last counts, as in a kernel."""
    return {mark: source for source in code_cells(notebook) for mark in exercise_ids(source)}


def is_stub(source: str, entry: str) -> bool:
    """Whether the cell is as it came: every body of `entry` that matters still raises NotImplementedError."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    for node in tree.body:
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
