"""Names that Python changes within a class: `__x` of a class `A` is `_A__x`, to everybody."""

from __future__ import annotations

import ast

_NOT_NAMES = frozenset({"value", "kind", "type_comment", "module"})  # fields of nodes that hold other texts


def mangle(tree: ast.AST) -> None:
    """Give every name the form in which Python looks it up: otherwise `_A__x` and `__x` would be two names here."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, owner = waiting.pop()
        if owner:
            _rename(node, owner)
        inner = getattr(node, "name", "").lstrip("_") if isinstance(node, ast.ClassDef) else owner
        outside = (
            [*node.bases, *node.keywords, *node.decorator_list] if isinstance(node, ast.ClassDef) else []
        )
        waiting += [(one, owner) for one in outside]
        is_outside = set(map(id, outside))
        waiting += [(one, inner) for one in ast.iter_child_nodes(node) if id(one) not in is_outside]


def _rename(node: ast.AST, owner: str) -> None:
    for field, value in ast.iter_fields(node):
        if field in _NOT_NAMES:
            continue
        if isinstance(value, str):
            setattr(node, field, _mangled(value, owner))
        elif isinstance(value, list):
            value[:] = [_mangled(one, owner) if isinstance(one, str) else one for one in value]


def _mangled(name: str, owner: str) -> str:
    return (
        f"_{owner}{name}" if name.startswith("__") and not name.endswith("__") and "." not in name else name
    )
