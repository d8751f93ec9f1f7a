"""Harness of 4.2: what a save does to the disk, watched, and a disk that refuses."""

from __future__ import annotations

import builtins
import contextlib
import errno
import hashlib
import importlib.util
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path("checkpoints").absolute()  # also while a save is asked for from within it
# Inode, a hash of the content, and whether it had a checkpoint's name already.
synced: list[tuple[int, bytes, bool]] = []
# By inode, a second descriptor of what was opened empty so that each write is forced to the disk: it stands where the
# first one has come to, and so tells how much was written by that.
_always_synced: dict[int, int] = {}
MOST_KEPT = 32
_names: set[str] = set()  # of the checkpoints that are saved
renamed: list[str] = []  # what was renamed to a checkpoint's name, and lay beside it
_refused: dict[str, int] = {}  # which calls fail, and how often they did
_instead: dict[str, BaseException] = {}  # what those raise that are no error of the disk


def expect(path: Path) -> None:
    """From here on this is the checkpoint's name."""
    _names.clear()
    _names.add(path.name)
    synced.clear()


def is_synced(path: Path) -> tuple[bool, bool]:
    """Whether the file was forced to the disk with the content that it has now; and whether before it had its name."""
    with contextlib.suppress(OSError):
        found = path.stat()
        if found.st_ino in _always_synced:
            is_whole = os.lseek(_always_synced[found.st_ino], 0, os.SEEK_CUR) >= found.st_size > 0
            return is_whole, is_whole
        fits = [note for note in synced if note[:2] == (found.st_ino, _hash(path))]
        return bool(fits), any(not had_name for *_, had_name in fits)
    return False, False


@contextlib.contextmanager
def refusing(call: str, error: BaseException | None = None) -> Iterator[Callable[[], int]]:
    """Every "fsync" of a file fails, every "rename" to the checkpoint's name, or every "open" to write in its folder
    but of the checkpoint itself; yields how often that was. `error` is raised in place of one of the disk.
    """
    _refused[call] = 0
    _instead.update({call: error} if error else {})
    real = io.open

    def asked(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if "opener" not in named:  # that asks on its own
            _refuse_open(file, is_written=any(letter in mode for letter in "wax+"))
        return real(file, mode, *arguments, **named)

    for module in (io, builtins):
        setattr(module, "open", asked if call == "open" else real)  # noqa: B010
    try:
        yield lambda: _refused[call]
    finally:
        _refused.pop(call, None)
        _instead.pop(call, None)
        for module in (io, builtins):
            setattr(module, "open", real)  # noqa: B010


def _refuse(call: str, number: int) -> None:
    if call in _refused:
        _refused[call] += 1
        if call in _instead:
            raise _instead[call]
        raise OSError(number, f"{os.strerror(number)} (the check pretends, for {call})")


def _refuse_open(file: Any, is_written: bool) -> None:
    """A file of the checkpoint's folder that is opened to write: in some folders no file can be made."""
    is_refused = "open" in _refused and is_written and isinstance(file, str | bytes | os.PathLike)
    if is_refused:
        path = Path(os.fsdecode(file)).resolve()
        if path.is_relative_to(FOLDER.resolve()) and path.name not in _names:
            _refuse("open", errno.ENOSPC)


def _hash(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes()).digest()


def _note(found: os.stat_result) -> None:
    """A file of the checkpoint's folder, by whatever name it has now, was forced to the disk."""
    named = {(FOLDER / name).stat().st_ino for name in _names if (FOLDER / name).exists()}
    for path in FOLDER.rglob("*") if stat.S_ISREG(found.st_mode) else ():
        with contextlib.suppress(OSError):
            if path.stat().st_ino == found.st_ino:
                synced.append((found.st_ino, _hash(path), found.st_ino in named))
                return


def _watch_syncs() -> None:
    """From here on, note which content is forced to the disk. Before the cell is loaded, so that it takes these."""

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def sync(descriptor: Any) -> None:
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            if stat.S_ISREG(os.fstat(number).st_mode):
                _refuse("fsync", errno.EIO)
            function(number)
            _note(os.fstat(number))

        return sync

    def sync_all() -> None:
        real_sync()
        for path in FOLDER.rglob("*"):
            _note(path.stat())

    real_open, always = os.open, getattr(os, "O_SYNC", 0) | getattr(os, "O_DSYNC", 0)
    real_sync = getattr(os, "sync", lambda: None)

    def noted_open(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        _refuse_open(path, bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)))
        descriptor = real_open(path, flags, *arguments, **named)
        if flags & always:
            while len(_always_synced) >= MOST_KEPT:
                os.close(_always_synced.pop(next(iter(_always_synced))))
            found = os.fstat(descriptor)
            if found.st_ino in _always_synced:
                os.close(_always_synced.pop(found.st_ino))
            if not found.st_size:  # else somebody has written to it in another way
                _always_synced[found.st_ino] = os.dup(descriptor)
        return descriptor

    setattr(os, "open", noted_open)  # noqa: B010 - mypy knows the signature of the real one
    if hasattr(os, "sync"):
        setattr(os, "sync", sync_all)  # noqa: B010
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            setattr(os, name, noted(getattr(os, name)))


def _give_the_folder_a_disk_of_its_own() -> None:
    """From here on, nothing from outside the checkpoint's folder can be renamed into it, as between two disks."""

    def within(function: Callable[..., Any]) -> Callable[..., Any]:
        def rename(source: Any, target: Any, **named: Any) -> None:
            if not named:
                aim = Path(os.fsdecode(target)).resolve()
                folder = FOLDER.resolve()
                if aim.parent == folder and not Path(os.fsdecode(source)).resolve().is_relative_to(folder):
                    raise OSError(
                        errno.EXDEV, "Invalid cross-device link: the folder of `path` is a disk of its own"
                    )
                if aim.parent == folder and aim.name in _names:
                    if Path(os.fsdecode(source)).resolve().parent == folder:
                        renamed.append(Path(os.fsdecode(source)).name)
                    _refuse("rename", errno.EACCES)
            function(source, target, **named)

        return rename

    for name in ("rename", "replace"):
        setattr(os, name, within(getattr(os, name)))


_watch_syncs()
_give_the_folder_a_disk_of_its_own()


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes, however it is written."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def can_be_full() -> bool:
    """Whether this system limits the size of files."""
    return importlib.util.find_spec("resource") is not None
