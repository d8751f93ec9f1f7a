"""The files of a class as a folder or a zip gives them, and no way out of where they are put.

A zip comes from strangers. Names that lead elsewhere, links, encrypted or damaged entries and bombs cost themselves
alone: each is told in a line, and the rest goes on.
"""

from __future__ import annotations

import calendar
import functools
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from autograder.grading.submissions import MAX_NOTEBOOK_BYTES
from course_lib.base import UserError

MAX_FILES = 1_000  # of one student
MAX_BYTES = 2 * MAX_NOTEBOOK_BYTES  # of one student, unpacked
MAX_INNER_ZIP = 100_000_000  # a zip within a zip is read into memory
MAX_NAME = 200  # bytes; a file system takes 255
_JUNK = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints", "__pycache__", ".git"}
_CENTRAL = b"PK\x01\x02"  # begins a zip's record of an entry
_UTF8 = 0x800  # flag of an entry: its name is UTF-8
Tell = Callable[[str], None]


@dataclass(frozen=True)
class HandedIn:
    """A file.

    Attributes:
        parts: its path within the folder or zip; none of them leads out.
        size: bytes, as it says.
        time: when it was last changed, or packed where the packer keeps no such time; seconds since 1970, 0 if unknown.
        open: gives its content.
    """

    parts: tuple[str, ...]
    size: int
    time: float
    open: Callable[[], IO[bytes]]

    def write(self, target: Path) -> None:
        """Write it, with its time. Raises UserError, without the name, where it cannot be read to its end."""
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.open() as content, target.open("xb") as file:
                left = self.size
                while chunk := content.read(min(1 << 20, left + 1)):
                    left -= len(chunk)
                    if left < 0:
                        raise UserError("longer than it says")
                    file.write(chunk)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            target.unlink(missing_ok=True)
            raise UserError(f"damaged ({str(error)[:80] or type(error).__name__})") from None
        except (UserError, OSError):
            target.unlink(missing_ok=True)
            raise
        os.utime(target, (self.time, self.time))


def files_in(path: Path, tell: Tell) -> Iterator[HandedIn]:
    """Every file of a folder or a zip that can be taken, in order; `tell` gets a line for each other one.

    Raises:
        UserError: there is no such folder or zip, or it cannot be read at all.
    """
    if path.is_dir():
        yield from _in_folder(path, tell)
    elif path.suffix == ".zip" and path.is_file():
        yield from _in_zip(path, path.name, tell)
    elif path.is_file():
        yield _file(path, (path.name,))
    else:
        raise UserError(f"there is no {path}; name a folder, a zip or a notebook")


def files_in_inner_zip(file: HandedIn, tell: Tell) -> Iterator[HandedIn]:
    """Every file of a zip that a student handed in. Raises UserError where it cannot be read."""
    if file.size > MAX_INNER_ZIP:
        raise UserError(f"a zip within it has more than {MAX_INNER_ZIP // 1_000_000} MB")
    with file.open() as content:
        data = content.read(MAX_INNER_ZIP)
    if data.count(_CENTRAL) > MAX_FILES:  # asked before all the names are in memory
        raise UserError(f"a zip with more than {MAX_FILES} files")
    yield from _in_zip(io.BytesIO(data), file.parts[-1], tell)


def _in_folder(folder: Path, tell: Tell) -> Iterator[HandedIn]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _JUNK)
        for name in sorted([*names, *(each for each in folders if Path(root, each).is_symlink())]):
            path = Path(root, name)
            parts = path.relative_to(folder).parts
            if name in _JUNK:
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                tell(f"{'/'.join(parts)}: a link or a device and no file: left out")
                continue
            yield _file(path, parts)


def _file(path: Path, parts: tuple[str, ...]) -> HandedIn:
    about = path.stat()
    return HandedIn(parts, about.st_size, about.st_mtime, lambda: path.open("rb"))


def _in_zip(source: Path | io.BytesIO, name: str, tell: Tell) -> Iterator[HandedIn]:
    archive = _opened(source, name)  # read from later on; closed once nobody holds a file of it
    for info in archive.infolist():
        parts = _parts(info)
        if info.is_dir() or _JUNK & set(parts) or (parts and parts[-1].startswith("._")):
            continue
        if problem := _problem(info, parts):
            tell(f"{name}: {ascii(info.filename)[1:-1]}: {problem}: left out")
            continue
        yield HandedIn(parts, info.file_size, _time(info), functools.partial(archive.open, info))


def _opened(source: Path | io.BytesIO, name: str) -> zipfile.ZipFile:
    try:
        try:
            return zipfile.ZipFile(source)
        except UnicodeDecodeError:  # one name that is no UTF-8, though it says so, hides all the others
            data = source.getvalue() if isinstance(source, io.BytesIO) else source.read_bytes()
            return zipfile.ZipFile(io.BytesIO(_with_readable_names(data)))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UserError(f"{name} cannot be read as a zip ({error}); download it again") from None


def _with_readable_names(data: bytes) -> bytes:
    mended = bytearray(data)
    for record in re.finditer(re.escape(_CENTRAL), data):
        start = record.start()
        length = int.from_bytes(data[start + 28 : start + 30], "little")
        try:
            data[start + 46 : start + 46 + length].decode("utf-8")
        except UnicodeDecodeError:
            local = int.from_bytes(data[start + 42 : start + 46], "little")
            for flags in (start + 9, local + 7):
                if flags < len(mended):
                    mended[flags] &= ~(_UTF8 >> 8) & 0xFF
    return bytes(mended)


def _parts(info: zipfile.ZipInfo) -> tuple[str, ...]:
    name = info.filename
    if not info.flag_bits & _UTF8:  # "code page 437", which many packers say of UTF-8
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return tuple(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))


def _problem(info: zipfile.ZipInfo, parts: tuple[str, ...]) -> str:
    """Why an entry cannot be taken, or ""."""
    name = info.filename.replace("\\", "/")
    if not parts or ".." in parts or name.startswith("/") or re.match("[A-Za-z]:", name):
        return "its name leads out of the folder"
    if any(len(part.encode("utf-8", "replace")) > MAX_NAME or not part.isprintable() for part in parts):
        return "no name that a file can have"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "a link or a device and no file"
    if info.flag_bits & 1:
        return "encrypted"
    if info.file_size > MAX_NOTEBOOK_BYTES:
        size, most = (f"{number / 1e6:,.0f} MB" for number in (info.file_size, MAX_NOTEBOOK_BYTES))
        return f"{size} unpacked, more than the {most} that are taken"
    return ""


def _time(info: zipfile.ZipInfo) -> float:
    """A zip knows no time zone. Two from one system can be compared all the same."""
    year, month, day, *_ = info.date_time
    return float(calendar.timegm(info.date_time)) if year > 1980 and month and day else 0.0
