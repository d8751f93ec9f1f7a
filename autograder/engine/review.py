"""What in the text of a cell a person should look at: means that no exercise needs, and that cheats do.

Learner code shares its process with the harness that calls it, and Python lets code change anything in its own
process. What matters is therefore worked out or repeated elsewhere; what only that process can know, such as a count
of syncs, rests on code that does not reach behind its back. Here the grader reads the cell before it runs, in a
process that the cell never sees, and notes what reaches. A note costs no points.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator

from autograder.engine.review_names import texts_of


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MODULES = _words("""
    __main__ _ctypes _signal _thread atexit builtins cffi code codeop ctypes dis faulthandler importlib inspect
    linecache marshal mmap psutil ptrace resource runpy signal socket subprocess traceback wire worker
    course_lib.measuring.counters course_lib.measuring.counts course_lib.measuring.operators
    course_lib.counters course_lib.old_names.counters unittest.mock torch.overrides torch.utils.cpp_extension
""")
_THREADS = _words("asyncio concurrent multiprocessing threading")
_BUILTINS = _words("__builtins__ __import__ breakpoint compile delattr eval exec input locals open vars")
_ATTRIBUTES = _words("""
    __bases__ __builtins__ __closure__ __code__ __defaults__ __delattr__ __dict__ __func__ __getattribute__
    __globals__ __kwdefaults__ __loader__ __mro__ __reduce__ __setattr__ __spec__ __subclasses__ __wrapped__
    cell_contents f_back f_code f_globals f_locals tb_frame tb_next gi_frame gi_code cr_frame ag_frame
    get_objects get_referents get_referrers untyped_storage from_address
    fromfile memmap tofile latency_seconds bfloat16 half set_autocast_enabled set_default_dtype
""")
_SYS = _words("modules settrace setprofile meta_path path_hooks addaudithook path excepthook unraisablehook")
# All else is noted.
_OS = _words("PathLike cpu_count environ fspath getpid linesep path process_cpu_count sched_getaffinity sep")
_SETTINGS = (
    "torch.backends."  # a switch, such as `torch.backends.cudnn.benchmark`: assigning is how it is used
)
_OWN = _words("self cls")
# Of torch, what a module's parts and the versions of a state_dict are kept in among it; and the public methods of
# named tuples, which have their underscore so that no field may bear their name.
_PRIVATE_BUT_KNOWN = (
    *("_foreach_", "_fused_", "_dynamo", "_modules", "_parameters", "_buffers", "_metadata"),
    *("_non_persistent_buffers_set", "_flatten_dense_tensors", "_unflatten_dense_tensors"),
    *("_checkpoint_wrapped_module", "_pytree", "_utils"),
    *("_asdict", "_fields", "_make", "_replace"),
)


def reasons(source: str, *, counts: bool, allowed: Collection[str] = ()) -> list[str]:
    """Why a person should look at this cell, one sentence for each means; empty for nearly every cell.

    Args:
        counts: the exercise rests on counts of operators, which another thread would hide.
        allowed: what it is about, such as "os.fsync", and therefore nobody's suspicion.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # it does not run either
    scan = _Scan(tree, counts)
    found = [
        (line, what)
        for line, what in sorted(scan.found())
        if not any(f"`{name}`" in what or (name.startswith("__") and f".{name}`" in what) for name in allowed)
    ]
    lines = {f"the cell {what} (line {line})": None for line, what in found}
    return list(lines)[:8]


class _Scan:
    def __init__(self, tree: ast.Module, counts: bool) -> None:
        self.tree, self.counts = tree, counts
        self.foreign = {name for node in ast.walk(tree) for name in _bound_by_import(node)}
        self._follow_aliases()
        self.own = _OWN | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self.own |= set(self._made_of_own()) - self.foreign
        self.methods = {
            method.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for method in node.body
            if isinstance(method, ast.FunctionDef)
        }
        self.plain = {id(name) for node in ast.walk(tree) for name in self._own_attributes(node)}

    def found(self) -> Iterator[tuple[int, str]]:
        for node in ast.walk(self.tree):
            for what in self._about(node):
                yield getattr(node, "lineno", 0), what

    def _made_of_own(self) -> Iterator[str]:
        """Names of objects of the cell's own classes: `ledger = Ledger(…)`."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=made))):
                    if made in self.own:
                        yield name

    def _own_attributes(self, node: ast.AST) -> Iterator[ast.AST]:
        """Where an object asks for all attributes of its own, or sets one: `vars(self)`, `self.__dict__`."""
        match node:
            case ast.Call(func=ast.Name(id="vars"), args=[about]) if _root(about) in self.own:
                yield node.func
            case ast.Call(  # how a frozen dataclass sets a field of its own
                func=ast.Attribute(value=ast.Name(id="object"), attr="__setattr__"),
                args=[ast.Name(id="self"), ast.Constant(value=str(name)), _],
            ) if not name.startswith("_"):
                yield node.func
            case ast.Attribute(attr="__dict__", value=ast.Name(id=name)) if name in self.own:
                yield node
            case ast.Call(  # `vars(thing).update(name=value)` is an assignment, too
                func=ast.Attribute(
                    value=ast.Call(func=ast.Name(id="vars") as used, args=[owner]), attr="update"
                ),
                args=[],
                keywords=named,
            ) if all(self._is_assignable(owner, keyword.arg or "_") for keyword in named):
                yield used

    def _about(self, node: ast.AST) -> Iterator[str]:
        if id(node) in self.plain:
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from self._about_import(node)
        elif isinstance(node, ast.Name) and node.id in _BUILTINS:
            yield f"uses `{node.id}`"
        elif isinstance(node, ast.Call):
            yield from self._about_call(node)
        elif isinstance(node, ast.Attribute):
            yield from self._about_attribute(node)

    def _about_call(self, node: ast.Call) -> Iterator[str]:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else _name(node.func)
        is_own = bool(node.args) and _root(node.args[0]) in self.own
        if called == "getattr" and not is_own and len(node.args) > 1:
            yield from self._about_named_attribute(*node.args[:2])
        elif called == "setattr" and not is_own and not self._is_plain_assignment(node):
            yield "uses `setattr` on what is not its own"
        elif called == "autocast" and not any(
            k.arg == "enabled" and _is_constant([k.value]) for k in node.keywords
        ):
            yield "uses `autocast`: a lower precision than asked for"

    def _about_named_attribute(self, owner: ast.expr, name: ast.expr) -> Iterator[str]:
        """Of `getattr(owner, name)` what would be said of `owner.name`, where the cell says which names there are."""
        names = texts_of(name, self.tree)
        if names is None:
            yield "works out the name of an attribute as it runs, by `getattr`"
        for text in sorted(names or ()):
            yield from self._about_attribute(ast.Attribute(value=owner, attr=text, ctx=ast.Load()))

    def _is_plain_assignment(self, node: ast.Call) -> bool:
        """Whether this `setattr` is `thing.name = value`, which is nobody's suspicion where nothing is imported."""
        match node.args:
            case [ast.Name() | ast.Attribute() as owner, ast.Constant(value=str(name)), _]:
                return self._is_assignable(owner, name)
        return False

    def _is_assignable(self, owner: ast.expr, name: str) -> bool:
        """Whether `owner.name = value` is nobody's suspicion."""
        is_foreign = _root(owner) in self.foreign | {"()", ""}
        return not is_foreign and not name.startswith("_") and name not in _ATTRIBUTES

    def _about_import(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            root, *rest = name.split(".")
            if any(name == module or name.startswith(module + ".") for module in _MODULES):
                yield f"imports `{name}`"
            elif (root == "autograder" and len(rest) > 1) or any(map(_is_private, rest)):
                yield f"imports `{name}`, a private part"
            elif self.counts and root in _THREADS:
                yield f"imports `{name}`: counts see one thread of one process"
            elif rest and ((root == "os" and rest[0] not in _OS) or (root == "sys" and rest[0] in _SYS)):
                yield f"imports `{name}`"

    def _about_attribute(self, node: ast.Attribute) -> Iterator[str]:
        base, root = _name(node.value), _root(node)
        if isinstance(node.ctx, ast.Store) and ast.unparse(node).startswith(_SETTINGS):
            return
        if isinstance(node.ctx, ast.Store | ast.Del) and (
            root in self.foreign or (root == "()" and not self._is_made_by_own_method(node.value))
        ):
            yield f"replaces `{ast.unparse(node)}`"
        elif node.attr in _ATTRIBUTES or (base == "sys" and node.attr in _SYS):
            yield f"uses `{ast.unparse(node)[-60:]}`"
        elif base == "os" and node.attr not in _OS:
            yield f"uses `os.{node.attr}`"
        elif _is_private(node.attr) and root not in self.own and base not in self.own:
            yield f"uses `{ast.unparse(node)[-60:]}`, a private part"

    def _is_made_by_own_method(self, node: ast.expr) -> bool:
        """Whether this is what a method gives that the cell defines itself: `self.nearest(moment).total += 1`."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                return name not in self.foreign and method in self.methods
        return False

    def _follow_aliases(self) -> None:
        """Names that stand for parts of an imported module: `M = nn.Module`, `for M in (torch.Tensor, …)`."""
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Attribute | ast.Name)
                and _root(node.value) in self.foreign
            ):
                self.foreign |= {target.id for target in node.targets if isinstance(target, ast.Name)}


def _bound_by_import(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return set()


def _root(node: ast.AST) -> str:
    """The name that a chain of attributes starts with; "()" for the result of a call."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return "()" if isinstance(node, ast.Call) else _name(node)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_constant(arguments: list[ast.expr]) -> bool:
    return bool(arguments) and isinstance(arguments[0], ast.Constant)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and not name.startswith(_PRIVATE_BUT_KNOWN)
