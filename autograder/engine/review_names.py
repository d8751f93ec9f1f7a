"""Which texts a variable of a cell can hold, read from its tree: of a name that is worked out nothing is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_DEEPEST = 5  # variables on the way from a name to its texts

_PLAIN = ("staticmethod", "classmethod")  # decorators
Function = ast.FunctionDef | ast.AsyncFunctionDef


def texts_of(node: ast.expr, tree: ast.AST, deepest: int = _DEEPEST) -> set[str] | None:
    """Every text that this expression can be, by all that the tree binds its variable to; None where one is not plain.

    Plain are a constant, the two sides of an `if`, what a loop takes from a list of such, and a parameter whose
    function is only ever called with such. All variables of one name count as one.
    """
    sides: list[ast.expr | None]
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=body, orelse=orelse):
            sides = [body, orelse]
        case ast.Name(id=name) if deepest:
            sides = [*_bound_to(name, tree)]
        case _:
            return None
    found = [side and texts_of(side, tree, deepest - 1) for side in sides]
    if not found or None in found:
        return None
    return {text for texts in found if texts for text in texts}


def _bound_to(name: str, tree: ast.AST) -> Iterator[ast.expr | None]:
    """What a variable of this name is bound to; None for what is bound in a way that is not plain."""
    plain: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                sides: list[ast.expr | None] = [value]
            case ast.For(
                target=ast.Name() as target, iter=ast.Tuple(elts=elements) | ast.List(elts=elements)
            ):
                sides = list(elements)
            case ast.comprehension(
                target=ast.Name() as target, iter=ast.Tuple(elts=elements) | ast.List(elts=elements)
            ):
                sides = list(elements)
            case _:
                continue
        plain.add(id(target))
        if target.id == name:
            yield from sides
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            if id(node) not in plain:
                yield None
        elif isinstance(node, Function) and name in _parameters(node):
            yield from _handed_in(name, node, tree)
        elif (isinstance(node, ast.Lambda) and name in _parameters(node)) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name == name
        ):
            yield None


def _parameters(function: Function | ast.Lambda) -> list[str]:
    return [arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)]


def _handed_in(name: str, function: Function, tree: ast.AST) -> Iterator[ast.expr | None]:
    """The default of a parameter, and what it gets in each call of its function; None where those are not plain."""
    # Python itself calls `__init__` and the like, a decorator may, and so may who looks a function up by its name.
    is_named = any(isinstance(n, ast.Constant) and n.value == function.name for n in ast.walk(tree))
    is_dunder = function.name.startswith("__")
    if is_named or is_dunder or any(ast.unparse(one) not in _PLAIN for one in function.decorator_list):
        yield None
    given = function.args
    in_order = [arg.arg for arg in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(in_order[::-1], given.defaults[::-1], strict=False))
    defaults |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d}
    if name not in [*in_order, *(arg.arg for arg in given.kwonlyargs)]:  # `*names`
        yield None
    if name in defaults:
        yield defaults[name]
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if function.name != (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)):
            continue
        call = called.get(id(node))
        if (
            call is None
            or any(isinstance(a, ast.Starred) for a in call.args)
            or any(not k.arg for k in call.keywords)
        ):
            yield None  # handed on, or called with what nobody sees here
            continue
        by_name = {keyword.arg: keyword.value for keyword in call.keywords}
        by_place = dict(zip(in_order[isinstance(node, ast.Attribute) :], call.args, strict=False))
        if name in by_name or name in by_place:
            yield (by_name | by_place)[name]
        elif name not in defaults:
            yield None
