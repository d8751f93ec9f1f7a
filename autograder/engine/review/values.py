"""What an expression of a cell can stand for: a part of a library, something of the cell's own, or who knows what."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable

from autograder.engine.review import allowed
from autograder.engine.review.doubts import Doubts
from autograder.engine.review.kinds import (
    A_CLASS,
    CHOSEN,
    MADE,
    OWN,
    OWN_CLASS,
    OWN_FUNCTION,
    UNBOUND,
    UNKNOWN,
    Known,
    Value,
)
from autograder.engine.review.scopes import DESCRIBING, FIRST_IS_A_CLASS, Bound, Function, Scope, Scopes
from autograder.engine.review.texts import Texts

_MOST = 40  # things that one name may stand for
_MOST_NAMES = 20  # by which something is asked for in one place


class TooEntangled(Exception):
    """A name that stands for so many things that nobody can follow it."""


class Values:
    """What the names and expressions of a cell stand for."""

    def __init__(self, scopes: Scopes, texts: Texts) -> None:
        self.scopes, self.texts = scopes, texts
        self._known: dict[tuple[Scope, str], set[Value]] = {}
        self._kept: dict[int, frozenset[Value]] = {}
        # So that `with A() as a` gives an object of A.
        self._enter_themselves = all(_enters_itself(node, scopes) for node in scopes.nodes)
        self.loads: defaultdict[str, list[ast.Attribute]] = defaultdict(list)
        self.calls: dict[int, ast.Call] = {}
        for node in scopes.nodes:
            if isinstance(node, ast.Attribute):
                self.loads[node.attr].append(node)
            elif isinstance(node, ast.Call):
                self.calls[id(node.func)] = node
        # Methods whose first argument may be anything, and classes whose name may stand for something else. At first
        # none is doubted, and each doubt may bring others.
        self._doubtful: set[int] = set()
        self._settle()
        while found := Doubts(self).found() - self._doubtful:
            self._doubtful |= found
            self._settle()

    def of(self, node: ast.AST) -> frozenset[Value]:
        """What this expression can stand for."""
        if id(node) not in self._kept:
            self._kept[id(node)] = frozenset(self._of(node))
        return self._kept[id(node)]

    def is_own(self, node: ast.AST, *, classes: bool = True) -> bool:
        """Whether it can only be an object, or a class, of the cell's own."""
        found = self.of(node)
        return bool(found) and found <= ({OWN, OWN_CLASS} if classes else {OWN})

    def known(self, node: ast.AST) -> list[Known]:
        """The parts of libraries that it can be."""
        return [value for value in self.of(node) if isinstance(value, Known)]

    def is_call_of(self, node: ast.AST, *paths: str) -> bool:
        """Whether it is a call of one of these."""
        return isinstance(node, ast.Call) and any(one.path in paths for one in self.known(node.func))

    def _settle(self) -> None:
        """Follow all assignments until nothing new comes out."""
        self._known, self._is_settling = {}, True
        reads: defaultdict[tuple[Scope, str], set[int]] = defaultdict(set)
        bound: list[tuple[Scope, str, Bound]] = []
        for scope in {id(s): s for s in (*self.scopes.of.values(), *self.scopes.inside.values())}.values():
            for name, every in scope.names.items():
                bound += [(scope, name, one) for one in every]
        waiting = list(range(len(bound)))
        while waiting:
            number = waiting.pop()
            scope, name, one = bound[number]
            self._kept, self._asked = {}, list[tuple[Scope, str]]()
            new = set(self._bound(one)) - (held := self._known.setdefault((scope, name), set()))
            for key in self._asked:
                reads[key].add(number)
            if new:
                held |= new
                if len(held) > _MOST:
                    raise TooEntangled
                waiting += reads[scope, name]
        self._kept, self._is_settling = {}, False

    def _bound(self, bound: Bound) -> Iterable[Value]:
        match bound:
            case Bound("import", str(path)):
                return {Known.at(path)}
            case Bound("function", ast.FunctionDef() | ast.AsyncFunctionDef() as node):
                return {UNKNOWN if node.decorator_list else OWN_FUNCTION}
            case Bound("class", ast.ClassDef() as node):
                return {UNKNOWN if id(node) in self._doubtful else OWN_CLASS}
            case Bound("value", ast.expr() as node):
                return self.of(node)
            case Bound("with", ast.expr() as node):
                return {OWN if one == OWN and self._enter_themselves else UNKNOWN for one in self.of(node)}
            case Bound("first", ast.FunctionDef() | ast.AsyncFunctionDef() as method):
                return {self._first(method)}
            case Bound("getter", ast.expr() as made_by):
                is_property = {one.path for one in self.known(made_by)} == {"builtins.property"}
                is_sure = is_property and len(self.of(made_by)) == 1 and id(made_by) not in self._doubtful
                return {OWN if is_sure else UNKNOWN}
            case Bound("described", ast.FunctionDef() | ast.AsyncFunctionDef() as method):
                return {self._described(method)}
        return {UNKNOWN}

    def _first(self, method: Function) -> Value:
        if method.name in FIRST_IS_A_CLASS:
            return UNKNOWN if id(method) in self._doubtful else OWN_CLASS
        for one in method.decorator_list:
            if any(known.path == "builtins.classmethod" for known in self.known(one)):
                return OWN_CLASS
        return UNKNOWN if id(method) in self._doubtful else OWN

    def _described(self, method: Function) -> Value:
        """The object whose attribute is asked for by a descriptor, which Python alone calls."""
        by_hand = any(self.loads[name] for name in DESCRIBING)
        return UNKNOWN if by_hand or id(method) in self._doubtful else OWN

    def _of(self, node: ast.AST) -> Iterable[Value]:
        match node:
            case ast.Name(id=name):
                return self._named(name, self.scopes.of[id(node)])
            case ast.Attribute(value=base, attr=name):
                return {one for value in self.of(base) for one in _part(value, name)}
            case ast.NamedExpr(value=value):
                return self.of(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.of(body) | self.of(orelse)
            case ast.BoolOp(values=values):
                return {one for value in values for one in self.of(value)}
            case ast.Call(func=function, args=arguments):
                return {one for value in self.of(function) for one in self._result(value, arguments)}
        return {UNKNOWN}

    def _result(self, called: Value, arguments: list[ast.expr]) -> Iterable[Value]:
        match called, arguments:
            case Known(path="builtins.type"), [about, *_]:
                return {OWN_CLASS if self.is_own(about) else A_CLASS}
            case Known(path="builtins.getattr"), [base, name, *default]:
                return {*self._got(base, name), *(one for each in default for one in self.of(each))}
            case Known(path=path, kind=kind), _ if not path.startswith("builtins."):
                return {MADE if kind in ("classes", "fixed") or path.startswith("torch.") else UNKNOWN}
            case str(), _ if called in (OWN_CLASS, CHOSEN):
                return {OWN if called == OWN_CLASS else CHOSEN}
        return {UNKNOWN}

    def _got(self, base: ast.expr, name: ast.expr) -> Iterable[Value]:
        """What `getattr(base, name)` gives."""
        texts, found = self.texts.of(name), self.of(base)
        if texts is None:
            return {UNKNOWN if one in (OWN, OWN_CLASS) else CHOSEN for one in found}
        if len(texts) > _MOST_NAMES:
            return {UNKNOWN}
        return {one for text in texts for value in found for one in _part(value, text)}

    def _named(self, name: str, scope: Scope) -> Iterable[Value]:
        found: set[Value] = set()
        here: Scope | None = scope
        while here:
            if here.elsewhere.get(name):
                here = here.home_of(name)
            if name in here.names and (here.kind != "class" or here is scope):
                self._asked.append((here, name))
                found |= self._known.get((here, name), set())
                if here.kind in ("function", "comprehension"):
                    return found
            here = here.parent
        # In a module or a class a name may be bound later, or deleted.
        if hasattr(builtins, name) and not name.startswith("__"):
            known = f"builtins.{name}"
            kind = "functions" if name in allowed.names_of("builtins") else ""
            if not found or not kind or name in ("getattr", "setattr", "type"):
                found.add(
                    Known(known, "fixed" if kind and isinstance(getattr(builtins, name), type) else kind)
                )
        for module in self.scopes.stars:
            if name in allowed.public_names(module):
                found.add(Known.at(f"{module}.{name}"))
        is_bound = any(name in s.names for s in _upwards(scope))
        if is_bound:
            return found if self._is_settling else found or {UNKNOWN}
        return found or {UNBOUND}


def _enters_itself(node: ast.AST, scopes: Scopes) -> bool:
    """Of a class: whether `with` gives its object, by an `__enter__` of its own that returns its first argument."""
    if not isinstance(node, ast.ClassDef):
        return True
    match scopes.inside[id(node)].names.get("__enter__", []):
        case [
            Bound("function", ast.FunctionDef(decorator_list=[], args=ast.arguments(args=[first])) as method)
        ]:
            uses = [one for one in ast.walk(method) if isinstance(one, ast.Name) and one.id == first.arg]
            given = [one.value for one in ast.walk(method) if isinstance(one, ast.Return)]
            is_bound_anew = any(not isinstance(one.ctx, ast.Load) for one in uses)
            return not is_bound_anew and all(isinstance(one, ast.Name) and one in uses for one in given)
    return "__enter__" not in scopes.inside[id(node)].names and not node.bases


def _upwards(scope: Scope | None) -> Iterable[Scope]:
    while scope:
        yield scope
        scope = scope.parent


def _part(value: Value, name: str) -> Iterable[Value]:
    """What the attribute `name` of something can be."""
    if name == "__class__" and value in (OWN, OWN_CLASS):
        return {OWN_CLASS}
    if name == "__class__" or (value == A_CLASS and not name.startswith("__")):
        return {A_CLASS}
    if isinstance(value, Known) and not value.kind:
        return {value}
    if isinstance(value, Known) and value.kind == "values":
        return {MADE}
    if isinstance(value, Known) and value.kind in ("module", "classes", "fixed"):
        return {Known.at(f"{value.path}.{name}")}
    return {value if value in (MADE, CHOSEN) else UNKNOWN}
