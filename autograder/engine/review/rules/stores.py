"""What a cell replaces: an attribute or an entry of what is not its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review import allowed, words
from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.kinds import MADE, OWN, OWN_CLASS, OWN_FUNCTION, Known

# A switch, such as `torch.backends.cudnn.benchmark`: assigning is how it is used.
_SETTINGS = (
    *(f"torch.backends.cudnn.{name}" for name in ("benchmark", "deterministic", "enabled", "allow_tf32")),
    "torch.backends.cuda.matmul.allow_tf32",
)
_OWN = {OWN, OWN_CLASS, OWN_FUNCTION}
_ENTRIES = ("os.environ",)  # of which entries are set, for this process alone
_LITERAL = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.JoinedStr)
_GIVE_PARTS = frozenset(
    {"get_submodule", "get", "pop", "popleft", "setdefault"}
)  # of a model or of the cell's own
_MEASURED = frozenset({"num_workers", "latency_seconds"})
_OF_HANDLES = frozenset({"id", "hooks_dict_ref", "extra_dict_ref"})  # which hook `remove` takes off


def about_store(cell: Cell, node: ast.Attribute, value: ast.AST | None = None) -> Iterator[str]:
    """Of `owner.name = value` and `del owner.name`, in whatever form Python has for it."""
    owner, name = node.value, node.attr
    found = cell.values.of(owner) if id(owner) in cell.scopes.of else frozenset({"?"})
    known = [one for one in found if isinstance(one, Known)]
    if known and all(f"{one.path}.{name}" in _SETTINGS for one in known):
        return
    if known or cell.is_class(owner) or _is_made_by_library(cell, owner):
        yield f"replaces `{text_of(node)}`, a library's"
    elif words.is_dunder(name):
        if not (found <= _OWN and name in ("__dict__", "__slots__", "__doc__", "__name__")):
            yield f"uses `{text_of(node)}`"
    elif not found <= _OWN:
        yield from _of_others(cell, node, value)


def _of_others(cell: Cell, node: ast.Attribute, value: ast.AST | None) -> Iterator[str]:
    """Where the object may be anybody's."""
    name = node.attr
    if words.leads_behind(name) or name in _MEASURED or name in _OF_HANDLES:
        yield f"replaces `{text_of(node)}`"
    elif name.startswith("_") and (name not in cell.own_private or name in allowed.names_of("hidden")):
        yield f"uses `{text_of(node)}`, a private part"
    elif name in cell.methods and not _is_number(cell, node, value):
        yield f"replaces `{text_of(node)}`"
    elif name == "grad" and isinstance(value, ast.Constant) and value.value is None:
        return  # as `zero_grad` does; of a class it would leave all without gradients
    elif cell.keeps_classes and (name in allowed.names_of("attributes") or words.is_private(name)):
        yield f"replaces `{text_of(node)}`: it may be a class of a library"


def _is_number(cell: Cell, node: ast.Attribute, value: ast.AST | None) -> bool:
    """Whether what is stored can be no function: a text, a tuple; or a number, where the cell keeps data so."""
    parent = cell.parents.get(id(node))
    if isinstance(parent, ast.AugAssign):
        return node.attr in cell.data or isinstance(parent.value, ast.Constant)
    if isinstance(value, _LITERAL):
        return True
    if node.attr not in cell.data:
        return False
    known = cell.values.known(value.func) if isinstance(value, ast.Call) else []
    return bool(known) and all(one.kind == "fixed" and one.path.startswith("builtins.") for one in known)


def _is_made_by_library(cell: Cell, owner: ast.expr) -> bool:
    """Whether this is what a call has just given, and not one of a function of the cell."""
    while isinstance(owner, ast.Attribute | ast.Subscript):
        owner = owner.value
    if not isinstance(owner, ast.Call):
        return False
    if MADE in cell.values.of(owner):
        return True
    method = owner.func
    if isinstance(method, ast.Attribute):
        is_known = method.attr in cell.own_names or method.attr in _GIVE_PARTS
        return not is_known or bool(cell.values.known(method.value))
    return not isinstance(method, ast.Name)


def about_entry(cell: Cell, node: ast.Subscript) -> Iterator[str]:
    """Of `owner[key] = value` where the owner is a library's."""
    for one in cell.values.known(node.value):
        if one.path not in _ENTRIES:
            yield f"replaces `{text_of(node)}`"


def _is_part_of_own(cell: Cell, node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and cell.values.is_own(node.value, classes=False)


def about_setattr(cell: Cell, arguments: list[ast.expr]) -> Iterator[str]:
    """Of `setattr(owner, name, value)`, which is an assignment where the cell says which name."""
    owner, name, *rest = [*arguments[:3]]
    texts = cell.texts.of(name)
    if isinstance(name, ast.Constant) and texts:
        for text in texts:
            node = ast.Attribute(value=owner, attr=text, ctx=ast.Store())
            for said in about_store(cell, node, rest[0]):
                yield f"{said}, by `setattr`"
    elif OWN_CLASS in cell.values.of(owner):
        yield f"uses `setattr({text_of(owner)}, …)`: a name of its own class is made as it runs"
    elif (
        cell.values.known(owner)
        or cell.is_class(owner)
        or _is_made_by_library(cell, owner)
        or cell.keeps_classes
    ):
        if not cell.values.is_own(owner):
            yield f"uses `setattr({text_of(owner)}, …)`, which may be of a library"
    elif not cell.values.is_own(owner) and not (
        _is_part_of_own(cell, owner) and isinstance(rest[0], _LITERAL)
    ):
        yield "uses `setattr` on what is not its own"
