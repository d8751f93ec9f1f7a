"""Keeps learner code from the machinery that shares its process, and sees what it has replaced.

Python has no walls inside a process, so this is a fence: it stands between a cell and what checks rest on, while
what matters most is worked out in other processes. Frames, `gc` and tracing, by which code finds the objects of its
callers, are closed to the cell for good, for an audit hook cannot be removed. What was replaced in the libraries is
told to the grader, which asks a person to look.
"""

from __future__ import annotations

import importlib
import operator
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrays  # type: ignore[import-not-found]
import deeds  # type: ignore[import-not-found]
import telling  # type: ignore[import-not-found]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ALWAYS_CLOSED = _words("""
    gc.get_objects gc.get_referents gc.get_referrers sys._current_frames sys._getframe sys.addaudithook
    sys.setprofile sys.settrace
""")
_FRAMES = _words("tb_frame gi_frame cr_frame ag_frame")
_CODE = _words("__code__ __defaults__ __kwdefaults__")
_WATCHED = _words("""
    json json.encoder json.decoder struct time math contextlib numpy numpy.random torch torch.nn.functional
    torch.nn.utils torch.autograd torch.overrides torch.utils._python_dispatch torch.utils.data
    torch.utils.flop_counter course_lib.measuring.counters course_lib.measuring.counts
    course_lib.measuring.operators course_lib.measuring.reads
    course_lib.measuring.threads course_lib.measuring.naive course_lib.data course_lib.models.transformers
""")
_WATCHED_CLASSES = _words("""
    json.JSONEncoder torch.Tensor torch.nn.Module torch.optim.Optimizer torch.optim.SGD torch.optim.AdamW
    torch.optim.lr_scheduler.LRScheduler torch.optim.lr_scheduler.LambdaLR
    torch.utils.data.DataLoader
    torch.utils._python_dispatch.TorchDispatchMode torch.overrides.TorchFunctionMode
    course_lib.measuring.counts.Counts course_lib.measuring.reads.Reads course_lib.measuring.reads.Values
    course_lib.measuring.operators.Operators course_lib.models.transformers.TextClassifier
    course_lib.models.transformers.Encoder
""")
_TORCH = str(Path(sysconfig.get_path("purelib")) / "torch") + os.sep


def close(tell: telling.Tell, *machinery: str) -> None:
    """Close frames, `gc` and tracing to code that is not part of an installed library, and hide these modules.

    What the cell does, or has a library do, that no cell needs, is told as it happens (`deeds.py`).
    """
    main = types.ModuleType("__main__")
    main.__file__ = sys.modules["__main__"].__file__  # a process that is spawned reads it
    arrays.close(tell)
    for name in machinery:
        sys.modules.pop(name, None)
    sys.modules["__main__"] = main
    _show_exports()
    sys.addaudithook(_hook(tell))


def _show_exports() -> None:
    """Let counts see what is handed out by DLPack, of which one way is hidden from them, and no other holder shows; and
    what goes into a generator's state, which tells its seed."""
    if torch := sys.modules.get("torch"):
        put = torch.Generator.set_state

        def set_state(generator: Any, new_state: Any) -> Any:
            return put(generator, new_state.cpu())  # which is where it must be, and which counts see

        arrays.put(torch.Generator, {"set_state": set_state})
        real = torch.Tensor.__dlpack__

        def export(tensor: Any, *arguments: Any, **options: Any) -> Any:
            return real(tensor if tensor.requires_grad else tensor.detach(), *arguments, **options)

        for place, name in (
            (torch.Tensor, "__dlpack__"),
            (torch, "to_dlpack"),
            (torch.utils.dlpack, "to_dlpack"),
        ):
            if hasattr(place, name):
                setattr(place, name, export)
        reads: Any = importlib.import_module("course_lib.measuring.reads")
        reads.HANDS_OUT |= {export}


def _hook(tell: telling.Tell) -> Callable[[str, tuple[Any, ...]], None]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    course_lib = str(importlib.import_module("course_lib").__file__)
    libraries = ("<frozen", *(path + os.sep for path in paths), str(Path(course_lib).parent) + os.sep)
    roots = (*(path + os.sep for path in paths), str(Path(course_lib).parents[1]) + os.sep)
    getframe, ident, busy = sys._getframe, threading.get_ident, set[int]()
    own, folder = __file__, str(Path(__file__).parent) + os.sep
    is_told, report = (
        deeds.TOLD,
        deeds.reporter(tell, getframe, libraries=libraries, roots=roots, ours=("<harness>", folder)),
    )

    def caller() -> str:
        """The file of the code that asks; for one that asks `inspect` or `traceback` to ask, its own."""
        frame = getframe(2)
        file = frame.f_code.co_filename
        if file.endswith(("/inspect.py", "/traceback.py")):
            while frame.f_back and frame.f_code.co_filename.endswith("/inspect.py"):
                frame = frame.f_back
            if frame.f_code.co_filename.endswith("/traceback.py") and frame.f_back:
                frame = frame.f_back
            file = frame.f_code.co_filename
        return file

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "object.__getattr__":
            closed = arguments[1] in _FRAMES
        elif event == "object.__setattr__":
            closed = arguments[1] in _CODE
        elif event in is_told:
            closed = event in _ALWAYS_CLOSED
        else:
            return
        if not (closed or event in is_told) or ident() in busy:
            return
        busy.add(ident())
        try:
            file = caller() if closed else own
            is_closed = file != own and not file.startswith(libraries)
            if is_closed or event in is_told:
                report(event, arguments)
        finally:
            busy.discard(ident())
        if is_closed:
            what = arguments[1] if event.startswith("object.") else event
            raise PermissionError(f"{what}: what called your code is not open to it while it is checked")

    return hook


def watch(harness: dict[str, Any]) -> Callable[[], list[str]]:
    """Remember the functions of the libraries and of the harness; the result names those that were replaced since."""
    if torch := harness.get("torch"):
        # torch itself wraps methods at their first use. As unpickled, for one that is made takes a second of imports.
        for optimizer in (torch.optim.SGD, torch.optim.AdamW):
            optimizer.__new__(optimizer).__setstate__({"defaults": {}, "param_groups": [], "state": {}})
    spaces: list[tuple[str, Any]] = [("harness", harness)]
    spaces += [(name, vars(sys.modules[name])) for name in _WATCHED if name in sys.modules]
    for name in _WATCHED_CLASSES:
        module, _, attribute = name.rpartition(".")
        found = getattr(sys.modules.get(module), attribute, None)
        if isinstance(found, type):
            spaces.append((name, vars(found)))
    kept = []
    for name, space in spaces:
        entries = {key: value for key, value in space.items() if callable(value) and key != "learner"}
        kept.append((name, space, tuple(entries), tuple(entries.values())))
    same = operator.is_

    def replaced() -> list[str]:
        names = []
        for name, space, keys, values in kept:
            if not all(map(same, values, map(space.get, keys))):
                found = zip(keys, values, map(space.get, keys), strict=True)
                names += [
                    f"{name}.{key}" for key, old, new in found if new is not old and not _is_compilers(new)
                ]
        return names[:8]

    return replaced


def _is_compilers(function: Any) -> bool:
    """Whether it is one that `torch.compile` itself puts in the place of another."""
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    return str(file).startswith((f"{_TORCH}_dynamo{os.sep}", f"{_TORCH}_compile.py"))
