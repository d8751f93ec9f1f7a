"""What a cell has done at run time that a person should look at: the audit events that it caused, less the innocent.

The same flag as of `review`, which reads the cell before it runs, and in its words. Libraries do much of this for
themselves: what they do it for is on a list, by library and function, and all else is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from autograder.engine.review.allowed import kind_of, names_of
from autograder.engine.review.words import listed
from autograder.engine.told.messages import Deed

_MOST = 8
# By event, where the function that does it, as `file:function`, may begin so. What torch compiles it writes as text.
_TORCH = ("torch/", "typing_extensions.py:", "course_lib/")
_TEXT = (
    *(
        "collections/__init__.py:namedtuple",
        "dataclasses.py:_create_fn",
        "typing.py:",
        "enum.py:",
        "functools.py:",
    ),
    *(*_TORCH, "numpy/", "scipy/", "sympy/", "networkx/", "traceback.py:", "ast.py:parse"),
)
# Of those, what runs the text of whoever calls it, or evaluates that of annotations.
_TAKE_TEXT = ("torch/fx/", "torch/jit/", "torch/library.py:", "torch/_library/")
_FRAMES = (
    *(
        "collections/__init__.py:",
        "dataclasses.py:",
        "typing.py:",
        "enum.py:",
        "functools.py:",
        "warnings.py:",
    ),
    *(*_TORCH, "numpy/", "scipy/", "sympy/", "tqdm/", "logging/"),
)
_INNOCENT: Mapping[str, tuple[str, ...]] = {
    "compile": _TEXT,
    "exec": _TEXT,
    "sys._getframe": _FRAMES,
    "pickle.find_class": (
        "multiprocessing/",
        "torch/multiprocessing/",
        "torch/utils/data/",
        "torch/distributed/",
    ),
}
# Never, though they stand below one of those: they do it for whoever asks.
_FOR_ANYBODY = (
    *("torch/package/", "torch/hub.py:", "torch/utils/cpp_extension.py:", "torch/serialization.py:"),
    "numpy/f2py/",
)
# These hand on what they get to whoever calls them; others use them for themselves.
_HAND_ON = ("inspect.py:", "traceback.py:", "socket.py:", "ctypes/", "numpy/ctypeslib/")
# These call what they are given: what happens there is the doing of whoever gave it.
_CALL = (
    *(
        "concurrent/futures/thread.py:",
        "threading.py:Thread.run",
        "threading.py:Timer.run",
        "asyncio/events.py:",
        "multiprocessing/pool.py:",
    ),
    *("contextlib.py:", "functools.py:", "dataclasses.py:", "json/", "numpy/lib/", "tqdm/"),
)
_CALLED = listed("""
    gc.get_objects gc.get_referents gc.get_referrers marshal.load marshal.loads mmap.__new__ sys._current_frames
    sys.setprofile sys.settrace code.__new__
""")
# What is unpickled for messages between processes: what such a message is made of.
_IN_MESSAGES = (
    *(
        "__learner__.",
        "harness.",
        "torch._utils._rebuild",
        "torch.storage.",
        "torch._tensor.",
        "torch.multiprocessing.",
    ),
    *(
        "multiprocessing.",
        "concurrent.futures.process.",
        "numpy._core.",
        "numpy.core.",
        "collections.",
        "course_lib.",
        "torch._C._nn.",
    ),
)
_CURRENT_FRAME = "logging/__init__.py:<lambda>"
# So does what shows where an error came from.
_PARSE = ("ast.py:parse", "threading.py:_make_invoke_excepthook")
# What a library may do behind any of its functions, and the cell may not do itself.
_OF_LIBRARIES = listed("""
    _thread.start_new_thread code.__new__ gc.get_objects gc.get_referents gc.get_referrers marshal.load marshal.loads
    mmap.__new__ socket.__new__ sys._current_frames sys.setprofile sys.settrace
""")
_PROCESSES = listed("""
    os.exec os.fork os.forkpty os.posix_spawn os.spawn os.startfile os.system pty.spawn subprocess.Popen
""")
_COMPILER = (
    "torch/_dynamo/",
    "torch/_inductor/",
    "torch/compiler/",
    "torch/__init__.py:compile",
    "platform.py:",
)
_WORKERS = ("torch/utils/data/", "multiprocessing/", "concurrent/futures/process.py:")
_MEANS_OF_WORKERS = ("multiprocessing", "num_workers", "concurrent.futures.ProcessPoolExecutor")


def reasons(deeds: Iterable[Deed], *, allowed: Collection[str], read: Collection[str] = ()) -> list[str]:
    """One sentence for each deed that is not innocent.

    Args:
        allowed: what the exercise is about, as for `review`.
        read: what `review` has said: of a line that it has named nothing is said again.
    """
    found: dict[str, None] = {}
    for deed in deeds:
        where = f"(line {deed.line})" if deed.line else "(in code, or a thread, that a library runs for it)"
        if not is_innocent(deed, allowed) and not any(where in reason for reason in read):
            found[f"the cell {_did(deed)} {where}"] = None
    return list(found)[:_MOST]


def is_innocent(deed: Deed, allowed: Collection[str]) -> bool:
    """Whether a solution may cause it: a library does it for itself, or the exercise asks for it."""
    name = deed.event if deed.event not in ("import", "pickle.find_class") else deed.subject
    if any(name == one or name.startswith(f"{one}.") for one in allowed):
        return True
    if deed.event == "open":  # told where it is opened for the cell alone: `inside/paths.py`
        return False
    if deed.event == "import":
        return not deed.inner and kind_of(deed.subject) == "module"
    if deed.event in _PROCESSES:
        may_have_workers = not set(_MEANS_OF_WORKERS).isdisjoint(allowed)
        return deed.outer.startswith(_COMPILER) or (may_have_workers and deed.inner.startswith(_WORKERS))
    if deed.inner.startswith(_FOR_ANYBODY) or not deed.inner:
        return False
    if deed.event == "compile" and deed.inner.startswith(_PARSE):  # a tree: nothing runs by it
        return True
    if deed.event in _CALLED and deed.inner.startswith(_CALL):
        return False
    if deed.event in ("compile", "exec") and deed.outer.startswith(_TAKE_TEXT):
        return False
    if deed.event == "exec" and deed.inner.startswith("typing.py:"):  # annotations, for others or for itself
        return deed.outer.startswith(("torch/_", "course_lib/"))
    if deed.event == "pickle.find_class" and not _is_of_messages(deed):
        return False
    if deed.outer.startswith(_HAND_ON) or deed.outer == _CURRENT_FRAME:
        return False
    if deed.event in _OF_LIBRARIES or deed.event.startswith("ctypes."):
        return True
    own = deed.outer if deed.inner.startswith(_HAND_ON) else deed.inner
    return own.startswith(_INNOCENT.get(deed.event, ()))


def _is_of_messages(deed: Deed) -> bool:
    """Whether messages between processes are made of this; a method that is handed to another one is by `getattr`."""
    subject = deed.subject
    module, _, name = subject.rpartition(".")
    if module == "builtins":
        is_method = name == "getattr" and not deed.inner.startswith("torch/distributed/")
        return is_method or name in names_of("builtins") - {"getattr", "setattr"}
    return subject.startswith(_IN_MESSAGES) or kind_of(subject) not in ("", "module")


def _did(deed: Deed) -> str:
    through = f" by `{_dotted(deed.outer)}`" if deed.outer else ""
    if deed.event == "open":
        return f"opens the file `{deed.subject}`{through}"
    if deed.event == "system file":
        return f"reaches for the system's own files, `{deed.subject}`{through}"
    if deed.event == "deeds":
        return "does more of what solutions do not need than could be told"
    if deed.event == "import":
        return f"imports `{deed.subject}`{through}"
    if deed.event == "pickle.find_class":
        return f"unpickles `{deed.subject}`{through}"
    if deed.event in _PROCESSES:
        return f"starts a process{through or f' by `{deed.event}`'}"
    if deed.event.startswith("object."):
        return f"uses `.{deed.subject}`"
    if deed.event in ("compile", "exec"):
        return f"runs text as code{through or f' by `{deed.event}`'}"
    return f"uses `{deed.event}`{through}"


def _dotted(place: str) -> str:
    """`torch/utils/data/dataloader.py:DataLoader.__iter__` as Python names it."""
    file, _, function = place.partition(":")
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{module}.{function}"
