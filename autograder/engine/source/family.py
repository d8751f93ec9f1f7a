"""Families of code: what says the same, whatever its layout, comments, docstrings and names of locals."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import symtable
import warnings

from autograder.common import CELL_SECONDS, ApartError, run_apart
from autograder.engine.source.notebook import MAX_CELL, NO_PYTHON

_IDENTIFIER = re.compile(r"\b(id|arg|name|rest)='(\w+)'")


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
        return text_hash("\n".join(_numbered(ast.dump(statement), names) for statement in tree.body))
    except NO_PYTHON:
        return text_hash(source)


def _locals(table: symtable.SymbolTable) -> set[str]:
    """The names that any function below binds, imports left out."""
    own = table.get_symbols() if isinstance(table, symtable.Function) else []
    names = {symbol.get_name() for symbol in own if symbol.is_local() and not symbol.is_imported()}
    return names.union(*map(_locals, table.get_children()))


def _numbered(dumped: str, names: set[str]) -> str:
    """The text of a syntax tree with a number for each of the names, in the order of appearance."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = found[2]
        return f"{found[1]}={numbers.setdefault(name, len(numbers))}" if name in names else found[0]

    return _IDENTIFIER.sub(number, dumped)
