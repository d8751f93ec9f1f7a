"""Reads a cell by all rules."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

from autograder.engine.review.allowed import names_of
from autograder.engine.review.cell import Cell
from autograder.engine.review.mangled import mangle
from autograder.engine.review.rules import (
    annotated,
    attributes,
    calls,
    chosen,
    definitions,
    getters,
    internals,
    stores,
)
from autograder.engine.review.scopes import Function
from autograder.engine.review.values import TooEntangled

_MOST = 8  # sentences
_NAMED = re.compile(r"`([^`]*)`")
# A method of these may be called on whatever is handed in: what that is, a cell does not say.
_OBJECTS = ("torch.Tensor.", "torch.nn.Module.")


def read(source: str, counts: bool, allowed: Collection[str], given: str, entry: str = "") -> list[str]:
    """The sentences of `reasons`. Raises what a parser or a reader raises that comes to its limits."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []  # it does not run either
    annotated.spell_out(tree)
    mangle(tree)
    try:
        names, methods, private = _given_by(given)
        cell = Cell(
            tree,
            counts=counts,
            allowed_names=allowed,
            given=names,
            given_methods=methods,
            given_private=private,
            entry=entry,
        )
    except TooEntangled:
        return ["the cell could not be read before it ran: its names stand for too many things"]
    found: dict[str, None] = {}
    for line, what in sorted(set(_found(cell))):
        if not _is_allowed(what, allowed):
            found[f"the cell {what} (line {line})"] = None
    return list(found)[:_MOST]


def _found(cell: Cell) -> Iterator[tuple[int, str]]:
    for node in cell.nodes:
        if rule := _RULES.get(type(node)):
            for what in rule(cell, node):
                yield getattr(node, "lineno", 0), what


def _about_attribute(cell: Cell, node: ast.Attribute) -> Iterator[str]:
    if isinstance(node.ctx, ast.Load):
        yield from attributes.about_attribute(cell, node)
        yield from definitions.about_gated(cell, node)
        yield from calls.about_handed_on(cell, node)
    else:
        parent = cell.parents.get(id(node))
        yield from stores.about_store(cell, node, parent.value if isinstance(parent, ast.Assign) else None)


def _about_name(cell: Cell, node: ast.Name) -> Iterator[str]:
    if isinstance(node.ctx, ast.Load):
        yield from calls.about_name(cell, node)
        yield from chosen.about_chosen(cell, node)


def _about_call(cell: Cell, node: ast.Call) -> Iterator[str]:
    yield from calls.about_call(cell, node)
    yield from chosen.about_chosen(cell, node)


def _about_addition(cell: Cell, node: ast.AugAssign) -> Iterator[str]:
    yield from chosen.about_chosen(cell, node.target)  # which the other side is asked to be added to


def _about_subscript(cell: Cell, node: ast.Subscript) -> Iterator[str]:
    if not isinstance(node.ctx, ast.Load):
        yield from stores.about_entry(cell, node)


def _about_constant(cell: Cell, node: ast.Constant) -> Iterator[str]:
    if isinstance(node.value, str | bytes):
        yield from definitions.about_text(cell, node)


def _about_class(cell: Cell, node: ast.ClassDef) -> Iterator[str]:
    yield from definitions.about_class(cell, node)
    yield from getters.about_getter(cell, node)


def _about_function(cell: Cell, node: Function) -> Iterator[str]:
    yield from annotated.about_result(cell, node)
    yield from internals.about_function(cell, node)


Rule = Callable[[Cell, Any], Iterator[str]]
_RULES: dict[type[ast.AST], Rule] = {
    ast.Import: definitions.about_import,
    ast.ImportFrom: definitions.about_import,
    ast.Name: _about_name,
    ast.Attribute: _about_attribute,
    ast.Subscript: _about_subscript,
    ast.Call: _about_call,
    ast.AugAssign: _about_addition,
    ast.IfExp: chosen.about_chosen,
    ast.BoolOp: chosen.about_chosen,
    ast.NamedExpr: chosen.about_chosen,
    ast.ClassDef: _about_class,
    ast.MatchClass: attributes.about_pattern,
    ast.Constant: _about_constant,
    ast.arg: annotated.about_parameter,
    ast.AnnAssign: annotated.about_variable,
    ast.FunctionDef: _about_function,
    ast.AsyncFunctionDef: _about_function,
}


def _is_allowed(what: str, allowed: Collection[str]) -> bool:
    """Whether the exercise is about what this sentence names."""
    if what.startswith(chosen.SAYS):  # which the exercise that allows to ask does not ask for
        return False
    named = _NAMED.search(what)
    about = named[1] if named else ""
    if what.endswith("a library's"):
        return about in allowed
    if what.startswith("hands on") and about in ("getattr", "setattr"):  # it is allowed to call it
        return False
    return any(
        about == name
        or (name.endswith(".*") and about.startswith(name[:-1]))
        or (name.startswith("__") and about.endswith(f".{name}"))
        or (name.startswith(".") and about.endswith(name))
        or (name.startswith(_OBJECTS) and about.endswith(f".{name.rpartition('.')[2]}"))
        for name in allowed
    )


@functools.lru_cache(maxsize=16)
def _given_by(harness: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names of what a harness gives to a cell: attributes and keys, the methods among them, and what is private."""
    names, methods = set(), set()
    for node in ast.walk(ast.parse(harness)):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
            case ast.Constant(value=str(name)) if name.isidentifier():  # a key such as "input_ids"
                if name not in names_of("elsewhere"):
                    names.add(name)
            case ast.ClassDef(body=body):
                names |= {
                    one.target.id
                    for one in body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                }
                methods |= {one.name for one in body if isinstance(one, ast.FunctionDef)}
    public = frozenset(name for name in names | methods if not name.startswith("_"))
    return public, public & methods, frozenset(names | methods) - public
