"""Tells the grader what a cell does, or has a library do for it, that solutions do not need. The grader judges it.

Python raises an audit event for each. Whose doing it was is in the stack: of the frames below the event the first that
is no library's is the cell's, and not the harness's, which may have been asked for it in between.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import paths  # type: ignore[import-not-found]

CELL_NAME = "<your cell>"
_WORDS = """
    _thread.start_new_thread code.__new__ compile exec cpython.run_command cpython.run_file cpython.run_interactivehook
    cpython.run_module cpython.run_startup cpython.run_stdin ctypes.PyObj_FromPtr ctypes.addressof ctypes.call_function
    ctypes.cdata ctypes.cdata/buffer ctypes.create_string_buffer ctypes.create_unicode_buffer ctypes.dlopen ctypes.dlsym
    ctypes.dlsym/handle ctypes.string_at ctypes.wstring_at gc.get_objects gc.get_referents gc.get_referrers import
    marshal.load marshal.loads mmap.__new__ os.exec os.fork os.forkpty os.posix_spawn os.spawn os.startfile os.system
    pickle.find_class pty.spawn socket.__new__ subprocess.Popen sys._current_exceptions sys._current_frames
    sys._getframe sys.addaudithook sys.setprofile sys.settrace
"""
TOLD = frozenset(_WORDS.split()) | paths.EVENTS
# Of one kind, by whom and about what, and of all. Past the latter a last one says that there were more.
_MOST_OF_A_KIND, _MOST = 20, 3_000
_FROZEN, _IMPORT = "<frozen ", "<frozen importlib."
_OF_IMPORTS = ("exec", "compile", "marshal.loads")  # what the import of a module does
_THREADS = ("/threading.py", "/concurrent/futures/thread.py")  # below what a thread does
_GRAPHS, _COMPILER = "/torch/fx/", ("/torch/_dynamo/", "/torch/_functorch/", "/torch/_inductor/")
_IMPORTERS = ("importlib", "pkgutil", "runpy", "pydoc")


def reporter(
    tell: Callable[..., int],
    getframe: Callable[[int], Any],
    *,
    libraries: tuple[str, ...],
    roots: tuple[str, ...],
    ours: tuple[str, ...],
) -> Callable[[str, tuple[Any, ...]], None]:
    """`report(event, arguments)`, to be called by an audit hook.

    Args:
        libraries, ours: what their files begin with.
        roots: folders that modules are named from.
    """
    known: set[tuple[Any, ...]] = set()
    number: Counter[tuple[Any, ...]] = Counter()
    main, is_of_system = threading.main_thread().ident, paths.judge()

    def place(code: Any) -> str:
        """A function of a library, such as `torch/utils/data/dataloader.py:DataLoader.__iter__`."""
        if code is None:
            return ""
        file = code.co_filename
        if file.startswith(_FROZEN):  # with Python itself, such as `runpy`
            file = file.removeprefix(_FROZEN).rstrip(">") + ".py"
        root = max((root for root in roots if file.startswith(root)), key=len, default="")
        return f"{file.removeprefix(root)}:{code.co_qualname}"

    def follow(frame: Any, event: str, is_import: bool) -> tuple[Any, Any, Any] | None:
        """The frame of the cell, if there is one, and the functions of libraries: that which does it, and that which
        the cell called. None of what is not the cell's doing.
        """
        inner, outer, compiles = None, None, False
        if is_import and (made := _first_outside_of_imports(frame)) is not None and is_made(made):
            return None, None, None  # code that was made as it ran imports: no library's text does
        while frame is not None and (file := frame.f_code.co_filename) != CELL_NAME:
            # A harness looks on at what opens files, and opens none of the system's itself.
            if file.startswith(ours) and event != paths.OF_SYSTEM:
                return None
            if file.startswith(libraries) and not file.startswith(_IMPORT):
                if frame.f_code.co_name == "<module>":
                    return None  # what a module does as it is imported: the import itself is told
                inner = inner or frame.f_code
                outer = frame.f_code if outer is None or not file.endswith(_THREADS) else outer
                compiles = compiles or any(part in file for part in _COMPILER)
            frame = frame.f_back
        # In a thread that a library runs there is no frame of the cell, whatever was handed to it.
        if frame is None and threading.get_ident() == main:
            return None
        if inner is not None and _GRAPHS in inner.co_filename and not compiles:
            outer = inner  # a graph runs its text for the compiler, or else for whoever changed it
        return frame, inner, outer

    def is_made(frame: Any) -> bool:
        """Whether its code has no file, and is neither the cell's nor the harness's."""
        file = frame.f_code.co_filename
        return bool(file.startswith("<") and not file.startswith((_FROZEN, CELL_NAME, *ours)))

    def report(event: str, arguments: tuple[Any, ...]) -> None:
        frame, is_import = getframe(2), event == "import"
        is_of_imports = frame.f_code.co_filename.startswith(_IMPORT)
        if event in paths.EVENTS:
            told = None if is_of_imports else paths.about(event, arguments, is_of_system)
            if told is None:
                return
            event, arguments = told[0], told[1:]
        if event in _OF_IMPORTS and is_of_imports:
            if event != "exec":
                return
            is_import = True
        if (found := follow(frame, event, is_import)) is None:
            return
        frame, inner, outer = found[0], *map(place, found[1:])
        if event in (paths.OPENED, paths.OF_SYSTEM) and not all(map(paths.is_handed_on, (inner, outer))):
            return
        # Modules that a library imports for itself are its own business.
        if is_import and outer and not outer.startswith(_IMPORTERS):
            return
        if is_import != (event == "import"):
            if not inner:
                return  # which Python tells itself
            module = place(arguments[0]).partition(":")[0].removesuffix(".py").removesuffix("/__init__")
            event, arguments = "import", (module.replace("/", "."),)
        keep(event, _subject(event, arguments), frame.f_lineno if frame else 0, inner, outer)

    def keep(event: str, subject: str, line: int, inner: str, outer: str) -> None:
        # Files have as many names as one likes, and their number says nothing.
        kind = event, "" if event == paths.OPENED else subject, inner, outer
        if (*kind, line) in known or number[kind] >= _MOST_OF_A_KIND or len(known) > _MOST:
            return
        known.add((*kind, line))
        number[kind] += 1
        if len(known) > _MOST:
            tell("deed", "deeds", "", line, "", "")
        else:
            tell("deed", event, subject, line, inner, outer)

    return report


def _first_outside_of_imports(frame: Any) -> Any:
    while frame is not None and frame.f_code.co_filename.startswith(_IMPORT):
        frame = frame.f_back
    return frame


def _subject(event: str, arguments: tuple[Any, ...]) -> str:
    if event in (paths.OPENED, paths.OF_SYSTEM):
        return str(arguments[0])[:100]
    if event == "pickle.find_class":
        return ".".join(map(str, arguments[:2]))[:100]
    if event in ("import", "object.__getattr__", "object.__setattr__", "subprocess.Popen", "ctypes.dlopen"):
        return str(arguments[1 if event.startswith("object.") else 0])[:100]
    return ""
