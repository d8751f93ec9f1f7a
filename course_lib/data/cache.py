"""Where built data is kept, and how it gets there whole: a file or folder appears by one rename or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from course_lib.errors import UserError

BUILDING = ".building-"
_STALE_SECONDS = 24 * 3600


def cache_dir() -> Path:
    """The folder for built data: `$COURSE_LIB_CACHE`, else the user's cache folder. Created when missing.

    Raises:
        UserError: the folder cannot be created. A read-only one is fine until something must be built.
    """
    chosen = os.environ.get("COURSE_LIB_CACHE")
    if chosen:
        path = Path(chosen).expanduser().absolute()
    else:
        import platformdirs

        path = Path(platformdirs.user_cache_dir("training-workbook", appauthor=False))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return path


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts, as hexadecimal. Lengths are hashed too, so ("ab", "c") differs from ("a", "bc")."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place when the block ends without an error."""
    temporary = _temporary_name(path)
    try:
        _prepare(path.parent)
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it becomes `path` when the block ends without an error.

    When another process was quicker, its folder is kept: callers name folders by their content.
    """
    temporary = _temporary_name(path)
    try:
        _prepare(path.parent)
        temporary.mkdir()
        yield temporary
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary_name(path: Path) -> Path:
    """A fresh name beside `path`: a rename is atomic only within one file system."""
    return path.parent / f"{BUILDING}{os.getpid()}-{secrets.token_hex(4)}"


def _prepare(folder: Path) -> None:
    """Make the folder, and clear what a build left that was killed more than a day ago."""
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(f"{BUILDING}*"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime < _STALE_SECONDS:
                continue
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot write {path}: {error.strerror or error}. Free space or rights there, "
        "or set COURSE_LIB_CACHE to a folder that you can write to."
    )
