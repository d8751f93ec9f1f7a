"""Where it is doubtful what `self` is, or what a class of the cell makes.

A method that is only ever called on objects has one of its class for `self`; `A.method(anything)` gives it anything.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from autograder.engine.review.kinds import A_CLASS, CHOSEN, MADE, OWN, UNBOUND, UNKNOWN, Known
from autograder.engine.review.scopes import DESCRIBING, FIRST_IS_A_CLASS, Function, Scope
from autograder.engine.review.words import listed

if TYPE_CHECKING:
    from autograder.engine.review.values import Values

_METHOD_DECORATORS = listed("""
    builtins.property functools.cached_property abc.abstractmethod contextlib.contextmanager typing.override
    torch.no_grad torch.enable_grad torch.inference_mode functools.cache functools.lru_cache functools.wraps
    typing.overload functools.singledispatchmethod torch.compile builtins.classmethod
""")
_CLASS_DECORATORS = listed(
    "dataclasses.dataclass functools.total_ordering typing.final enum.unique typing.runtime_checkable"
)


class Doubts:
    """Which classes and methods of a cell are doubtful, as far as its names are known."""

    def __init__(self, values: Values) -> None:
        self._values, self._scopes = values, values.scopes

    def found(self) -> set[int]:
        """The ids of all nodes that are."""
        return {id(one) for one in self._scopes.nodes if self.is_doubtful(one)}

    def is_doubtful(self, node: ast.AST) -> bool:
        """Whether it is a class whose name may stand for another, a method that may get anything for `self`, or what
        makes a property, which may come into another class."""
        if isinstance(node, ast.ClassDef):
            return not self._is_plain(node)
        if id(node) in self._scopes.getters:
            return self._puts_elsewhere
        if not isinstance(node, Function) or self._scopes.of[id(node)].kind != "class":
            return False
        return self._is_given_away(node)

    def _is_plain(self, node: ast.ClassDef) -> bool:
        """Whether calling it makes an object of it, and its name stands for it."""
        has_new = "__new__" in self._scopes.inside[id(node)].names
        plain = all(self._is_decorated_by(one, _CLASS_DECORATORS) for one in node.decorator_list)
        bases = [
            self._values.of(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases
        ]
        of_unknown = any(one in (UNKNOWN, MADE, CHOSEN, OWN, A_CLASS) for base in bases for one in base)
        return (
            plain and not has_new and not of_unknown and not any(k.arg == "metaclass" for k in node.keywords)
        )

    def _is_decorated_by(self, node: ast.expr, paths: frozenset[str]) -> bool:
        made_by = node.func if isinstance(node, ast.Call) else node
        if isinstance(made_by, ast.Attribute) and made_by.attr in ("setter", "getter", "deleter"):
            property_of = self._scopes.of[id(made_by)].names.get(getattr(made_by.value, "id", ""), [])
            return bool(property_of) and all(bound.how == "function" for bound in property_of)
        found = self._values.of(made_by)
        if found == {UNBOUND} and getattr(made_by, "id", "") == "exercise":
            return True
        paths |= {"autograder.exercise"}
        return bool(found) and all(isinstance(one, Known) and one.path in paths for one in found)

    def _is_given_away(self, method: Function) -> bool:
        """Whether somebody may call it with another first argument than an object of its class."""
        if method.name in DESCRIBING and self._puts_elsewhere:
            return True
        if method.name == "__new__":  # a static method, whatever calls it
            return any(not self._is_of_another(node) for node in self._values.loads[method.name])
        ways = _METHOD_DECORATORS
        around = self._scopes.of[id(method)].node
        bases = around.bases if isinstance(around, ast.ClassDef) else []
        if any(one.path == "torch.autograd.Function" for base in bases for one in self._values.known(base)):
            ways |= {"builtins.staticmethod"}  # its first argument is `ctx`, which torch makes for each call
        if not all(self._is_decorated_by(one, ways) for one in method.decorator_list):
            return True
        if method.name in self._named_in_classes | self._named_in_texts:
            return True
        return any(self._may_be_unbound(node, method) for node in self._values.loads[method.name])

    @functools.cached_property
    def _puts_elsewhere(self) -> bool:
        """Whether something is stored in what is not the cell's own, and is no literal: a class may be among it."""
        owners: list[ast.expr] = []
        literal: set[int] = set()
        for node in self._scopes.nodes:
            match node:
                case ast.Assign(targets=targets, value=ast.Constant()):
                    literal |= {id(target) for target in targets}
                case ast.Attribute(value=owner, ctx=ast.Store()) if id(node) not in literal:
                    owners.append(owner)
                case ast.Call(func=ast.Name(id="setattr"), args=[owner, _, value]):
                    owners += [] if isinstance(value, ast.Constant) else [owner]
        return not all(map(self._values.is_own, owners))

    @functools.cached_property
    def _named_in_classes(self) -> set[str]:
        """Names that a class's own body uses: `also = method`."""
        return {
            node.id
            for node in self._scopes.nodes
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and self._scopes.of[id(node)].kind == "class"
        }

    @functools.cached_property
    def _named_in_texts(self) -> set[str]:
        """Names by which a method may be asked for: `getattr(A, "f")`, `attrgetter("A.f")`, `case A(f=g)`."""
        found: set[str] = set()
        for node in self._scopes.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if all(part.isidentifier() for part in node.value.split(".")):
                    found |= set(node.value.split("."))
            elif isinstance(node, ast.MatchClass):
                found |= set(node.kwd_attrs)
        return found

    def _may_be_unbound(self, node: ast.Attribute, method: Function) -> bool:
        """Whether `x.method` may be the method of a class, called with an object of anybody's choice."""
        is_bound = self._values.is_own(node.value, classes=False) or self._is_of_another(node)
        if is_bound or not isinstance(node.ctx, ast.Load):
            return False
        call = self._values.calls.get(id(node))
        if call is None:
            return True
        if call.args and self._values.is_own(call.args[0], classes=False):  # `Parent.__init__(self)`
            return False
        if any(isinstance(one, ast.Starred) for one in call.args) or any(not k.arg for k in call.keywords):
            return True
        given = method.args
        in_order = [*given.posonlyargs, *given.args]
        if any(keyword.arg == in_order[0].arg for keyword in call.keywords):
            return True
        needed = (
            len(in_order)
            - len(given.defaults)
            - sum(keyword.arg in {arg.arg for arg in in_order} for keyword in call.keywords)
        )
        return len(call.args) >= max(needed, 1)

    def _is_of_another(self, node: ast.Attribute) -> bool:
        """Whether `x.method` is that of a library's class or of the parent."""
        owner = node.value
        if isinstance(owner, ast.Call) and self._values.is_call_of(owner, "builtins.super"):
            return not owner.args and not self._is_in_classmethod(node)
        return len(self._values.known(owner)) == len(self._values.of(owner))

    def _is_in_classmethod(self, node: ast.AST) -> bool:
        """Whether `super()` stands here for the parent of a class, and gives functions that are not bound."""
        scope: Scope | None = self._scopes.of[id(node)]
        while scope and not (scope.kind == "function" and scope.parent and scope.parent.kind == "class"):
            scope = scope.parent
        method = scope.node if scope else None
        return (
            not isinstance(method, Function) or bool(method.decorator_list) or method.name in FIRST_IS_A_CLASS
        )
