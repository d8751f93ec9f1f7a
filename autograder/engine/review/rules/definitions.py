"""What a cell's own classes say of themselves, and what it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review import allowed, words
from autograder.engine.review.cell import Cell

_THREADS = ("asyncio", "concurrent", "multiprocessing", "threading")
_PROCESSES = ("multiprocessing", "concurrent.futures.ProcessPoolExecutor", "torch.multiprocessing")
_THREADS_ALONE = ("multiprocessing.pool.ThreadPool", "multiprocessing.dummy")
_FILES = ("tempfile", "shutil", "zipfile", "glob", "gzip", "numpy.save", "numpy.savez", "numpy.load")
_WHOLE = ("autograder.*", "math.*", "itertools.*")  # of which every name is on the list
_WRITING = (".atomic_file", ".atomic_write_text")  # of course_lib, in whichever module
_COMPARED = words.listed("""
    builtins.float builtins.int builtins.complex builtins.str builtins.bytes builtins.list builtins.tuple builtins.dict
    builtins.set builtins.frozenset torch.Tensor numpy.ndarray
""")


def about_import(cell: Cell, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Of what is not on the list, and of what the exercise must allow."""
    if isinstance(node, ast.Import):
        paths = [alias.name for alias in node.names]
    else:
        paths = [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
    for path in paths:
        if cell.scopes.of[id(node)].kind == "class":
            yield f"imports `{path}` in a class, which hands it on"
        elif path.startswith("__future__."):
            continue
        elif path.endswith(".*") and allowed.kind_of(path[:-2]) == "module":
            if path not in _WHOLE:
                yield f"imports `{path}`, whatever names that binds"
            yield from _asked_for(cell, path[:-2], "imports")
        elif not allowed.kind_of(path) or (
            isinstance(node, ast.Import) and allowed.kind_of(path) != "module"
        ):
            yield _of_unlisted(path)
        else:
            yield from _asked_for(cell, path, "imports")


def _of_unlisted(path: str) -> str:
    is_private = any(map(words.is_private, path.split("."))) or path.startswith("autograder.")
    return f"imports `{path}`{', a private part' if is_private else ''}"


def _asked_for(cell: Cell, path: str, how: str) -> Iterator[str]:
    """What only some exercises allow."""
    if cell.counts and path.partition(".")[0] in _THREADS:
        yield f"{how} `{path}`: counts see one thread of one process"
    elif _is_under(path, _PROCESSES) and not _is_under(path, _THREADS_ALONE) and not cell.may_start_processes:
        if path != "multiprocessing.pool":
            yield f"{how} `{path}`: other processes"
    elif (_is_under(path, _FILES) or path.endswith(_WRITING)) and not cell.may_use_files:
        yield f"{how} `{path}`: files"
    elif path.startswith("torch.") and words.leads_behind(path.rpartition(".")[2]):
        yield f"{how} `{path}`"


def about_gated(cell: Cell, node: ast.Name | ast.Attribute) -> Iterator[str]:
    """Of what only some exercises allow, and which came with its package or by `import *`."""
    for one in cell.values.known(node):
        if one.kind not in ("", "module") and (isinstance(node, ast.Attribute) or cell.scopes.stars):
            if _is_under(one.path, (*_PROCESSES, *_FILES)) or one.path.endswith(_WRITING):
                yield from _asked_for(cell, one.path, "uses")
            elif isinstance(node, ast.Name) and words.leads_behind(node.id):
                yield f"uses `{node.id}`"


def _is_under(path: str, modules: tuple[str, ...]) -> bool:
    return any(path == module or path.startswith(f"{module}.") for module in modules)


def about_class(cell: Cell, node: ast.ClassDef) -> Iterator[str]:
    """Of metaclasses, and of methods by which an object deceives whoever compares, copies or frees it."""
    bases = [one for base in node.bases for one in cell.values.known(base)]
    for keyword in node.keywords:
        known = [one.path for one in cell.values.known(keyword.value)]
        if keyword.arg in ("metaclass", None) and known != ["abc.ABCMeta"]:
            yield f"gives `{node.name}` a metaclass"
    if cell.counts and any(one.path.startswith("tqdm.") for one in bases):
        yield f"makes a progress bar of `{node.name}`, which another thread calls: counts see one"
    if any(one.path in ("builtins.type", "abc.ABCMeta") for one in bases):
        yield f"makes a metaclass of `{node.name}`"
    for name in _defined(node):
        if not words.is_dunder(name):
            continue
        if name not in words.DEFINED_FREELY:
            yield f"defines `{node.name}.{name}`"
        elif name in words.COMPARING and any(one.path in _COMPARED for one in bases):
            yield f"defines `{node.name}.{name}`: what compares it gets its answer"
        elif name == "__match_args__":
            yield "defines `__match_args__`: a pattern then reads what it names"


def _defined(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class's body binds."""
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        one = waiting.pop()
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in one.names)
            case ast.Lambda():
                continue
            case _:
                waiting += ast.iter_child_nodes(one)


def about_text(cell: Cell, node: ast.Constant) -> Iterator[str]:
    """Of a text that names the system's own files."""
    text = node.value.decode(errors="replace") if isinstance(node.value, bytes) else str(node.value)
    if "/proc" in text or text.startswith(("/dev", "/sys")):
        yield f"names `{text[:60]}`"
