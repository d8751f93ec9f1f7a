"""Which names a cell binds, in which scope, and to what: by Python's own rules, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
# The first parameter of these methods.
FIRST_IS_A_CLASS = ("__new__", "__init_subclass__", "__class_getitem__")
DESCRIBING = ("__get__", "__set__", "__delete__")
# Of Python 3.12.
TYPE_PARAMETERS = tuple(
    getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name)
)


@dataclass(frozen=True)
class Bound:
    """What a name is bound to.

    Attributes:
        how: "value" (an expression), "with" (one that is entered), "import" (a dotted path), "class", "function",
            "first" (the first parameter of a method), "getter" (that of a lambda, which this makes a property of),
            "described" (the second of a descriptor's), or "unknown".
    """

    how: str
    to: ast.AST | str | None = None


@dataclass(eq=False)
class Scope:
    """A module, class, function or comprehension."""

    kind: str
    parent: Scope | None
    node: ast.AST
    names: dict[str, list[Bound]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)  # by `global` or `nonlocal`

    def bind(self, name: str, bound: Bound) -> None:
        self.home_of(name).names.setdefault(name, []).append(bound)

    def home_of(self, name: str) -> Scope:
        """The scope in which an assignment here binds `name`."""
        how, scope = self.elsewhere.get(name), self
        while how and scope.parent:
            scope = scope.parent
            if how == "nonlocal" and scope.kind == "function" and name in scope.names:
                break
        return scope


class Scopes:
    """The scopes of a cell.

    Attributes:
        of: id of a node → the scope that it is evaluated in.
        aliased: ids of the expressions that a name stands for, as in `t = torch`.
        stars: modules of which all names are imported.
        getters: ids of what makes a property of a lambda.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope("module", None, tree)
        self.of: dict[int, Scope] = {}
        self.inside: dict[int, Scope] = {}
        self.aliased: set[int] = set()
        self.stars: list[str] = []
        self.getters: set[int] = set()
        self.nodes: list[ast.AST] = []
        self._spread(tree)
        for node in self.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                how = "global" if isinstance(node, ast.Global) else "nonlocal"
                self.of[id(node)].elsewhere |= dict.fromkeys(node.names, how)
        # What is bound by `nonlocal` comes last: by then it is known which functions have the name.
        for is_late in (False, True):
            for node in self.nodes:
                scope = self.of[id(node)]
                if ("nonlocal" in scope.elsewhere.values()) is is_late:
                    self._bind(node, scope)
        for node in self.nodes:  # in whatever way: `del`, `type X = …`, `class A[T]`
            scope, name = self.of[id(node)], getattr(node, "name", None)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                name = node.id
            if not isinstance(name, str) or not isinstance(node, (ast.Name, *TYPE_PARAMETERS)):
                continue
            if name not in scope.home_of(name).names:
                scope.bind(name, Bound("unknown"))

    def _spread(self, tree: ast.Module) -> None:
        """Give every node its scope; no recursion, for a cell may be nested deep."""
        waiting: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        while waiting:
            node, scope = waiting.pop()
            self.nodes.append(node)
            self.of[id(node)] = scope
            inner, outside = scope, list[ast.AST]()
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    inner = Scope("function", scope, node)
                    given = node.args
                    outside = [*given.defaults, *(one for one in given.kw_defaults if one)]
                    if not isinstance(node, ast.Lambda):
                        outside += [*node.decorator_list, *([node.returns] if node.returns else [])]
                    waiting += [(one, inner) for one in all_parameters(node)]
                    body = [node.body] if isinstance(node, ast.Lambda) else node.body
                    waiting += [(one, inner) for one in (*body, *getattr(node, "type_params", ()))]
                    waiting += [(one, scope) for one in outside]
                case ast.ClassDef():
                    inner = Scope("class", scope, node)
                    waiting += [(one, inner) for one in (*node.body, *getattr(node, "type_params", ()))]
                    waiting += [(one, scope) for one in (*node.bases, *node.keywords, *node.decorator_list)]
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    inner = Scope("comprehension", scope, node)
                    first = node.generators[0].iter
                    self.of[id(first)] = scope
                    waiting.append((first, scope))
                    for child in ast.iter_child_nodes(node):
                        if child is not node.generators[0]:
                            waiting.append((child, inner))
                    self.nodes.append(node.generators[0])
                    self.of[id(node.generators[0])] = inner
                    waiting += [(one, inner) for one in (node.generators[0].target, *node.generators[0].ifs)]
                case _:
                    waiting += [(child, scope) for child in ast.iter_child_nodes(node)]
            self.inside[id(node)] = inner

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    path = alias.name if alias.asname else alias.name.partition(".")[0]
                    scope.bind(alias.asname or path, Bound("import", path))
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    if alias.name == "*":
                        self.stars.append(str(module))
                    else:
                        path = "" if level else f"{module}.{alias.name}"
                        scope.bind(alias.asname or alias.name, Bound("import", path))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                scope.bind(name, Bound("function", node))
                self._bind_parameters(node, scope)
            case ast.Lambda():
                self._bind_parameters(node, scope)
            case ast.ClassDef(name=name):
                scope.bind(name, Bound("class", node))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value, scope)
                if scope.kind == "class" and len(targets) == 1:
                    self._bind_getter(value)
            case ast.AnnAssign(target=target, value=value) if value:
                self._assign(target, value, scope)
            case ast.NamedExpr(target=target, value=value):
                while scope.kind == "comprehension" and scope.parent:
                    scope = scope.parent
                self._assign(target, value, scope)
            case ast.For(target=target, iter=values) | ast.AsyncFor(target=target, iter=values):
                self._assign_each(target, values, scope)
            case ast.comprehension(target=target, iter=values):
                self._assign_each(target, values, scope)
            case ast.AugAssign(target=ast.Name(id=name)):
                scope.bind(name, Bound("unknown"))
            case ast.withitem(context_expr=opened, optional_vars=ast.Name(id=name)):
                scope.bind(name, Bound("with", opened))
            case ast.withitem(optional_vars=target) if target:
                self._assign(target, None, scope)
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name) if name:
                scope.bind(name, Bound("unknown"))
            case ast.MatchMapping(rest=rest) if rest:
                scope.bind(rest, Bound("unknown"))

    def _bind_getter(self, value: ast.expr) -> None:
        """`name = property(lambda self: …)`, in a class."""
        match value:
            case ast.Call(func=made_by, args=[ast.Lambda(args=given) as getter], keywords=[]):
                if len(given.args) == 1 and not given.defaults:
                    self.getters.add(id(made_by))
                    self.inside[id(getter)].names[given.args[0].arg] = [Bound("getter", made_by)]

    def _bind_parameters(self, node: Function | ast.Lambda, scope: Scope) -> None:
        inner, given = self.inside[id(node)], node.args
        in_order = [*given.posonlyargs, *given.args]
        for arg in all_parameters(node):
            if not any(one.how == "getter" for one in inner.names.get(arg.arg, ())):
                inner.bind(arg.arg, Bound("unknown"))
        is_method = (
            scope.kind == "class" and isinstance(node, Function) and not scope.elsewhere.get(node.name)
        )
        if is_method and in_order and isinstance(node, Function):
            inner.names[in_order[0].arg] = [Bound("first", node)]
            if node.name in DESCRIBING and in_order[1:]:
                inner.names[in_order[1].arg] = [Bound("described", node)]
        pairs = list(zip(in_order[::-1], given.defaults[::-1], strict=False))
        pairs += [(arg, one) for arg, one in zip(given.kwonlyargs, given.kw_defaults, strict=True) if one]
        for arg, default in pairs:
            self._assign(ast.Name(id=arg.arg, ctx=ast.Store()), default, inner)

    def _assign(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        """Bind each name of a target; side by side with the parts of a tuple."""
        waiting: list[tuple[ast.expr, ast.expr | None]] = [(target, value)]
        while waiting:
            target, value = waiting.pop()
            match target, value:
                case ast.Name(id=name), None:
                    scope.bind(name, Bound("unknown"))
                case ast.Name(id=name), _:
                    scope.bind(name, Bound("value", value))
                    if scope.kind != "class":  # where it is an attribute, which any object may hand on
                        self.aliased |= set(_sides(value))
                case (
                    (ast.Tuple(elts=parts) | ast.List(elts=parts)),
                    (ast.Tuple(elts=of) | ast.List(elts=of)),
                ) if len(parts) == len(of) and not any(isinstance(one, ast.Starred) for one in (*parts, *of)):
                    waiting += zip(parts, of, strict=True)
                case ((ast.Tuple(elts=parts) | ast.List(elts=parts)), _):
                    waiting += [(part, None) for part in parts]
                case ast.Starred(value=part), _:
                    waiting.append((part, None))

    def _assign_each(self, target: ast.expr, values: ast.expr, scope: Scope) -> None:
        if isinstance(values, ast.Tuple | ast.List) and not any(
            isinstance(v, ast.Starred) for v in values.elts
        ):
            for value in values.elts:
                self._assign(target, value, scope)
        else:
            self._assign(target, None, scope)


def _sides(value: ast.expr | None) -> Iterator[int]:
    """The ids of what an expression comes to: itself, or the sides of an `if`, an `or` and a walrus."""
    waiting = [value] if value else []
    while waiting:
        one = waiting.pop()
        yield id(one)
        match one:
            case ast.IfExp(body=body, orelse=orelse):
                waiting += [body, orelse]
            case ast.BoolOp(values=values):
                waiting += values
            case ast.NamedExpr(value=inner):
                waiting.append(inner)


def all_parameters(node: Function | ast.Lambda) -> list[ast.arg]:
    given = node.args
    extra = [one for one in (given.vararg, given.kwarg) if one]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *extra]
