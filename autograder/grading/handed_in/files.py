"""The files of a class as a folder or a zip gives them, and no way out of where they are put.

They come from strangers. What cannot be taken costs itself alone: its `problem` says why, and the rest goes on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from autograder.common import one_line
from autograder.grading.submissions import MAX_NOTEBOOK_BYTES
from course_lib.base import UserError

MAX_FILES = 1_000  # of one student
MAX_BYTES = 2 * MAX_NOTEBOOK_BYTES  # of one student, unpacked
MAX_NAME = 200  # bytes; a file system takes 255
MAX_FOLDERS = 20  # one in the other
MAX_PATH = 1_000  # bytes within the hand-in; a system takes 1,024 to 4,096, the course's own included
JUNK = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints", "__pycache__", ".git"}
_PIECE = 1 << 20


@dataclass(frozen=True)
class HandedIn:
    """A file.

    Attributes:
        parts: its path within the folder or zip; none of them leads out.
        size: bytes, as it says.
        time: when it was last changed, or packed where the packer keeps no such time; seconds since 1970, 0 if unknown.
        open: gives its content.
        problem: why it cannot be taken; "" where it can.
    """

    parts: tuple[str, ...]
    size: int = 0
    time: float = 0.0
    open: Callable[[], IO[bytes]] | None = None
    problem: str = ""

    def content(self) -> Iterator[bytes]:
        """Its bytes, in pieces. Raises UserError, without the name, where it cannot be read to its end."""
        left = self.size
        try:
            assert self.open, self.problem
            with self.open() as file:
                while piece := file.read(min(_PIECE, left + 1)):
                    left -= len(piece)
                    if left < 0:
                        raise UserError("longer than it says")
                    yield piece
        except UserError:
            raise
        except OSError as error:
            raise UserError(f"cannot be read ({error.strerror or one_line(str(error), 160)})") from None
        except Exception as error:  # the ways in which an archive can be broken have no common name
            raise UserError(f"damaged ({one_line(str(error), 160) or type(error).__name__})") from None

    def write(self, target: Path) -> None:
        """Write it, with its time. Raises UserError, without the name, where it cannot be read to its end."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            try:
                for piece in self.content():
                    file.write(piece)
            except BaseException:
                file.close()
                target.unlink()
                raise
        with suppress(OSError, OverflowError):  # a time that this system cannot write
            os.utime(target, (self.time, self.time))


def fitting(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The path that a stranger chose, in names that every system takes. Raises UserError where there is none."""
    if len(parts) - 1 > MAX_FOLDERS:
        raise UserError(f"in more than {MAX_FOLDERS} folders, one in the other")
    if {".", ".."} & set(parts):  # whoever made a part of a name
        raise UserError("its path leads out of the hand-in")
    fit = tuple(map(_name, parts))
    if len("/".join(fit).encode()) > MAX_PATH:
        raise UserError(f"its path is longer than {MAX_PATH} bytes")
    return fit


def _name(part: str) -> str:
    name = "".join(char if char.isprintable() and char != "\\" else "_" for char in part)
    if len(name.encode()) <= MAX_NAME:
        return name
    stem, dot, suffix = name.rpartition(".")
    end = f"{dot}{suffix}".encode() if stem and len(suffix) <= 10 else b""
    return (name.encode()[: MAX_NAME - len(end)].decode("utf-8", "ignore").encode() + end).decode()


def files_in_folder(folder: Path) -> Iterator[HandedIn]:
    """Every file of a folder, in order. Raises UserError where the folder itself cannot be read."""
    unread: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=unread.append):
        here = Path(root).relative_to(folder).parts
        folders[:] = sorted(name for name in folders if name not in JUNK)
        if len(here) > MAX_FOLDERS + 1:  # the first one is the student's
            yield HandedIn((*here, "…"))  # too deep, as `fitting` says
            folders.clear()
            continue
        for name in sorted([*names, *(each for each in folders if _is_link(Path(root, each)))]):
            if name not in JUNK:
                yield file_at(Path(root, name), (*here, name))
    for error in unread:
        parts = Path(error.filename).relative_to(folder).parts
        if not parts:
            raise UserError(f"{folder}: cannot be read ({error.strerror})")
        yield HandedIn(parts, problem=f"cannot be read ({error.strerror})")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # a path that is too long for a question
        return False


def file_at(path: Path, parts: tuple[str, ...]) -> HandedIn:
    """A file on the disk."""
    try:
        about = path.lstat()
    except OSError as error:
        return HandedIn(parts, problem=f"cannot be read ({error.strerror})")
    if not stat.S_ISREG(about.st_mode):
        return HandedIn(parts, problem="a link or a device and no file")
    return HandedIn(parts, about.st_size, about.st_mtime, lambda: path.open("rb"))
