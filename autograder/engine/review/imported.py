"""Whether a cell takes from `course_lib` what its exercise asks to build."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator

from autograder.engine.review.mangled import mangle
from autograder.engine.review.scopes import Scopes
from autograder.engine.review.texts import Texts
from autograder.engine.review.values import TooEntangled, Values

_LIBRARY = "course_lib"


def find_imported(source: str, parts: Collection[str]) -> tuple[str, int] | None:
    """The first of these parts of `course_lib` that the cell reaches, in whichever module it finds it, and the line.

    `from course_lib import *` counts as each of them.
    Raises what a parser raises that comes to its limits.
    """
    if _LIBRARY not in source:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
        mangle(tree)
        reached = [(min(parts) if name == "*" else name, line) for name, line in _reached(tree)]
    except (SyntaxError, ValueError, TooEntangled):
        return None  # it does not run either; what is too entangled is a reason to look
    found = [(name, line) for name, line in reached if name in parts]
    return min(found, key=lambda each: each[1], default=None)


def _reached(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of what is imported from the library or used of it, each with its line."""
    scopes = Scopes(tree)
    values = Values(scopes, Texts(scopes))
    for node in scopes.nodes:
        match node:
            case ast.ImportFrom(module=str(module), names=names) if _is_of_library(module):
                yield from ((alias.name, node.lineno) for alias in names)
            case ast.Attribute(value=base, attr=name) if any(
                _is_of_library(one.path) for one in values.known(_root(base))
            ):
                yield name, node.lineno  # of a module that is not on the list of what is known, too
            case ast.Name() | ast.Call():  # a call of `getattr`
                for one in values.known(node):
                    if _is_of_library(one.path):
                        yield one.path.rpartition(".")[2], node.lineno


def _is_of_library(path: str) -> bool:
    return path.partition(".")[0] == _LIBRARY


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node
