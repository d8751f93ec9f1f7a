"""Families of code: what says the same, whatever its layout, comments, docstrings and names of locals."""

from __future__ import annotations

import ast
import functools
import hashlib
import symtable
import warnings

from autograder.common import CELL_SECONDS, ApartError, run_apart
from autograder.engine.source.python import MAX_CELL, NO_PYTHON

_NAMES: dict[type[ast.AST], str] = {
    **{ast.Name: "id", ast.arg: "arg", ast.MatchAs: "name", ast.MatchStar: "name", ast.MatchMapping: "rest"},
    **dict.fromkeys((ast.ExceptHandler, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name"),
}
"""Where a node has a name that it binds or uses."""


@functools.lru_cache(maxsize=256)
def family(source: str) -> str:
    """SHA-256 of what the code says. What Python cannot read, or not in time, is its own family."""
    try:
        found: str = (
            run_apart(_family, source, seconds=CELL_SECONDS) if len(source) <= MAX_CELL else text_hash(source)
        )
    except ApartError:
        return text_hash(source)
    return found


def text_hash(text: str) -> str:
    """SHA-256 of a text, whatever stands in it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _family(source: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree, table = ast.parse(source), symtable.symtable(source, "<cell>", "exec")
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):  # docstrings go
                body[:] = [s for s in body if not (type(s) is ast.Expr and type(s.value) is ast.Constant)]
        names = _locals(table) - set(table.get_identifiers())
        return text_hash("\n".join(_numbered(statement, names) for statement in tree.body))
    except NO_PYTHON:
        return text_hash(source)


def _locals(table: symtable.SymbolTable) -> set[str]:
    """The names that any function below binds, imports left out."""
    own = table.get_symbols() if isinstance(table, symtable.Function) else []
    names = {symbol.get_name() for symbol in own if symbol.is_local() and not symbol.is_imported()}
    return names.union(*map(_locals, table.get_children()))


def _numbered(statement: ast.stmt, names: set[str]) -> str:
    """The text of a syntax tree with a number for each of the names, in the order of appearance. The names of arguments
    in a call stay, and so do texts: they say something."""
    numbers: dict[str, int] = {}

    def number(name: str) -> str:
        return f"{numbers.setdefault(name, len(numbers))}" if name in names else name

    nodes: list[ast.AST] = [statement]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [number(name) for name in node.names]
        elif (field := _NAMES.get(type(node))) and isinstance(name := getattr(node, field), str):
            setattr(node, field, number(name))
        nodes += reversed(list(ast.iter_child_nodes(node)))
    return ast.dump(statement)
