"""Files and folders that get their name by one rename, or not at all: `kill -9` leaves the old one or the new.

And the JSON that is written to them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_lib.base.errors import UserError

BUILDING = ".building-"
_STALE_SECONDS = 24 * 3600


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place when the block ends without an error.

    Raises UserError when the system refuses. After any error or interrupt `path` is what it was.
    """
    with _temporary(path) as temporary:
        temporary.touch()
        usual = temporary.stat().st_mode  # as the user's umask has it
        yield temporary
        temporary.chmod(usual)  # safetensors makes a file of its own, for nobody but its owner
        _force_to_disk(temporary)
        _take_place(temporary, path)


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it becomes `path` when the block ends without an error.

    When another process was quicker, its folder is kept: callers name folders by their content.
    """
    with _temporary(path) as temporary:
        temporary.mkdir()
        yield temporary
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise


def atomic_write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all. On Linux a kill while it is written leaves no temporary file either."""
    with _temporary(path) as temporary:
        _write_whole(temporary, text.encode("utf-8"))
        _take_place(temporary, path)


def remove_leftovers(folder: Path, *, min_age_seconds: float = 0.0) -> None:
    """Clear what a killed process was writing in `folder`."""
    for leftover in folder.glob(f"{BUILDING}*"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime >= min_age_seconds:
                _remove(leftover)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    # Beside `path`: a rename is atomic only within one file system.
    temporary = path.parent / f"{BUILDING}{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, min_age_seconds=_STALE_SECONDS)
        yield temporary
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}. Free space or rights there, or choose another "
            "folder: COURSE_LIB_CACHE for built data, --out for a run"
        ) from error
    finally:
        _remove(temporary)


def _write_whole(path: Path, data: bytes) -> None:
    """Write to the disk; where the system can, the file has no name, hence leaves nothing, until all is there."""
    # Not on every system, not on every file system: then with a name. A disk that is full says so again.
    with contextlib.suppress(AttributeError, OSError):
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            # Python has the kernel follow this link to the open file only when a folder is given too.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
            return
    path.write_bytes(data)
    _force_to_disk(path)


def _take_place(temporary: Path, path: Path) -> None:
    temporary.replace(path)
    if os.name == "posix":  # the rename itself must reach the disk too
        _force_to_disk(path.parent)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink()


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Strict JSON: NaN and infinity, which JSON does not have, become null."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
