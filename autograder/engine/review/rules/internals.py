"""What hands out a library's inside, by what it is called with: classes that nobody named, memory, callbacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.kinds import A_CLASS, OWN_CLASS
from autograder.engine.review.scopes import Function, all_parameters
from autograder.engine.review.words import listed

_ARRAYS = listed("numpy.ndarray numpy.ma.MaskedArray numpy.matrix numpy.chararray")
_OF_MEMORY = listed("buffer offset strides")
_ASKED = (
    "builtins.isinstance",
    "builtins.issubclass",
    "builtins.print",
    "builtins.str",
    "builtins.repr",
    "builtins.len",
    "traceback.format_exception_only",
    "traceback.format_exception",
    "traceback.print_exception",
)
_OF_DESCRIPTORS = listed("""
    os.close os.dup os.dup2 os.fchmod os.fdatasync os.fdopen os.fstat os.fsync os.ftruncate os.lseek os.pread os.pwrite
    os.read os.readv os.sendfile os.splice os.write os.writev builtins.open io.open
""")
_STANDARD = 2  # descriptors up to this one
_BACKENDS = listed("eager aot_eager inductor cudagraphs onnxrt openxla tvm")


def about_call(cell: Cell, node: ast.Call, known: set[str]) -> Iterator[str]:
    """Of a call that is harmless with other arguments."""
    called = cell.values.of(node.func)
    if A_CLASS in called and OWN_CLASS not in called:
        yield f"makes an object by `{text_of(node.func)}`, of a class that it does not name"
    yield from _about_type(cell, node)
    yield from _about_memory(cell, node, known)
    for one in node.args[: 1 + ("os.dup2" in known)] if known & _OF_DESCRIPTORS else ():
        if isinstance(one, ast.Constant) and type(one.value) is int and one.value > _STANDARD:
            yield f"uses the descriptor {one.value}, which it has not opened"
    if "torch.compile" in known or (isinstance(node.func, ast.Attribute) and node.func.attr == "compile"):
        yield from _about_compiler(cell, node)
    if "copy.deepcopy" in known:
        memo = [*node.args[1:], *(one.value for one in node.keywords if one.arg != "x")]
        if not all(_is_memo(cell, one) for one in memo):
            yield "uses the memo of `copy.deepcopy`, which keeps what lies within"
    if any(path.startswith("enum.") for path in known) and _makes_enum(cell, node):
        yield f"makes a class by `{text_of(node.func)}`"
    if cell.counts and any(path.startswith("tqdm.") for path in known):
        files = [one.value for one in node.keywords if one.arg in ("file", None)] + node.args[4:]
        if not all(_is_standard(cell, one) for one in files):
            yield f"hands `{text_of(node.func)}` a file, which another thread writes to: counts see one"


def _is_standard(cell: Cell, node: ast.expr) -> bool:
    known = [one.path for one in cell.values.known(node)]
    return bool(known) and set(known) <= {"sys.stderr", "sys.stdout"}


def _about_type(cell: Cell, node: ast.Call) -> Iterator[str]:
    """Of `type(x)` that becomes a value: who gets it can make an object of a class that no list has."""
    if not cell.values.is_call_of(node, "builtins.type") or len(node.args) != 1:
        return
    if A_CLASS not in cell.values.of(node) or id(node) in cell.scopes.aliased or cell.is_type(node):
        return
    child: ast.AST = node
    parent = cell.parents.get(id(node))
    while isinstance(parent, ast.Set | ast.SetComp | ast.IfExp | ast.Tuple | ast.List | ast.BinOp):
        child, parent = parent, cell.parents.get(id(parent))
    match parent:
        case ast.Attribute() | ast.FormattedValue() | ast.Expr() | ast.Compare() | ast.ClassDef():
            return
        case ast.Subscript(slice=key) if key is child:
            return
        case ast.Call(func=function) if function is child or cell.values.is_call_of(parent, *_ASKED):
            return
        case ast.Call() if child is node and _is_only_a_parent(cell, parent, node):
            return
    yield f"hands on the class `{text_of(node)}`"


def _is_only_a_parent(cell: Cell, call: ast.Call, argument: ast.expr) -> bool:
    """Whether it is handed to a function of the cell that has it for a parent, or names a part of it, and no more."""
    if not isinstance(call.func, ast.Name) or argument not in call.args:
        return False
    if any(one.how != "function" for one in cell.scopes.module.names.get(call.func.id, ())):
        return False
    functions = [one for one in cell.nodes if isinstance(one, Function) and one.name == call.func.id]
    place = call.args.index(argument)
    for function in functions:
        parameters = [*function.args.posonlyargs, *function.args.args]
        if place >= len(parameters):
            return False
        for one in ast.walk(function):
            if isinstance(one, ast.Name) and one.id == parameters[place].arg:
                parent = cell.parents.get(id(one))
                if not (isinstance(parent, ast.ClassDef | ast.Attribute) or cell.is_type(one)):
                    return False
    return bool(functions)


def _about_memory(cell: Cell, node: ast.Call, known: set[str]) -> Iterator[str]:
    """Of an array that is made of the bytes of another object: of its own, or by `__new__`."""
    of_class = (
        node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "__new__" else None
    )
    by_new = of_class is not None
    is_array = bool(known & _ARRAYS) or (
        of_class is not None and any(one.path in _ARRAYS for one in cell.values.known(of_class))
    )
    if not is_array and not cell.is_of_arrays:
        return
    is_own = is_array or by_new or OWN_CLASS in cell.values.of(node.func)
    names = {keyword.arg for keyword in node.keywords}
    is_starred = any(isinstance(one, ast.Starred) for one in node.args)
    if is_own and (names & {*_OF_MEMORY, None} or is_starred or len(node.args) > 2 + by_new):
        yield f"makes an array of memory by `{text_of(node.func)}`"


def _about_compiler(cell: Cell, node: ast.Call) -> Iterator[str]:
    """Of a backend, or options, of its own: they get what the compiler works with, and change the text that it runs."""
    for keyword in node.keywords:
        if keyword.arg == "backend":
            texts = cell.texts.of(keyword.value)
            if texts is None or not texts <= _BACKENDS:
                yield f"gives `{text_of(node.func)}` a backend"
        elif keyword.arg in ("options", None) and not (
            isinstance(keyword.value, ast.Constant) or _is_plain_dict(keyword.value)
        ):
            yield f"gives `{text_of(node.func)}` options"


def _is_plain_dict(node: ast.expr) -> bool:
    return isinstance(node, ast.Dict) and all(
        isinstance(one, ast.Constant) for one in (*node.keys, *node.values)
    )


def _makes_enum(cell: Cell, node: ast.Call) -> bool:
    """Whether it is `Enum("A", names)`, with names that do not stand there."""
    names = [*node.args[1:2], *(one.value for one in node.keywords if one.arg in ("names", None))]
    for one in names:
        parts = [*one.elts] if isinstance(one, ast.List | ast.Tuple) else [one]
        if isinstance(one, ast.Dict):
            parts = [part or one for part in one.keys]
        if not all(isinstance(part, ast.Constant) and "__" not in str(part.value) for part in parts):
            return True
    return False


def _is_memo(cell: Cell, node: ast.expr) -> bool:
    """Whether it is the second argument of a `__deepcopy__`, handed on."""
    return isinstance(node, ast.Name) and any(
        isinstance(one, Function)
        and one.name == "__deepcopy__"
        and [arg.arg for arg in all_parameters(one)][1:2] == [node.id]
        for one in cell.nodes
    )


def about_function(cell: Cell, node: Function) -> Iterator[str]:
    """Of a `__deepcopy__` that looks into its memo, where the originals are kept of all that is copied with it."""
    parameters = [arg.arg for arg in all_parameters(node)]
    if node.name != "__deepcopy__" or len(parameters) < 2:
        return
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id == parameters[1]:
            parent = cell.parents.get(id(one))
            is_noted = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
            is_handed_on = isinstance(parent, ast.Call) and cell.values.is_call_of(parent, "copy.deepcopy")
            if not is_noted and not is_handed_on:
                yield f"looks into `{parameters[1]}`, in which a copy keeps what lies within"
                return
