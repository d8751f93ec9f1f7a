"""A `__getattr__` of the cell's own: whoever looks at an object by name gets what it works out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review.cell import Cell
from autograder.engine.review.scopes import Function, all_parameters


def about_getter(cell: Cell, node: ast.ClassDef) -> Iterator[str]:
    """Of one that does more than look the name up as it is: it can answer to names that the cell does not show."""
    for one in node.body:
        match one:
            case ast.FunctionDef(name="__getattr__") if _is_plain(one):
                continue
            case ast.Assign(
                targets=[ast.Name(id="__getattr__")], value=ast.Attribute(attr="__getitem__") as value
            ):
                if cell.values.known(value.value):
                    continue
            case _ if not _defines(one):
                continue
        yield f"defines `{node.name}.__getattr__`, which works out names as they are asked for"


def _defines(node: ast.AST) -> bool:
    return any(
        (isinstance(one, Function) and one.name == "__getattr__")
        or (isinstance(one, ast.Name) and one.id == "__getattr__" and not isinstance(one.ctx, ast.Load))
        or (isinstance(one, ast.alias) and (one.asname or one.name) == "__getattr__")
        for one in ast.walk(node)
    )


def _is_plain(function: ast.FunctionDef) -> bool:
    """Whether it gives only `getattr(x, name)`, `x[name]`, `super().__getattr__(name)` and the like."""
    parameters = [arg.arg for arg in all_parameters(function)]
    if len(parameters) != 2 or function.decorator_list:
        return False
    name, inside = parameters[1], [one for part in function.body for one in ast.walk(part)]
    if any(
        isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load) for one in inside
    ):
        return False
    if any(isinstance(one, Function | ast.Lambda | ast.Yield | ast.YieldFrom | ast.Await) for one in inside):
        return False
    given = [one.value for one in inside if isinstance(one, ast.Return) and one.value is not None]
    return all(isinstance(one, ast.Constant) or _looks_up(one, name) for one in given)


def _looks_up(node: ast.expr, name: str) -> bool:
    def is_name(one: ast.expr) -> bool:
        return isinstance(one, ast.Name) and one.id == name

    match node:
        case ast.Subscript(slice=key):
            return is_name(key)
        case ast.Call(func=ast.Name(id="getattr"), args=[_, asked, *_]):
            return is_name(asked)
        case ast.Call(func=ast.Attribute(attr="__getattr__" | "__getitem__" | "get"), args=[asked, *_]):
            return is_name(asked)
    return False
