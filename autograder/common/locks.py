"""One process at a time."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from autograder.common.folders import data_directory

LOCK_SECONDS = 10.0


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file; one that is killed lets go by itself.

    Raises:
        TimeoutError: somebody else held the lock for `LOCK_SECONDS`.
    """
    from filelock import FileLock

    # With the progress, not beside the notebook: a lock file stays, and a learner's folder is theirs.
    folder = data_directory() / "locks"
    lock = FileLock(folder / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:20]}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=LOCK_SECONDS)
    except TimeoutError:
        raise
    except OSError:
        pass  # no place for a lock: writing without one is better than not at all
    try:
        yield
    finally:
        lock.release()
