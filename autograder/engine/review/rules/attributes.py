"""What is read of an object: `x.name`, in whatever form Python has for it."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator

from autograder.engine.review import allowed, words
from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.kinds import MADE, Known

_OF_PROCESSES = words.listed("""
    Pool Process Queue Lock Event Manager Value Array Pipe
""")
_STREAMS = words.listed("sys.stderr sys.stdin sys.stdout")
_OF_STREAMS = words.listed(
    "write writelines flush isatty encoding errors closed name read readline readlines"
)
HANDED_ON = ("builtins.getattr", "builtins.setattr")  # `later.callback(setattr, thing, "name", value)`
_METACLASSES = ("builtins.type", "abc.ABCMeta")
_FOREACH = "torch._foreach_"
_ATTRIBUTE = re.compile(r"\.([^.\[]+)")  # in a field of `str.format`, such as `{0.name[key]}`
_UNSEEN = "works out the name of an attribute as it runs"


def about_attribute(cell: Cell, node: ast.Attribute) -> Iterator[str]:
    """Of an attribute that is read."""
    known = cell.values.known(node.value)
    said = list(_of_library(cell, node, known))
    yield from said
    if said or (known and len(known) == len(cell.values.of(node.value))):
        return
    yield from _of_object(cell, node)


def _of_library(cell: Cell, node: ast.Attribute, known: list[Known]) -> Iterator[str]:
    """Where the object is a part of a library."""
    name = node.attr
    for one in known:
        path = f"{one.path}.{name}"
        if one.kind == "module":
            kind = allowed.kind_of(path)
            if name in words.OF_MODULES or path.startswith(_FOREACH):
                continue
            if not kind or (kind == "module" and not is_step(cell, node)):
                yield f"uses `{text_of(node)}`{', a private part' if words.is_private(name) else ''}"
            elif f"torch.{name}" == path and words.leads_behind(name):
                yield f"uses `{text_of(node)}`"
        elif one.path.startswith("builtins.") and name in ("format", "format_map"):
            yield f"{_UNSEEN}, by `{text_of(node)}`"
        elif one.path in _STREAMS:
            if name not in _OF_STREAMS:
                yield f"uses `{text_of(node)}`"
        elif one.path in _METACLASSES or (name in ("mro", "register") and one.kind in ("classes", "fixed")):
            yield f"uses `{text_of(node)}`"
        elif not one.kind:  # which was spoken of, or is allowed
            yield from _judge(cell, node, names=frozenset({name}))
        else:
            yield from _judge(cell, node, names=frozenset())


def is_step(cell: Cell, node: ast.AST) -> bool:
    """Whether a module is named only to name a part of it."""
    return (
        isinstance(cell.parents.get(id(node)), ast.Attribute)
        or id(node) in cell.scopes.aliased
        or is_asked(cell, node)
    )


def is_asked(cell: Cell, node: ast.AST) -> bool:
    """Whether it is what `getattr` and the like are asked about."""
    asking = ("builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr")
    if cell.is_argument_of(node, *asking):
        return True
    parent = cell.parents.get(id(node))
    return isinstance(parent, ast.Call) and parent.args[1:2] == [node] and is_handed_on(cell, parent.args[0])


def is_handed_on(cell: Cell, node: ast.expr) -> bool:
    """Whether it is one of those, for somebody to call later."""
    return any(one.path in HANDED_ON for one in cell.values.known(node))


def _of_object(cell: Cell, node: ast.Attribute) -> Iterator[str]:
    """Where the object is none of a library's parts: of the cell's own, or handed to it."""
    name, base = node.attr, node.value
    if name in ("format", "format_map") and not (name in cell.functions and isinstance(base, ast.Name)):
        yield from about_format(cell, node)
    elif cell.values.is_own(base):
        if words.is_dunder(name):
            is_of_class = name == "__dict__" and not cell.values.is_own(base, classes=False)
            is_free = name in words.READ_FREELY | words.OWN_READ_FREELY and not is_of_class
            if not is_free and not _sets_own_field(cell, node):
                yield f"uses `{text_of(node)}`"
        elif words.leads_behind(name):
            if name not in words.MAY_BE_OWN & cell.own_names or cell.is_of_torch:
                yield f"uses `{text_of(node)}`"
        elif words.is_of_files(name) and name not in cell.own_names and not cell.may_use_files:
            yield f"uses `{text_of(node)}`"
    else:
        yield from _judge(cell, node, cell.own_names if MADE not in cell.values.of(base) else frozenset())


def _judge(cell: Cell, node: ast.Attribute, names: frozenset[str]) -> Iterator[str]:
    """By the name alone: whether it is one that objects of solutions have. `names` are those of the cell's own."""
    name = node.attr
    if words.is_dunder(name):
        named = cell.parents.get(id(node))
        is_name = name == "__class__" and isinstance(named, ast.Attribute) and named.attr == "__name__"
        if name not in words.READ_FREELY and not is_name and not _sets_own_field(cell, node):
            yield f"uses `{text_of(node)}`"
    elif words.leads_behind(name) or (words.is_of_files(name) and not cell.may_use_files):
        yield f"uses `{text_of(node)}`"
    elif words.is_private(name):
        if name not in names & cell.own_private or name in allowed.names_of("hidden"):
            yield f"uses `{text_of(node)}`, a private part"
    elif (
        name.startswith("_")
        or name in cell.given
        or (name in names and name not in allowed.names_of("elsewhere"))
    ):
        return
    elif name not in allowed.names_of("attributes") and not (
        cell.may_start_processes and name in _OF_PROCESSES
    ):
        yield f"uses `{text_of(node)}`, which is on no list"


def _sets_own_field(cell: Cell, node: ast.Attribute) -> bool:
    """`object.__setattr__(self, "field", value)`: how a frozen dataclass sets a field of its own."""
    call = cell.parents.get(id(node))
    match call:
        case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[about, ast.Constant(value=str(name)), _]):
            return call.func is node and cell.values.is_own(about, classes=False) and not name.startswith("_")
    return False


def about_format(cell: Cell, node: ast.Attribute) -> Iterator[str]:
    """`"{0.name}".format(x)` reads attributes, too."""
    texts = cell.texts.of(node.value)
    if texts is None:
        yield f"{_UNSEEN}, by `{text_of(node)}`"
    waiting = sorted(texts or ())
    while waiting:
        text = waiting.pop()
        try:
            for _, field, spec, _ in string.Formatter().parse(text):
                waiting += [spec] if spec else []
                for name in _ATTRIBUTE.findall(field or ""):
                    yield from about_named(cell, ast.Name(id="…"), name)
        except ValueError:  # it cannot be formatted either
            continue


def about_named(cell: Cell, owner: ast.expr, name: str) -> Iterator[str]:
    """Of an attribute whose name stands in a text or a pattern, what would be said of `owner.name`."""
    node = ast.Attribute(value=owner, attr=name, ctx=ast.Load())
    known = cell.values.known(owner) if id(owner) in cell.scopes.of else []
    said = list(_of_library(cell, node, known))
    yield from said or ([] if known else _of_named(cell, node))


def _of_named(cell: Cell, node: ast.Attribute) -> Iterator[str]:
    if id(node.value) in cell.scopes.of and cell.values.is_own(node.value):
        yield from _of_object(cell, node)
    else:
        yield from _judge(cell, node, cell.own_names)


def about_getattr(cell: Cell, owner: ast.expr, name: ast.expr, by: str) -> Iterator[str]:
    """Of `getattr(owner, name)` what would be said of `owner.name`, where the cell says which names there are."""
    texts = cell.texts.of(name)
    if texts is None and not (cell.values.is_own(owner, classes=False) and not cell.is_of_torch):
        yield f"{_UNSEEN}: `{by}({_named(cell, owner)}, …)`"
    for text in sorted(texts or ()):
        yield from about_named(cell, owner, text)


def _named(cell: Cell, owner: ast.expr) -> str:
    """As it stands in the cell; the name of a module is that module's alone."""
    text = text_of(owner)
    is_module = [one.path for one in cell.values.known(owner)] == [text] and len(cell.values.of(owner)) == 1
    return text if is_module or allowed.kind_of(text) != "module" else f"a variable {text}"


def about_pattern(cell: Cell, node: ast.MatchClass) -> Iterator[str]:
    """`case X(name=…)` reads attributes."""
    for name in node.kwd_attrs:
        yield from about_named(cell, ast.Name(id="…"), name)


def about_getter(cell: Cell, node: ast.Call) -> Iterator[str]:
    """`operator.attrgetter("a.b")` and `operator.methodcaller("a")`."""
    is_method = cell.values.is_call_of(node, "operator.methodcaller")
    for argument in node.args[:1] if is_method else node.args:
        texts = cell.texts.of(argument)
        if texts is None:
            yield f"{_UNSEEN}, by `{text_of(node.func)}`"
        for text in sorted(texts or ()):
            for name in text.split("."):
                if is_method and name in ("format", "format_map"):
                    yield f"{_UNSEEN}, by `{text_of(node.func)}`"
                yield from about_named(cell, ast.Name(id="…"), name)
