"""Tells the grader what a cell does, or has a library do for it, that solutions do not need. The grader judges it.

Python raises an audit event for each. Whose doing it was is in the stack: of the frames below the event the first that
is no library's is the cell's, and not the harness's, which may have been asked for it in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

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
TOLD = frozenset(_WORDS.split())
_MOST = 200  # of one event, by the cell itself and by libraries
_FROZEN, _IMPORT = "<frozen ", "<frozen importlib."
_OF_IMPORTS = ("exec", "compile", "marshal.loads")  # what the import of a module does
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
    number: Counter[tuple[str, bool]] = Counter()

    def place(code: Any) -> str:
        """A function of a library, such as `torch/utils/data/dataloader.py:DataLoader.__iter__`."""
        if code is None:
            return ""
        file = code.co_filename
        if file.startswith(_FROZEN):  # with Python itself, such as `runpy`
            file = file.removeprefix(_FROZEN).rstrip(">") + ".py"
        root = max((root for root in roots if file.startswith(root)), key=len, default="")
        return f"{file.removeprefix(root)}:{code.co_qualname}"

    def report(event: str, arguments: tuple[Any, ...]) -> None:
        frame, inner, outer = getframe(2), None, None
        is_import = event == "import"
        if event in _OF_IMPORTS and frame.f_code.co_filename.startswith(_IMPORT):
            if event != "exec":
                return
            is_import = True
        while frame is not None and (file := frame.f_code.co_filename) != CELL_NAME:
            if file.startswith(ours):
                return
            if file.startswith(libraries) and not file.startswith(_IMPORT):
                if frame.f_code.co_name == "<module>":
                    return  # what a module does as it is imported: the import itself is told
                inner, outer = inner or frame.f_code, frame.f_code
            frame = frame.f_back
        # Modules that a library imports for itself are its own business.
        if frame is None or (is_import and outer and not place(outer).startswith(_IMPORTERS)):
            return
        if is_import != (event == "import"):
            if not inner:
                return  # which Python tells itself
            module = place(arguments[0]).partition(":")[0].removesuffix(".py").removesuffix("/__init__")
            event, arguments = "import", (module.replace("/", "."),)
        subject = _subject(event, arguments)
        key = event, subject, frame.f_lineno, inner, outer
        kind = event, inner is None
        if key not in known and number[kind] < _MOST:
            known.add(key)
            number[kind] += 1
            tell("deed", event, subject, frame.f_lineno, place(inner), place(outer))

    return report


def _subject(event: str, arguments: tuple[Any, ...]) -> str:
    if event == "pickle.find_class":
        return ".".join(map(str, arguments[:2]))[:100]
    if event in ("import", "object.__getattr__", "object.__setattr__", "subprocess.Popen", "ctypes.dlopen"):
        return str(arguments[1 if event.startswith("object.") else 0])[:100]
    return ""
