"""With what a function is called, where that makes a harmless one another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review.cell import Cell
from autograder.engine.review.kinds import Known
from autograder.engine.review.words import listed

_AUTOCAST = listed("""
    torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast torch.amp.autocast_mode.autocast
""")


def about_options(cell: Cell, node: ast.Call, known: set[str]) -> Iterator[str]:
    """Of arguments that make a harmless function another one."""
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if (known & _AUTOCAST or called == "autocast") and not _is(options.get("enabled"), False):
        yield "uses `autocast`: a lower precision than asked for"
    has_more = None in options or any(isinstance(one, ast.Starred) for one in node.args)
    is_plain = (
        _is(options.get("weights_only", ast.Constant(value=True)), True) and "pickle_module" not in options
    )
    if "torch.load" in known and (has_more or not is_plain or len(node.args) > 2):
        yield "unpickles by `torch.load`"
    is_plain = _is(options.get("allow_pickle", ast.Constant(value=False)), False)
    if "numpy.load" in known and (has_more or not is_plain or len(node.args) > 2):
        yield "unpickles by `numpy.load`"
    # A record then names whoever called the cell: the file, the function, the line.
    if "warnings.catch_warnings" in known and (
        has_more or not _is(options.get("record", ast.Constant(value=False)), False)
    ):
        yield "keeps warnings by `catch_warnings`, which tell who called"
    if ("stacklevel" in options and "warnings.warn" not in known) or _is_in(node, "stacklevel"):
        yield "uses `stacklevel`, which tells who called"
    if "logging.basicConfig" in known and set(options) & {"style", None}:
        yield "formats by `logging.basicConfig`, as `str.format` does"
    if "logging.basicConfig" in known and "filename" in options and not cell.may_use_files:
        yield "uses `filename`: files"
    if "torch.save" in known and not cell.may_use_files:
        file = options.get("f", node.args[1] if len(node.args) > 1 else None)
        is_path = file is not None and (isinstance(file, ast.JoinedStr) or bool(cell.texts.of(file)))
        if is_path or any(one.path.startswith("pathlib.") for one in _made_by(cell, file)):
            yield "uses `torch.save`: files"
    if "yaml.load" in known:
        loader = options.get("Loader", node.args[1] if len(node.args) > 1 else None)
        is_safe = loader is not None and (
            {one.path for one in cell.values.known(loader)} & {"yaml.SafeLoader", "yaml.CSafeLoader"}
            or cell.values.is_own(loader)
        )
        if not is_safe:
            yield "makes objects by `yaml.load`"
    workers = options.get("num_workers")
    if workers is not None and not _is(workers, 0) and not cell.may_start_workers:
        yield "starts processes by `num_workers`"
    may_hide_them = (has_more or len(node.args) > 5) and not cell.may_start_workers
    if may_hide_them and _makes_loader(cell, node, known, called):
        yield "starts processes by `num_workers`, it may be"


def _is_in(call: ast.Call, key: str) -> bool:
    """Whether a dict that is unpacked into the call has such a key."""
    dicts = [each.value for each in call.keywords if each.arg is None and isinstance(each.value, ast.Dict)]
    return any(_is(name, key) for each in dicts for name in each.keys)


def _made_by(cell: Cell, node: ast.expr | None) -> list[Known]:
    """What makes an object, as `Path` does in `Path("x") / "y"`."""
    while isinstance(node, ast.BinOp):
        node = node.left
    return cell.values.known(node.func) if isinstance(node, ast.Call) else []


def _makes_loader(cell: Cell, node: ast.Call, known: set[str], called: str) -> bool:
    """Whether it makes a `DataLoader`, or an object of a class that is one."""
    of_own = isinstance(node.func, ast.Name) and called in cell.loaders
    return (
        of_own
        or any(path.endswith(".DataLoader") for path in known)
        or (called == "__init__" and bool(cell.loaders))
    )


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value
