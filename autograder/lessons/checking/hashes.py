"""Whether what a cell does may hang on the seed with which each Python hashes texts."""

from __future__ import annotations

import ast

_NAMES = {
    *("hash", "__hash__", "set", "frozenset", "WeakSet", "KeysView", "ItemsView", "keys", "items"),
    *("union", "intersection", "difference", "symmetric_difference", "id"),
}
"""What hashes, what gives a set, or could: views of a dict are sets where two are joined."""


def may_hash_texts(source: str) -> bool:
    """Whether a cell hashes, or goes over a set: all that Python's seed of hashes decides.

    Asked first, for a fresh interpreter takes seconds to load torch.
    """
    return any(
        isinstance(node, ast.Set | ast.SetComp)
        or (isinstance(node, ast.Name) and node.id in _NAMES)
        or (isinstance(node, ast.Attribute) and node.attr in _NAMES)
        or (isinstance(node, ast.alias) and node.name in _NAMES)
        for node in ast.walk(ast.parse(source))
    )
