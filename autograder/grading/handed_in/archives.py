"""Zips as strangers make them: names that lead elsewhere, links, encrypted or damaged entries, bombs.

Only what is stored or deflated is read: of other methods `zipfile` unpacks a piece whole, whatever its size.
"""

from __future__ import annotations

import calendar
import functools
import io
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.common import one_line, quoted
from autograder.grading.handed_in.files import JUNK, MAX_FILES, HandedIn
from autograder.grading.submissions import MAX_NOTEBOOK_BYTES
from course_lib.base import UserError

MAX_INNER_ZIP = 100_000_000  # bytes: a zip within a zip is read into memory
_CENTRAL = b"PK\x01\x02"  # begins a zip's record of an entry
_RECORD = 46  # bytes of such a record before the name
# Bytes of a record beside the name: packers write some tens, and `zipfile` takes many apart in quadratic time.
_MAX_EXTRA = 1_000
_UTF8 = 0x800  # flag of an entry: its name is UTF-8
_READ = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
Tell = Callable[[str], None]


def files_in_zip(path: Path, tell: Tell) -> Iterator[HandedIn]:
    """Every file of a class's zip, in order; `tell` gets a line for each name that leads out, which is nobody's.

    Raises UserError where it cannot be read as a zip at all.
    """
    try:
        file = path.open("rb")  # read from later on; closed once nobody holds a file of it
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        yield from _files(file, path.name, tell)
    except UserError as error:
        raise UserError(f"{path.name} {error}; download it again") from None


def files_in_inner_zip(data: bytes, name: str, tell: Tell) -> Iterator[HandedIn]:
    """The same of a zip that a student handed in."""
    if num_entries(data) > MAX_FILES:  # asked before all the names are in memory
        raise UserError(f"a zip with more than {MAX_FILES} files")
    yield from _files(io.BytesIO(data), name, tell)


def num_entries(data: bytes) -> int:
    """At least as many as a zip lists, folders and what is left out among them."""
    return data.count(_CENTRAL)


def _files(file: Any, name: str, tell: Tell) -> Iterator[HandedIn]:
    source = _Readable(file)
    try:
        archive = zipfile.ZipFile(source)
    except Exception as error:  # the ways in which a zip can be broken have no common name
        why = one_line(str(error), 160) or type(error).__name__
        raise UserError(f"cannot be read as a zip ({why})") from None
    source.is_listing = False
    # Some packers of Windows write "\" for "/". Beside a "/" it belongs to a name, and parts none.
    is_windows = not any("/" in info.filename for info in archive.infolist())
    for info in archive.infolist():
        shown = _shown_name(info)
        parts = tuple(part for part in _split(shown, is_windows) if part not in ("", "."))
        if info.is_dir() or (is_windows and shown.endswith("\\")):
            continue
        if JUNK & set(parts) or (parts and parts[-1].startswith("._")):
            continue
        if not parts or ".." in _split(shown, True) or re.match(r"[/\\]|[A-Za-z]:", shown):
            tell(f"{name}: {quoted(shown)}: its name leads out of the folder: left out")
        elif problem := _problem(info):
            yield HandedIn(parts, problem=problem)
        else:
            yield HandedIn(parts, info.file_size, _time(info), functools.partial(archive.open, info))


class _Readable:
    """A zip's file whose list of entries can be read: one name that is no UTF-8, though it says so, would hide all the
    others. No byte is read otherwise but the flag of such an entry, in the list and where the entry begins."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._begins: set[int] = set()  # where those entries begin
        self.is_listing = True

    def read(self, size: int = -1) -> bytes:
        place = self._file.tell()
        data: bytes = self._file.read(size)
        if self.is_listing and data.startswith(_CENTRAL):
            return self._with_readable_names(data)
        return _without_flag(data, 7) if not self.is_listing and place in self._begins else data

    def _with_readable_names(self, records: bytes) -> bytes:
        place, listed = 0, bytearray(records)
        while records.startswith(_CENTRAL, place) and place + _RECORD <= len(records):
            name, extra, comment = struct.unpack_from("<3H", records, place + 28)
            if extra > _MAX_EXTRA:
                raise zipfile.BadZipFile(f"an entry with {extra:,} bytes beside its name")
            try:
                records[place + _RECORD : place + _RECORD + name].decode("utf-8")
            except UnicodeDecodeError:
                listed[place + 9] &= ~(_UTF8 >> 8)
                self._begins.add(*struct.unpack_from("<I", records, place + 42))
            place += _RECORD + name + extra + comment
        return bytes(listed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __del__(self) -> None:
        self._file.close()


def _without_flag(data: bytes, place: int) -> bytes:
    """The same where the upper byte of an entry's flags, at `place`, says that its name is UTF-8."""
    return (
        data[:place] + bytes([data[place] & ~(_UTF8 >> 8)]) + data[place + 1 :] if place < len(data) else data
    )


def _shown_name(info: zipfile.ZipInfo) -> str:
    name = info.filename
    if not info.flag_bits & _UTF8:  # "code page 437", which many packers say of UTF-8
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name


def _split(name: str, is_windows: bool) -> list[str]:
    return (name.replace("\\", "/") if is_windows else name).split("/")


def _problem(info: zipfile.ZipInfo) -> str:
    """Why an entry cannot be taken, or ""."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "a link or a device and no file"
    if info.flag_bits & 1:
        return "encrypted"
    if info.compress_type not in _READ:
        return "packed in a way that is not read here: ask for a plain zip"
    if info.file_size > MAX_NOTEBOOK_BYTES:
        size, most = (f"{number / 1e6:,.0f} MB" for number in (info.file_size, MAX_NOTEBOOK_BYTES))
        return f"{size} unpacked, more than the {most} that are taken"
    return ""


def _time(info: zipfile.ZipInfo) -> float:
    """A zip knows no time zone. Two from one system can be compared all the same."""
    year, month, day, *_ = info.date_time
    if year > 1980 and 1 <= month <= 12 and day:
        return float(calendar.timegm(info.date_time))
    return 0.0
