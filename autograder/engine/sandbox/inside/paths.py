"""Which files a cell opens, or has opened: those of its exercise, or the system's, where its own process lies open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

EVENTS = frozenset({"open", "os.listdir", "os.scandir", "os.chdir", "os.link", "os.symlink", "os.rename"})
OPENED, OF_SYSTEM = "open", "system file"
_SYSTEM = ("/proc", "/sys", "/dev")
_HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# They open for whoever calls them; other functions of libraries open what they need themselves.
_FOR_ANYBODY = (
    *(
        "os.py:",
        "pathlib.py:",
        "pathlib/",
        "shutil.py:",
        "glob.py:",
        "gzip.py:",
        "bz2.py:",
        "lzma.py:",
        "zipfile.py:",
    ),
    *("zipfile/", "tarfile.py:", "codecs.py:", "fileinput.py:", "tokenize.py:open", "tempfile.py:", "io.py:"),
    *(
        "concurrent/futures/thread.py:",
        "threading.py:Thread.run",
        "threading.py:Timer.run",
        "asyncio/events.py:",
        "contextlib.py:",
        "functools.py:",
    ),
    *(
        "numpy/lib/",
        "torch/serialization.py:",
        "torch/storage.py:",
        "logging/__init__.py:FileHandler",
        "yaml/",
    ),
    *("hashlib.py:", "json/", "dataclasses.py:", "multiprocessing/pool.py:"),
)


def judge() -> Callable[[Any], bool]:
    """`is_of_system(path)`: whether it leads to the system's own files, or is a descriptor that was open before."""
    open_before = frozenset(filter(_is_open, range(3, 1024)))

    home = str(Path.cwd().resolve())  # of the worker, and it may lie in memory: `/dev/shm/…`

    def is_of_system(path: Any) -> bool:
        if isinstance(path, int):
            return int(path) in open_before
        if isinstance(path, PurePath) and type(path).__module__.startswith("pathlib"):
            path = str(path)
        if isinstance(path, str | bytes):  # of a class of the cell, whose methods are not asked
            text = bytes.decode(path, errors="replace") if isinstance(path, bytes) else str.__str__(path)
        else:
            return path is not None  # who knows what it says the next time
        try:
            real = os.path.realpath(text)
        except (OSError, ValueError):
            return False
        if real in (home, *_HARMLESS) or real.startswith(f"{home}{os.sep}"):
            return False
        return real in _SYSTEM or real.startswith(tuple(f"{root}/" for root in _SYSTEM))

    return is_of_system


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def about(
    event: str, arguments: tuple[Any, ...], is_of_system: Callable[[Any], bool]
) -> tuple[Any, ...] | None:
    """What to tell and of which path; None of what is neither opened nor the system's."""
    for path in arguments[:2] if event in ("os.link", "os.symlink", "os.rename") else arguments[:1]:
        if is_of_system(path):
            return OF_SYSTEM, f"descriptor {path}" if isinstance(path, int) else path
    if event == "open" and not isinstance(arguments[0], int):
        return OPENED, arguments[0]
    return None


def is_handed_on(place: str) -> bool:
    """Whether the cell itself opens it, or has a function open it that does so for anybody."""
    return not place or place.startswith(_FOR_ANYBODY)
