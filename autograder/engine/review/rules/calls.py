"""What is called: functions of which it matters with what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from autograder.engine.review import words
from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.kinds import OWN_CLASS, UNBOUND, Known
from autograder.engine.review.rules import attributes, definitions, internals, memory, options, stores

# Only called: handed on, nobody sees with what.
_ONLY_CALLED = words.listed("""
    builtins.type abc.ABCMeta builtins.getattr builtins.setattr builtins.delattr builtins.vars
    builtins.super operator.attrgetter operator.methodcaller torch.load numpy.load yaml.load
    functools.wraps torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast
    torch.utils.data.DataLoader torch.compile numpy.ndarray copy.deepcopy
""")
_CLOCK = re.compile(
    r"time\.(time|perf_counter|monotonic|process_time|thread_time|clock_gettime)(_ns)?$|datetime\.|timeit\."
    r"|torch\.utils\.benchmark\.|torch\.cuda\.Event"
)
_CHANGE_CLASSES = words.listed("""
    dataclasses.dataclass functools.total_ordering typing.final typing.runtime_checkable typing.no_type_check
    enum.unique enum.verify
""")


def about_name(cell: Cell, node: ast.Name) -> Iterator[str]:
    """Of a name that is read: a builtin that is not on the list, and what is handed on."""
    for value in cell.values.of(node):
        if value == UNBOUND:
            # Of others the cell knows as little as we do: `NameError`. What makes names as it runs is spoken of there.
            if words.is_dunder(node.id) and node.id not in words.NAMES:
                yield f"uses `{node.id}`"
            elif node.id == "__name__" and not _is_usual(cell, node):
                yield "uses `__name__`, which is another where it is graded"
            elif set(cell.scopes.stars) - {"autograder"}:
                yield f"uses `{node.id}`, which is on no list"
        elif isinstance(value, Known) and value.path.startswith("builtins.") and not value.kind:
            is_plain = node.id == "vars" and _is_plain_vars(cell, node)
            if not is_plain and not (node.id == "open" and cell.may_use_files):
                yield f"uses `{node.id}`"
    yield from about_handed_on(cell, node)
    yield from definitions.about_gated(cell, node)


def _is_usual(cell: Cell, node: ast.Name) -> bool:
    """Whether `__name__` stands in `if __name__ == "__main__":`, below no function, or in `getLogger(__name__)`."""
    compared = cell.parents.get(id(node))
    guard = cell.parents.get(id(compared))
    is_guard = isinstance(compared, ast.Compare) and isinstance(guard, ast.If) and guard.test is compared
    is_guard = is_guard and isinstance(cell.parents.get(id(guard)), ast.Module)
    return is_guard or cell.is_argument_of(node, "logging.getLogger")


def about_handed_on(cell: Cell, node: ast.Name | ast.Attribute) -> Iterator[str]:
    """Of a module, or of a function of which it matters with what it is called, that becomes a value."""
    for one in cell.values.known(node):
        if one.kind == "module":
            is_vars = cell.is_argument_of(node, "builtins.vars")  # which is spoken of there
            if not is_vars and not attributes.is_step(cell, node):
                yield f"hands on the module `{text_of(node)}`"
        elif _CLOCK.match(one.path) and not cell.may_read_clocks:
            yield f"reads a clock by `{one.path}`: what it does could hang on when it runs"
        elif one.path in _ONLY_CALLED and not _is_only_called(cell, node, one):
            yield f"hands on `{text_of(node)}`"


def _is_only_called(cell: Cell, node: ast.Name | ast.Attribute, one: Known) -> bool:
    """Whether a function, or a class, is called, stands for a type, or is told apart in another way."""
    parent = cell.parents.get(id(node))
    if (
        id(node) in cell.scopes.aliased
        or cell.is_type(node)
        or isinstance(parent, ast.Attribute | ast.ClassDef)
    ):
        return True
    if one.path.endswith(".DataLoader") and cell.may_start_workers:
        return True
    if one.path == "torch.compile" and _is_decorator(cell, node):
        return True
    match parent:
        case ast.keyword(arg="metaclass"):
            return True
        case ast.Call(func=function, args=arguments) if function is not node and arguments[:1] == [node]:
            if one.path == "builtins.type":  # `map(type, values)`; with more it makes classes
                return cell.values.is_call_of(parent, "builtins.map") and len(arguments) == 2
            return len(arguments) > 2 and one.path in attributes.HANDED_ON
        case ast.Call(func=function):
            return function is node and one.path != "abc.ABCMeta"
    return False


def _is_plain_vars(cell: Cell, node: ast.Name) -> bool:
    """`vars(self)`; `vars(thing).update(name=value)`, an assignment; torch's dtypes by their names."""
    call = cell.parents.get(id(node))
    if not isinstance(call, ast.Call) or call.func is not node or len(call.args) != 1:
        return False
    owner, above = call.args[0], cell.parents.get(id(call))
    if cell.values.is_own(owner, classes=False) or _root_is_own(cell, owner):
        return True
    used = cell.parents.get(id(above))
    if (
        not isinstance(above, ast.Attribute)
        or not isinstance(used, ast.Call)
        or used.func is not above
        or used.args
    ):
        return False
    if above.attr == "update":
        named = [ast.Attribute(value=owner, attr=k.arg or "_", ctx=ast.Store()) for k in used.keywords]
        return not any(list(stores.about_store(cell, one)) for one in named)
    match above.attr, cell.parents.get(id(used)):
        case "values", ast.comprehension(target=ast.Name(id=name), ifs=[first, *_]):
            return _asks_for_dtype(cell, first, name)
        case "items", ast.comprehension(
            target=ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]), ifs=[first, *_]
        ):
            return _asks_for_dtype(cell, first, name)
    return False


def _asks_for_dtype(cell: Cell, node: ast.expr, name: str) -> bool:
    """`isinstance(name, torch.dtype)`, before anything else is done with it."""
    match node:
        case ast.Call(args=[ast.Name(id=asked), kind]) if cell.values.is_call_of(node, "builtins.isinstance"):
            is_dtype = [one.path for one in cell.values.known(kind)] == ["torch.dtype"]
            return asked == name and is_dtype and len(cell.values.of(kind) | cell.values.of(node.func)) == 2
    return False


def _root_is_own(cell: Cell, node: ast.expr) -> bool:
    """`vars(self.scale)`: a part of its own."""
    return isinstance(node, ast.Attribute) and cell.values.is_own(node.value, classes=False)


def about_call(cell: Cell, node: ast.Call) -> Iterator[str]:
    """Of a call, by what is called and with what."""
    known = {one.path for one in cell.values.known(node.func)}
    arguments = node.args
    is_later = bool(arguments) and attributes.is_handed_on(cell, arguments[0]) and len(arguments) > 2
    if is_later:
        known |= {one.path for one in cell.values.known(arguments[0])}
        arguments = arguments[1:]
    if known & {"builtins.getattr", "builtins.hasattr"} and len(arguments) > 1:
        by = "hasattr" if "builtins.hasattr" in known else "a later getattr" if is_later else "getattr"
        yield from attributes.about_getattr(cell, arguments[0], arguments[1], by)
    if known & {"builtins.setattr"} and len(arguments) > 2:
        yield from stores.about_setattr(cell, arguments)
    if known & {"builtins.getattr", "builtins.setattr"} and any(
        isinstance(a, ast.Starred) for a in arguments
    ):
        yield f"calls `{text_of(node.func)}` with what nobody sees"
    if known & {"operator.attrgetter", "operator.methodcaller"}:
        yield from attributes.about_getter(cell, node)
    is_type_of_type = cell.values.is_call_of(node.func, "builtins.type") and len(node.args) == 3
    if is_type_of_type or ("builtins.type" in known and len(node.args) + len(node.keywords) != 1):
        yield "makes a class by `type`"
    yield from options.about_options(cell, node, known)
    yield from internals.about_call(cell, node, known)
    yield from memory.about_memory(cell, node, known)
    for path in known & _CHANGE_CLASSES:
        for one in node.args:
            if OWN_CLASS not in cell.values.of(one) and not isinstance(one, ast.Constant | ast.UnaryOp):
                yield f"changes a class by `{path}`"
    if "functools.wraps" in known and (len(node.args) != 1 or node.keywords or not _is_decorator(cell, node)):
        yield "sets attributes by `functools.wraps`"


def _is_decorator(cell: Cell, node: ast.AST) -> bool:
    parent = cell.parents.get(id(node))
    return isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and node in parent.decorator_list
