"""A cell that has been parsed, and what its rules ask of it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterator

from autograder.engine.review import allowed
from autograder.engine.review.kinds import A_CLASS, OWN_CLASS
from autograder.engine.review.scopes import Function, Scopes
from autograder.engine.review.texts import Texts
from autograder.engine.review.values import Values

_WITH_PARTS = ("torch.nn.", "torch.Tensor", "torch.FloatTensor", "numpy.", "pathlib.")
_IS_NAME = re.compile(r"[\w.]{1,40}", re.ASCII)
_LONG = 200  # characters of a text that is no list of names
_OF_TYPES = frozenset({"dataclasses.fields", "typing.get_args", "typing.get_origin"})
_NOT_KEPT = ("builtins.isinstance", "builtins.issubclass", "builtins.super", "builtins.map")


class Cell:
    """A cell, what its names stand for, and what its exercise allows.

    Attributes:
        counts: the exercise rests on counts, which another thread would hide.
        given: names of attributes that the exercise's objects have; `given_methods`: those that are called;
            `given_private`: those that are the harness's own.
        entry: what it is asked for.
    """

    def __init__(
        self,
        tree: ast.Module,
        *,
        counts: bool,
        allowed_names: Collection[str],
        given: Collection[str],
        given_methods: Collection[str],
        given_private: Collection[str] = (),
        entry: str = "",
    ) -> None:
        self.scopes = Scopes(tree)
        self.nodes = self.scopes.nodes
        self.texts = Texts(self.scopes, entry)
        self.values = Values(self.scopes, self.texts)
        self.counts, self.given = counts, frozenset(given)
        self.methods = allowed.names_of("methods") | frozenset(given_methods)
        self.may_choose = any(name.startswith("getattr(") for name in allowed_names)
        self.may_read_clocks = "clock" in allowed_names
        self.may_use_files = "open" in allowed_names
        self.may_start_processes = "multiprocessing" in allowed_names
        self.may_start_workers = self.may_start_processes or "num_workers" in allowed_names
        self.parents = {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.loaders = frozenset(
            node.name
            for node in self.nodes
            if isinstance(node, ast.ClassDef)
            and any(
                one.path.endswith(".DataLoader") for base in node.bases for one in self.values.known(base)
            )
        )
        self.is_of_torch = any(map(self._is_of_torch, self.nodes))
        self.is_of_arrays = any(self._is_of(node, "numpy.") for node in self.nodes)
        self.functions = frozenset(
            getattr(node, "name", "") for node in self.nodes if isinstance(node, Function)
        )
        self.data = frozenset(self._data())
        self.own_names = frozenset(self._own_names()) | self.data
        # A private name is its own where it gives it to an object of its own, and nobody's for being written somewhere.
        self.own_private = (self.data | self._of_its_classes()) - frozenset(given_private)
        # What reads types gives classes, too.
        self.keeps_classes = any(self._is_kept(node) or self._reads_types(node) for node in self.nodes)

    def _is_of_torch(self, node: ast.AST) -> bool:
        """Whether it is a class whose objects have parts of a library, of which the cell may name some as it runs."""
        may_be = isinstance(node, ast.ClassDef) and any(
            A_CLASS in self.values.of(base) for base in node.bases
        )
        return may_be or self._is_of(node, *_WITH_PARTS)

    def _is_of(self, node: ast.AST, *libraries: str) -> bool:
        """Whether it is a class, and one of its parents begins so."""
        if not isinstance(node, ast.ClassDef):
            return False
        return any(one.path.startswith(libraries) for base in node.bases for one in self.values.known(base))

    def _data(self) -> Iterator[str]:
        """Attributes that the cell keeps data in."""
        for node in self.nodes:
            match node:
                case ast.Attribute(value=base, attr=name, ctx=ast.Store()) if self.values.is_own(base):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()) if self.scopes.of[id(node)].kind == "class":
                    yield name
                case ast.Call(func=ast.Name(id="setattr"), args=[base, ast.Constant(value=str(name)), _]):
                    if self.values.is_own(base):
                        yield name
                case ast.Call(func=function, keywords=named):
                    if any(one.path == "types.SimpleNamespace" for one in self.values.known(function)):
                        yield from (keyword.arg for keyword in named if keyword.arg)

    def _of_its_classes(self) -> frozenset[str]:
        """What its classes define."""
        return frozenset(
            node.name
            for node in self.nodes
            if isinstance(node, Function) and self.scopes.of[id(node)].kind == "class"
        )

    def _own_names(self) -> Iterator[str]:
        """All other names of attributes that the cell gives to what is its own."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Call):
                yield from (keyword.arg for keyword in node.keywords if keyword.arg)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < _LONG:
                yield from _words_in(node)  # such as the columns of a record array

    def _reads_types(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in ("__annotations__", "__dataclass_fields__"):
            return True
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        return any(one.path in _OF_TYPES for one in self.values.known(node))

    def _is_kept(self, node: ast.AST) -> bool:
        """Whether this hands a class that could be changed to who knows whom: then any object may be that class."""
        if not isinstance(node, ast.Name | ast.Attribute | ast.Call) or id(node) in self.scopes.aliased:
            return False
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return False
        parent = self.parents.get(id(node))
        if any(one.path == "builtins.type" for one in self.values.known(node)):  # `map(type, values)`
            return not (isinstance(parent, ast.Call) and parent.func is node) and not self.is_type(node)
        if not any(one == A_CLASS or getattr(one, "kind", "") == "classes" for one in self.values.of(node)):
            return False
        if isinstance(parent, ast.Call) and (
            parent.func is node or self.values.is_call_of(parent, *_NOT_KEPT)
        ):
            return False
        passing = (
            ast.Attribute | ast.ClassDef | ast.FormattedValue | ast.If | ast.While | ast.Assert | ast.withitem
        )
        if isinstance(parent, passing | ast.Expr | ast.Compare | ast.Raise):
            return False
        is_decorator = (
            isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and node in parent.decorator_list
        )
        return not is_decorator and not self.is_type(node)

    def is_type(self, node: ast.AST) -> bool:
        """Whether it stands for a type: in an annotation, an `isinstance`, an `except` or a pattern."""
        child, parent = self._whole(node)
        if isinstance(parent, ast.Call):
            is_asked = self.values.is_call_of(parent, "builtins.isinstance", "builtins.issubclass")
            return is_asked and parent.args[1:] == [child]
        is_named = isinstance(parent, ast.ExceptHandler | ast.MatchClass | ast.Compare | ast.ClassDef)
        return is_named or self.is_annotation(node)

    def is_annotation(self, node: ast.AST) -> bool:
        """Whether it is an annotation, or a part of one."""
        child, parent = self._whole(node)
        match parent:
            case ast.AnnAssign() | ast.arg():
                return parent.annotation is child
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return parent.returns is child
        return False

    def _whole(self, node: ast.AST) -> tuple[ast.AST, ast.AST | None]:
        """The type that it is a part of, as `int` of `list[int] | None`, and where that stands."""
        child, parent = node, self.parents.get(id(node))
        while isinstance(parent, ast.Tuple | ast.BinOp | ast.Subscript | ast.List):
            child, parent = parent, self.parents.get(id(parent))
        return child, parent

    def is_argument_of(self, node: ast.AST, *paths: str) -> bool:
        """Whether it is the first argument in a call of one of these."""
        parent = self.parents.get(id(node))
        return (
            isinstance(parent, ast.Call)
            and parent.args[:1] == [node]
            and self.values.is_call_of(parent, *paths)
        )

    def is_class(self, node: ast.AST) -> bool:
        """Whether it can be a class that is not the cell's own."""
        found = self.values.of(node)
        return A_CLASS in found and OWN_CLASS not in found


def _words_in(node: ast.Constant) -> Iterator[str]:
    yield from str(node.value).replace(",", " ").split()


def text_of(node: ast.AST, longest: int = 60) -> str:
    """As it stands in the cell, its end where it is long. A text in it that is no name is left out: it could be
    written to be taken for something else."""
    return ast.unparse(_WithoutTexts().visit(copy.deepcopy(node)))[-longest:]


class _WithoutTexts(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        is_text = isinstance(node.value, str | bytes)
        return ast.Constant("…") if is_text and not _IS_NAME.fullmatch(str(node.value)) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("…")
