"""Which texts a variable of a cell can hold, read from its tree: of a name that is worked out nothing is known.

A text is certain where nothing but texts that stand in the cell can reach it, by every binding that Python has. All
variables of one name count as one, in whatever scope, so that it need not be known here which of them is read.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from autograder.engine.review.scopes import Function, Scopes

_DEEPEST = 5  # variables on the way from a name to its texts
_MOST = 200  # texts that one variable may hold
# Texts in nodes that are no names, or names that the node does not bind.
_NOT_BOUND = {
    ast.Attribute: ("attr",),
    ast.keyword: ("arg",),
    ast.MatchClass: ("kwd_attrs",),
    ast.Constant: ("value", "kind"),
    ast.ImportFrom: ("module",),
    ast.alias: ("name", "asname"),  # one of them binds
}


class Texts:
    """What is known of the texts of a cell. `entry`: what it is asked for, and others call."""

    def __init__(self, scopes: Scopes, entry: str = "") -> None:
        self._entry = entry
        self._bound = Counter[str]()  # how often each name is bound, in whatever way
        self._clear = Counter[str]()  # and how often so that it is seen to what
        self._plain: defaultdict[str, list[ast.expr]] = defaultdict(list)
        self._taken: defaultdict[str, list[Function]] = defaultdict(list)  # parameters
        self._named: set[str] = set()
        self._uses: defaultdict[str, list[ast.AST]] = defaultdict(list)
        self._calls: dict[int, ast.Call] = {}
        self._of = scopes.of
        self._has_stars = bool(scopes.stars)  # which bind whatever names their modules have
        for node in scopes.nodes:
            self._bound.update(_bound_by(node))
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind(name, [value])
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bind(name, [value])
            case (
                ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=elements) | ast.List(elts=elements))
                | ast.comprehension(
                    target=ast.Name(id=name), iter=ast.Tuple(elts=elements) | ast.List(elts=elements)
                )
            ):
                self._bind(name, elements)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for name in _parameters(node):
                    self._taken[name].append(node)
                    self._clear[name] += 1
            case ast.Constant(value=str(text)):
                self._named |= set(text.split("."))
            case ast.Call(func=function):
                self._calls[id(function)] = node
        if isinstance(node, ast.Name | ast.Attribute):
            self._uses[node.id if isinstance(node, ast.Name) else node.attr].append(node)

    def _bind(self, name: str, values: list[ast.expr]) -> None:
        self._plain[name] += values
        self._clear[name] += 1

    def of(self, node: ast.expr, deepest: int = _DEEPEST) -> set[str] | None:
        """Every text that this expression can be, by all that its variable is bound to; None where one is not plain.

        Plain are a constant, the two sides of an `if`, what a loop takes from a list of such, and a parameter of a
        function that is only ever called, by its own name and with such.
        """
        sides: list[ast.expr | None]
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.IfExp(body=body, orelse=orelse):
                sides = [body, orelse]
            case ast.Starred(value=ast.Name(id=name)) if deepest and self._is_clear(name):
                sides = list(self._elements(name))
            case ast.Name(id=name) if deepest and self._is_clear(name):
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

    def is_bound_once(self, name: str) -> bool:
        """Whether one line alone says what a name stands for, in whatever scope."""
        return not self._has_stars and self._bound[name] == 1

    def _is_clear(self, name: str) -> bool:
        """Whether all is seen that a name can stand for. Python itself binds some of those with two underscores."""
        return not self._has_stars and "__" not in name and self._bound[name] == self._clear[name]

    def _elements(self, name: str) -> Iterator[ast.expr | None]:
        """What a tuple of this name holds."""
        for side in self._plain[name]:
            yield from side.elts if isinstance(side, ast.Tuple) else [None]
        if self._taken[name]:
            yield None

    def _handed_in(self, name: str, function: Function) -> Iterator[ast.expr | None]:
        """What a parameter gets in each call of its function; None where that is not seen."""
        given, uses = function.args, self._uses[function.name]
        if not self._is_only_called(function) or not uses or len(uses) > _MOST:
            yield None
            return
        in_order = [arg.arg for arg in (*given.posonlyargs, *given.args)]
        defaults = dict(zip(in_order[::-1], given.defaults[::-1], strict=False))
        defaults |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d}
        for node in uses:
            call = self._calls[id(node)]
            is_seen = not any(isinstance(one, ast.Starred) for one in call.args)
            by_place = dict(zip(in_order, call.args, strict=False))
            by_name = {keyword.arg: keyword.value for keyword in call.keywords}
            handed = (
                defaults | by_name | by_place
            )  # one that goes by its place alone may have a keyword's name
            yield handed.get(name) if is_seen and None not in by_name else None

    def _is_only_called(self, function: Function) -> bool:
        """Whether every call of it stands in the cell: it is not what the cell is asked for and no method, which its
        class or a library calls, nobody decorates it, and its name stands for nothing else and is only called."""
        name = function.name
        is_own = self._of[id(function)].kind != "class" and not function.decorator_list
        is_called = all(isinstance(one, ast.Name) and id(one) in self._calls for one in self._uses[name])
        # Python calls it, or who looks it up.
        is_named = "__" in name or name == self._entry or name in self._named
        return is_own and is_called and not is_named and self._bound[name] == 1


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a node binds, or says something of: any name in it, but for those that are known to be others."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
        return
    if isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    others = _NOT_BOUND.get(type(node), ())
    for field, value in ast.iter_fields(node):
        if field not in others:
            yield from (
                one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)
            )


def _parameters(function: Function) -> list[str]:
    """Those that get one argument each."""
    given = function.args
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
