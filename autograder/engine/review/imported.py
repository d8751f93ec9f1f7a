"""Whether a cell takes anything from `course_lib`, where its exercise asks to build what the library has."""

from __future__ import annotations

import ast
import unicodedata
import warnings
from collections.abc import Iterator

from autograder.engine.review.mangled import mangle
from autograder.engine.review.scopes import Scopes
from autograder.engine.review.texts import Texts
from autograder.engine.review.values import TooEntangled, Values

_LIBRARY = "course_lib"


def find_imported(source: str) -> int | None:
    """The first line that reaches `course_lib`, by an import or by whatever gives a module of it; None without one.

    Raises what a parser raises that comes to its limits.
    """
    if _LIBRARY not in unicodedata.normalize("NFKC", source):  # as Python reads names
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
        mangle(tree)
        return min(_lines(tree), default=None)
    except (SyntaxError, ValueError, TooEntangled):
        return None  # it does not run either; what is too entangled is a reason to look


def _lines(tree: ast.Module) -> Iterator[int]:
    scopes = Scopes(tree)
    values = Values(scopes, Texts(scopes))
    for node in scopes.nodes:
        match node:
            case ast.Import(names=names) if any(_is_of_library(alias.name) for alias in names):
                yield node.lineno
            case ast.ImportFrom(module=str(module)) if _is_of_library(module):
                yield node.lineno
            case ast.Name() | ast.Attribute() | ast.Call():  # a call of `getattr`
                if any(_is_of_library(one.path) for one in values.known(node)):
                    yield node.lineno


def _is_of_library(path: str) -> bool:
    return path.partition(".")[0] == _LIBRARY
