"""Harness of 4.2: saves that are killed, looked at between any two calls to the system, and refused."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_04.harness.tracing import forked, stops

_PATH = Path("checkpoints/last.pt")
_MAX_SEEN = 12  # different contents of the file; what is wrong shows in the first few
# Inode, size, time of change, and whether it had the name already.
_synced: list[tuple[int, int, int, bool]] = []
_always_synced: set[int] = set()


def _inode(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return -1


def _watch_syncs() -> None:
    """From here on, note which content is forced to the disk. Before the cell is loaded, so that it takes these."""

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def sync(descriptor: Any) -> None:
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            function(number)
            found = os.fstat(number)
            if stat.S_ISREG(found.st_mode):
                had_name = found.st_ino == _inode(_PATH)
                _synced.append((found.st_ino, found.st_size, found.st_mtime_ns, had_name))

        return sync

    real_open, always = os.open, getattr(os, "O_SYNC", 0) | getattr(os, "O_DSYNC", 0)

    def noted_open(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        descriptor = real_open(path, flags, *arguments, **named)
        if flags & always:
            _always_synced.add(os.fstat(descriptor).st_ino)
        return descriptor

    setattr(os, "open", noted_open)  # noqa: B010 - mypy knows the signature of the real one
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            setattr(os, name, noted(getattr(os, name)))


def _give_the_folder_a_disk_of_its_own() -> None:
    """From here on, nothing from outside the checkpoint's folder can be renamed into it, as between two disks."""

    def within(function: Callable[..., Any]) -> Callable[..., Any]:
        def rename(source: Any, target: Any, **named: Any) -> None:
            if not named:
                folder = Path(os.fsdecode(target)).resolve().parent
                is_ours = folder == _PATH.parent.resolve()
                if is_ours and not Path(os.fsdecode(source)).resolve().is_relative_to(folder):
                    raise OSError(
                        errno.EXDEV, "Invalid cross-device link: the folder of `path` is a disk of its own"
                    )
            function(source, target, **named)

        return rename

    for name in ("rename", "replace"):
        setattr(os, name, within(getattr(os, name)))


_watch_syncs()
_give_the_folder_a_disk_of_its_own()


def _content(seed: int, version: int) -> dict[str, Any]:
    """A checkpoint of 128 kB; each version differs from the others everywhere."""
    weight = np.random.default_rng([seed, version]).random((64, 512), dtype=np.float32)
    model, moments = torch.from_numpy(weight), torch.from_numpy(weight[::-1, :16].copy())
    return {"step": version, "model": {"weight": model}, "optimizer": {"moments": moments, "lr": 1e-3}}


def _version(file: np.ndarray, seed: int) -> int:
    """Which version the file holds, whole and unchanged; -1 for none. Asked of a worker of ours alone."""
    path = Path("looked-at.pt")
    path.write_bytes(file.tobytes())
    with contextlib.suppress(Exception):
        found = torch.load(path, map_location="cpu", weights_only=True)
        expected = _content(seed, int(found["step"]))
        weights, moments = found["model"]["weight"], found["optimizer"]["moments"]
        same = torch.equal(weights, expected["model"]["weight"])
        if (
            same
            and torch.equal(moments, expected["optimizer"]["moments"])
            and found["optimizer"]["lr"] == 1e-3
        ):
            return int(found["step"])
    return -1


def versions(files: list[np.ndarray], seed: int) -> list[int]:
    """In a worker of ours: the version in each file."""
    return [_version(file, seed) for file in files]


def _read() -> np.ndarray:
    """The file as whoever comes after a kill finds it; empty when there is none."""
    with contextlib.suppress(OSError):
        return np.frombuffer(_PATH.read_bytes(), np.uint8)
    return np.zeros(0, np.uint8)


def _begin(seed: int) -> None:
    _PATH.parent.mkdir(exist_ok=True)
    for path in _PATH.parent.iterdir():
        path.unlink()
    torch.save(_content(seed, 0), _PATH)
    _PATH.with_name("best.pt").write_bytes(b"another checkpoint")


def _names() -> list[str]:
    return sorted(path.name for path in _PATH.parent.iterdir())


def save_thrice(seed: int) -> dict[str, Any]:
    """Three saves in a row, without any trouble: what is there after each, and what was forced to the disk."""
    _begin(seed)
    files, synced, early, seconds = [], [], [], []
    for version in (1, 2, 3):
        content = _content(seed, version)
        _synced.clear()
        start = time.perf_counter()
        learner(content, _PATH)
        seconds.append(time.perf_counter() - start)
        files.append(_read())
        with contextlib.suppress(OSError):
            found = _PATH.stat()
            fits = [note for note in _synced if note[:3] == (found.st_ino, found.st_size, found.st_mtime_ns)]
            synced.append(bool(fits) or found.st_ino in _always_synced)
            early.append(any(not had_name for *_, had_name in fits) or found.st_ino in _always_synced)
    names, other = _names(), _PATH.with_name("best.pt").read_bytes() == b"another checkpoint"
    return {
        "files": files,
        "names": names,
        "other": other,
        "synced": synced,
        "early": early,
        "seconds": min(seconds),
    }


def kill_saves(seed: int, num_kills: int, longest: float) -> dict[str, Any]:
    """Children that save without end, each killed after a random time: the file that each leaves, and what it may be.

    Each child tells through a pipe when a save has returned: that version, or the one after it, must be there.
    """
    if not hasattr(os, "fork"):
        return {"files": [], "allowed": []}
    _begin(seed)
    contents, rng = [_content(seed, version) for version in range(10)], np.random.default_rng(seed)
    files, allowed, last = [], [], 0
    for _ in range(num_kills):
        first = (last + 1) % 10
        child, done = forked(functools.partial(_save_for_ever, contents, first))
        num_done = len(os.read(done, 1))  # it has begun: the clock of the kill starts here
        time.sleep(rng.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        num_done += len(os.read(done, 2**16))
        os.close(done)
        before = (first + num_done - 1) % 10
        files.append(_read())
        allowed.append([before, (before + 1) % 10])
        last = _step()
        if last < 0:
            break  # the next child would begin with a broken file
    return {"files": files, "allowed": allowed}


def _step() -> int:
    """The version by the file's own word, to go on with; what it is worth is found out elsewhere."""
    with contextlib.suppress(Exception):
        return int(torch.load(_PATH, map_location="cpu", weights_only=True)["step"])
    return -1


def _save_for_ever(contents: list[Any], at: int, tell: int) -> None:
    while True:
        learner(contents[at], _PATH)
        os.write(tell, b".")
        at = (at + 1) % len(contents)


def look_between_calls(seed: int) -> dict[str, Any]:
    """What the file holds between any two calls to the system of one save: what a kill there would leave.

    A stopped process and a killed one leave the same files, so one save tells of some hundred kills. Where the
    machine allows no tracing, the file is read over and over beside a child that saves.
    """
    if not hasattr(os, "fork"):
        return {"files": [], "num_looks": 0}
    _begin(seed)
    content = _content(seed, 1)
    seen: list[np.ndarray] = [_read()]
    num_looks = 0
    for _ in stops(lambda: learner(content, _PATH)):
        num_looks += 1
        if len(seen) < _MAX_SEEN and not np.array_equal(file := _read(), seen[-1]):
            seen.append(file)
    return {"files": seen, "num_looks": num_looks}


class _Unsavable:
    """What cannot be written: the disk is full by the time it comes to it."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise OSError(28, "No space left on device (the check pretends)")


@contextlib.contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes, however it is written; no limit where the system has none."""
    if importlib.util.find_spec("resource") is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def save_without_space(seed: int, how: str) -> dict[str, Any]:
    """A save that fails half way: whether the caller hears of it, and what is left."""
    _begin(seed)
    content, raised = _content(seed, 1), False
    if how == "unsavable" or importlib.util.find_spec("resource") is None:
        content["too_much"] = _Unsavable()
    try:
        with _files_of_at_most(2**16) if how == "full" else contextlib.nullcontext():
            learner(content, _PATH)
    except Exception:
        raised = True
    return {"files": [_read()], "raised": raised, "names": _names()}
