"""Annotations: a text in one is code that waits for somebody to read the types of its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.scopes import TYPE_PARAMETERS, Bound, Function, Scope

_DEEPEST = 20  # names that stand for others
_OF_TYPES = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Starred, ast.Constant)
_CODE = "has code for an annotation"


def spell_out(tree: ast.Module) -> None:
    """Put in the place of every text in an annotation the expression that it is, which is then read as any other."""
    for node in list(ast.walk(tree)):
        match node:
            case ast.arg(annotation=ast.expr() as found):
                node.annotation = _spelled_out(found)
            case ast.AnnAssign(annotation=found):
                node.annotation = _spelled_out(found)
            case ast.FunctionDef(returns=ast.expr() as found) | ast.AsyncFunctionDef(returns=found) if found:
                node.returns = _spelled_out(found)


def _spelled_out(annotation: ast.expr) -> ast.expr:
    """An annotation without texts, but for those that stay texts: `Literal["mean"]`, what `Annotated` adds."""
    root = ast.Tuple(elts=[annotation], ctx=ast.Load())
    waiting: list[ast.AST] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Subscript):
            name = getattr(node.value, "attr", getattr(node.value, "id", ""))
            if name == "Literal":
                continue
            if name == "Annotated" and isinstance(node.slice, ast.Tuple):
                node.slice.elts[:1] = map(_parsed, node.slice.elts[:1])
                continue
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, _parsed(value))
            elif isinstance(value, list):
                value[:] = [_parsed(one) if isinstance(one, ast.expr) else one for one in value]
        waiting += ast.iter_child_nodes(node)
    return root.elts[0]


def _parsed(node: ast.expr) -> ast.expr:
    """The expression that a text is; what is none stays what it is."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return node
    try:
        found = ast.parse(node.value.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return node  # which whoever reads the types refuses, too
    for one in ast.walk(found):
        if isinstance(one, ast.expr):
            one.lineno = node.lineno
    return found


def about_parameter(cell: Cell, node: ast.arg) -> Iterator[str]:
    """Of the annotation of a parameter."""
    if node.annotation:
        yield from _about(cell, node.annotation)


def about_variable(cell: Cell, node: ast.AnnAssign) -> Iterator[str]:
    """Of that of a variable, or of a class's field."""
    yield from _about(cell, node.annotation)


def about_result(cell: Cell, node: Function) -> Iterator[str]:
    """Of what a function says that it returns."""
    if node.returns:
        yield from _about(cell, node.returns)


def _about(cell: Cell, annotation: ast.expr) -> Iterator[str]:
    """Of a part that is no type: what comes out of it may be a text, which nobody has read."""
    waiting: list[tuple[ast.expr, int]] = [(annotation, 0)]
    while waiting:
        node, depth = waiting.pop()
        match node:
            case ast.Subscript(value=of) if getattr(of, "attr", getattr(of, "id", "")) in (
                "Literal",
                "Annotated",
            ):
                parts = node.slice.elts[:1] if isinstance(node.slice, ast.Tuple) else []
                waiting += [(one, depth) for one in parts if not isinstance(one, ast.Constant)]
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                waiting += [(left, depth), (right, depth)]
            case ast.Name(id=name):
                bound = _bound(cell, node)
                if depth > _DEEPEST or any(one.how in ("unknown", "with") for one in bound):
                    yield f"{_CODE}: `{name}`"
                else:
                    values = [one.to for one in bound if one.how == "value"]
                    waiting += [(one, depth + 1) for one in values if isinstance(one, ast.expr)]
            case ast.Call() if cell.values.known(node.func):  # `TypeVar("T")`, `namedtuple("P", "x y")`
                continue
            case _ if isinstance(node, _OF_TYPES):
                if depth and isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{_CODE}: `{text_of(node)}`"
                waiting += [(one, depth) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
            case _:
                yield f"{_CODE}: `{text_of(node)}`"


def _bound(cell: Cell, node: ast.Name) -> list[Bound]:
    """What the name of an annotation is bound to, in the scope that has it."""
    scope: Scope | None = cell.scopes.of[id(node)]
    while scope:
        if node.id in scope.names:
            parameters = {one.name for one in cell.nodes if isinstance(one, TYPE_PARAMETERS)}
            return [] if node.id in parameters else scope.names[node.id]
        scope = scope.parent
    return []
