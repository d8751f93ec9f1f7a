"""What a cell says of itself: the exercises that it is marked for, the names that it defines, whether it is a stub."""

from __future__ import annotations

import ast
import re

from autograder.engine.source.python import MAX_CELL, as_python, parse

# It cannot try one character more often than a few times, whatever the text.
_MARK = re.compile(
    r"""^[ \t]*@(?:autograder\.)?exercise\([ \t]*(['"])(?P<id>\d{1,4}\.\d{1,4})\1[ \t]*\)""", re.MULTILINE
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def exercise_ids(source: str) -> list[str]:
    """The ids that a cell is marked for; found by text where Python cannot read it: an error hides nothing."""
    if "exercise" not in source:
        return []
    tree = parse(as_python(source)) if len(source) <= MAX_CELL else None
    return marked_ids(source) if tree is None else ids_in(tree)


def marked_ids(source: str) -> list[str]:
    """The ids of `@exercise("…")` at the start of a line, whether or not Python can read the cell."""
    return [match["id"] for match in _MARK.finditer(source)]


def ids_in(tree: ast.Module) -> list[str]:
    """The ids that `exercise` is given where its answer is applied to something, as the kernel accepts it: by a line
    above a definition or by a call. Who only speaks of it, as `print(exercise("1.3"))`, marks nothing."""
    nodes = list(ast.walk(tree))
    names = _Names(nodes)
    applied = [line for node in nodes if isinstance(node, _DEFINITIONS) for line in node.decorator_list]
    applied += [node.func for node in nodes if isinstance(node, ast.Call) and node.args]
    return [found for node in applied if (found := names.mark(node))]


class _Names:
    """What the names of a cell stand for, as far as a glance shows: ids, `exercise`, and what it was called with."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        self.of_exercise, self.constants, self.marks = {"exercise"}, dict[str, str](), dict[str, str]()
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                self.of_exercise |= {
                    each.asname for each in node.names if each.name == "exercise" and each.asname
                }
        for node in nodes:
            if isinstance(node, ast.Assign):
                targets = [each.id for each in node.targets if isinstance(each, ast.Name)]
                if self._is_exercise(node.value):
                    self.of_exercise |= {*targets}
                elif found := _text(node.value):
                    self.constants |= dict.fromkeys(targets, found)
        for node in nodes:  # behind the others, whose names it may use
            if isinstance(node, ast.Assign) and (found := self.mark(node.value)):
                self.marks |= {each.id: found for each in node.targets if isinstance(each, ast.Name)}

    def mark(self, node: ast.expr) -> str:
        """The id that a call of `exercise`, or a name for one, was given; "" for anything else."""
        if isinstance(node, ast.Name):
            return self.marks.get(node.id, "")
        if not isinstance(node, ast.Call) or not self._is_exercise(node.func):
            return ""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if len(given) != 1:
            return ""
        named = self.constants.get(given[0].id, "") if isinstance(given[0], ast.Name) else ""
        return named or _text(given[0])

    def _is_exercise(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr == "exercise"
        return isinstance(node, ast.Name) and node.id in self.of_exercise


def _text(node: ast.expr) -> str:
    # A whole number may have too many digits.
    is_id = isinstance(node, ast.Constant) and isinstance(node.value, str | float)
    return str(node.value) if is_id else ""  # type: ignore[attr-defined]


def bound_names(source: str) -> set[str]:
    """The names that a text binds as a cell; none where it is no Python."""
    tree = parse(source) if len(source) <= MAX_CELL else None
    return set() if tree is None else names_in(tree)


def names_in(tree: ast.Module) -> set[str]:
    """The names that a cell binds for the cells below it."""
    found, ahead = set[str](), list[ast.AST](tree.body)
    while ahead:
        node = ahead.pop()
        if isinstance(node, _DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif not isinstance(node, ast.Lambda):  # what stands in it is its own
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            ahead += ast.iter_child_nodes(node)
    return found


def definitions_in(tree: ast.Module) -> set[str]:
    """The functions and classes that stand in a cell by themselves."""
    return {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}


def is_stub(source: str, entry: str) -> bool:
    """Whether the cell is as it came: every body of `entry` that matters still raises NotImplementedError."""
    tree = parse(source) if len(source) <= MAX_CELL else None
    return tree is not None and is_open(tree, entry)


def is_open(tree: ast.Module, entry: str) -> bool:
    """`is_stub` of a cell that was read."""
    for node in reversed(tree.body):  # the last to have the name is what Python keeps
        if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == entry for name in node.targets):
            return False
        if isinstance(node, _DEFINITIONS) and node.name == entry:
            methods = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            marks = [_is_left_open(method) for method in methods if method.name != "__init__"]
            return bool(marks) and all(marks)
    return False


def _is_left_open(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = function.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
