"""Which texts a variable of a cell can hold, read from its tree: of a name that is worked out nothing is known."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from autograder.engine.review.scopes import Function

_DEEPEST = 5  # variables on the way from a name to its texts
_MOST = 200  # texts that one variable may hold

_PLAIN = ("staticmethod", "classmethod")  # decorators


class Texts:
    """What is known of the texts of a cell. All variables of one name count as one."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._plain: defaultdict[str, list[ast.expr]] = defaultdict(list)
        self._taken: defaultdict[str, list[Function]] = defaultdict(list)  # parameters
        self._unclear: set[str] = set()
        self._unclear_attributes: set[str] = set()
        self._named: set[object] = set()
        self._uses: defaultdict[str, list[ast.AST]] = defaultdict(list)
        self._calls: dict[int, ast.Call] = {}
        plain: set[int] = set()
        for node in nodes:
            plain |= self._note(node)
        for node in nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in plain:
                self._unclear.add(node.id)

    def _note(self, node: ast.AST) -> set[int]:
        """Keep what this node says of names; the ids of those that it binds to what is plain."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                self._plain[name].append(value)
                return {id(target)}
            case ast.AnnAssign(target=ast.Name(id=name) as target, value=ast.expr() as value):
                self._plain[name].append(value)
                return {id(target)}
            case ast.Attribute(attr=name) if not isinstance(node.ctx, ast.Load):
                self._unclear_attributes.add(name)
            case (
                ast.For(
                    target=ast.Name(id=name) as target,
                    iter=ast.Tuple(elts=elements) | ast.List(elts=elements),
                )
                | ast.comprehension(
                    target=ast.Name(id=name) as target,
                    iter=ast.Tuple(elts=elements) | ast.List(elts=elements),
                )
            ):
                self._plain[name] += elements
                return {id(target)}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for parameter in _parameters(node):
                    self._taken[parameter].append(node)
            case ast.Lambda():
                self._unclear |= set(_parameters(node))
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self._unclear.add(name)
            case ast.Constant(value=str(text)):
                self._named.add(text)
            case ast.Call(func=function):
                self._calls[id(function)] = node
        if isinstance(node, ast.Name | ast.Attribute):
            self._uses[node.id if isinstance(node, ast.Name) else node.attr].append(node)
        return set()

    def of(self, node: ast.expr, deepest: int = _DEEPEST) -> set[str] | None:
        """Every text that this expression can be, by all that its variable is bound to; None where one is not plain.

        Plain are a constant, the two sides of an `if`, what a loop takes from a list of such, and a parameter whose
        function is only ever called with such.
        """
        sides: list[ast.expr | None]
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.IfExp(body=body, orelse=orelse):
                sides = [body, orelse]
            case ast.Starred(value=ast.Name(id=name) | ast.Attribute(attr=name)) if (
                name not in self._unclear | self._unclear_attributes
            ):
                sides = list(self._elements(name))
            case ast.Name(id=name) if deepest and name not in self._unclear:
                sides = [*self._plain[name]]
                for function in self._taken[name]:
                    sides += self._handed_in(name, function)
            case _:
                return None
        if not sides or len(sides) > _MOST:
            return None
        found: set[str] = set()
        for side in sides:
            texts = side and self.of(side, deepest - 1)
            if not texts:
                return None
            found |= texts
        return found

    def _elements(self, name: str) -> Iterator[ast.expr | None]:
        """What a tuple of this name holds."""
        for side in self._plain[name]:
            yield from side.elts if isinstance(side, ast.Tuple) else [None]
        if self._taken[name]:
            yield None

    def _handed_in(self, name: str, function: Function) -> Iterator[ast.expr | None]:
        """The default of a parameter, and what it gets in each call of its function; None where those are not plain."""
        # Python itself calls `__init__` and the like, a decorator may, and so may who looks a function up by its name.
        is_dunder, is_named = function.name.startswith("__"), function.name in self._named
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
        uses = self._uses[function.name]
        if len(uses) > _MOST:
            yield None
            return
        for node in uses:
            call = self._calls.get(id(node))
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


def _parameters(function: Function | ast.Lambda) -> list[str]:
    given = function.args
    extra = [one for one in (given.vararg, given.kwarg) if one]
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, *extra)]
