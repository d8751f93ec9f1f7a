"""Functions of libraries that look at no size, or keep no hold of what they look into: with what they are harmless."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.words import listed

# By these, kernels of torch take a row, or a length, for what it was when it was asked for the last time.
_TRUSTING = listed("scale_grad_by_freq return_indices sparse")
# What these give is nobody else's.
_FRESH = listed("builtins.bytearray builtins.bytes")
_COPYING = listed("join tobytes getvalue read read_bytes encode")


def about_memory(cell: Cell, node: ast.Call, known: set[str]) -> Iterator[str]:
    """Of a call by whose arguments a library reads or writes beside the memory that is its own."""
    for keyword in node.keywords:
        is_off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
        if keyword.arg in _TRUSTING and not is_off and any(path.startswith("torch.") for path in known):
            yield f"uses `{keyword.arg}`, by which torch looks at no index and no size"
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if called == "resize" and any(keyword.arg in ("refcheck", None) for keyword in node.keywords):
        yield "uses `refcheck`"  # others go on using memory that is given back
    if "torch.frombuffer" in known:
        buffers = [*node.args[:1], *(one.value for one in node.keywords if one.arg in ("buffer", None))]
        if not buffers or not all(_is_its_alone(cell, one) for one in buffers):
            yield f"gives `{text_of(node.func)}` a buffer that it can give back meanwhile"


def _is_its_alone(cell: Cell, node: ast.expr) -> bool:
    """Whether nobody can make the buffer shorter: torch takes no hold of it."""
    if isinstance(node, ast.Name):
        return _is_for_this_alone(cell, node.id)
    if isinstance(node, ast.Subscript):  # a copy of bytes, or a view that takes hold of them
        return isinstance(node.slice, ast.Slice) and "__getitem__" not in cell.functions
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Constant)
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _COPYING - cell.functions - cell.data
    known = [one.path for one in cell.values.known(node.func)]
    return len(known) == len(cell.values.of(node.func)) and set(known) <= _FRESH


def _is_for_this_alone(cell: Cell, name: str) -> bool:
    """Whether a variable is bound once, to a buffer of its own, and used for nothing else."""
    uses = [one for one in cell.nodes if isinstance(one, ast.Name) and one.id == name]
    parents = [cell.parents.get(id(one)) for one in uses]
    made = [
        one.value for one in parents if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    ]
    is_bound_once = len(made) == 1 and cell.texts.is_bound_once(name)
    others = [one for one in parents if not isinstance(one, ast.Assign)]
    return (
        is_bound_once
        and not isinstance(made[0], ast.Name)
        and _is_its_alone(cell, made[0])
        and all(cell.values.is_call_of(one, "torch.frombuffer") for one in others if one)
    )
