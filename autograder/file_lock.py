"""A lock between processes that change the same file. It leaves no file behind in the learner's folder."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

WAIT_SECONDS = 10.0
# Folders on some network file systems know no locks: writing there unlocked is better than not at all.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@contextlib.contextmanager
def locked(path: Path, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the one lock of all files in `path`'s folder; a killed process lets go of it by itself.

    Raises:
        TimeoutError: somebody else held it for `wait_seconds`.
        OSError: the folder does not exist or cannot be opened.
    """
    handle = _open(path)
    try:
        deadline = time.monotonic() + wait_seconds
        while not _try(handle):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path.parent} is locked")
            time.sleep(0.005)
        yield
    finally:
        os.close(handle)  # closing unlocks


def _open(path: Path) -> int:
    if sys.platform == "win32":  # folders cannot be opened there
        digest = hashlib.sha256(str(path.resolve().parent).encode()).hexdigest()[:20]
        return os.open(Path(tempfile.gettempdir()) / f"workbook-{digest}.lock", os.O_RDWR | os.O_CREAT)
    return os.open(path.resolve().parent, os.O_RDONLY | os.O_CLOEXEC)


def _try(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        if error.errno in _NO_LOCKS:
            return True
        raise
    return True
