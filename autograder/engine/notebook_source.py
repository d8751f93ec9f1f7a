"""Finds the exercise cells of a notebook, whatever was moved, copied or renamed around them."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import warnings
from pathlib import Path
from typing import Any

from course_lib.base import UserError

_CELL_MAGIC = re.compile(r"\A(\s*)(%%)")
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


def as_python(source: str) -> str:
    """A cell as Python reads it: a cell magic's line becomes a comment, other magics and shell lines become calls of
    `get_ipython()`, which does nothing in the sandbox."""
    if _parse(source):
        return source
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager().transform_cell(_CELL_MAGIC.sub(r"\1# \2", source))


def _parse(source: str) -> ast.Module | None:
    """The tree of a cell, or None where Python cannot read it."""
    with (
        warnings.catch_warnings(action="ignore"),
        contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError),
    ):
        return ast.parse(source)
    return None


def exercise_ids(source: str) -> list[str]:
    """The ids that a cell gives to `exercise`; found by text where Python cannot read it: an error hides nothing."""
    if "exercise" not in source:
        return []
    tree = _parse(as_python(source))
    if tree is None:
        return [match["id"] for match in _MARK.finditer(source)]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [found for call in calls if (found := _exercise_of(call))]


def _exercise_of(call: ast.Call) -> str | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name == "exercise" and len(given) == 1 and isinstance(given[0], ast.Constant):
        return str(given[0].value)
    return None


def exercise_sources(notebook: dict[str, Any]) -> dict[str, str]:
    """Exercise id → source of its cell. Of several cells for one exercise the last counts, as in a kernel."""
    return {mark: source for source in code_cells(notebook) for mark in exercise_ids(source)}


def is_stub(source: str, entry: str) -> bool:
    """Whether the cell is as it came: every body of `entry` that matters still raises NotImplementedError."""
    tree = _parse(source)
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
