"""One student's hand-in onto the disk: what can be taken of it, and a line for what cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.common import named, one_line
from autograder.grading.handed_in.archives import MAX_INNER_ZIP, files_in_inner_zip, num_entries
from autograder.grading.handed_in.files import MAX_BYTES, MAX_FILES, HandedIn, fitting
from autograder.grading.handed_in.whose import HandIn, folded_name
from autograder.grading.reading import STAMP, time_in
from course_lib.base import UserError

_MAX_LINES = 20
_MAX_ENTRIES = 5 * MAX_FILES  # of all zips of one student, taken or not, and each zip for one


class Lines:
    """What there is to tell, in a bounded number of bounded lines."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._num_more = 0

    def add(self, line: str) -> None:
        """Tell this, unless enough is told."""
        if len(self._lines) < _MAX_LINES:
            self._lines.append(one_line(line))
        else:
            self._num_more += 1

    def __iter__(self) -> Iterator[str]:
        yield from self._lines
        if self._num_more:
            yield f"and {self._num_more} more like these"


def write_hand_in(handed_in: HandIn, folder: Path) -> Lines:
    """Write the files into an empty folder; returns what a person should know.

    Raises UserError, which says why, where none of them can be taken.
    """
    taking = _Taking(folder)
    for file in handed_in.files:
        if file.parts != (STAMP,) or (handed_in.is_plain and _stamp(file) and not handed_in.time):
            taking.take(file)
        elif (
            handed_in.is_plain and not handed_in.time
        ):  # in what a student uploaded it would be the student's own word
            taking.lines.add(f"{STAMP} holds no time: left out")
    if not taking.names - {STAMP}:
        raise UserError("; ".join(taking.lines) or "nothing in it")
    if handed_in.time:
        (folder / STAMP).write_text(f"{handed_in.time:%Y-%m-%d %H:%M:%S} UTC", encoding="utf-8")
    if not any(name.endswith(".ipynb") for name in taking.names):
        taking.lines.add("no notebook in it")
    return taking.lines


class _Taking:
    """The files so far.

    Attributes:
        names: of those that are written, as file systems compare them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = Lines()
        self.names: set[str] = set()
        self._left, self._entries_left = MAX_BYTES, _MAX_ENTRIES

    def take(self, file: HandedIn, *, is_inner: bool = False) -> None:
        """Write a file, or the files of a zip; a zip within one stays a zip."""
        shown, is_zip = named("/".join(file.parts)), file.parts[-1].lower().endswith(".zip")
        try:
            if file.problem:
                raise UserError(file.problem)
            if is_zip and not is_inner:
                self._unpack(file)
                return
            self._write(file)
            if is_zip:
                self.lines.add(f"{shown} is a zip within a zip: not unpacked")
        except UserError as error:
            self.lines.add(f"{shown}: {error}: left out")
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            self.lines.add(f"{shown}: a file and a folder: left out")

    def _write(self, file: HandedIn) -> None:
        shown, parts = named("/".join(file.parts)), fitting(file.parts)
        if (name := folded_name("/".join(parts))) in self.names:
            self.lines.add(f"{shown} is there twice: the first one is taken")
            return
        self._pay(file)
        file.write(self.folder.joinpath(*parts))
        self.names.add(name)
        if parts != file.parts:
            self.lines.add(f"{shown}: no name that a file can have: taken as {named('/'.join(parts))}")

    def _unpack(self, file: HandedIn) -> None:
        if file.size > MAX_INNER_ZIP:
            raise UserError(f"a zip within it has more than {MAX_INNER_ZIP // 1_000_000} MB")
        self._pay(file)
        self._pay_entries(1)
        data, place = b"".join(file.content()), file.parts[:-1]
        self._pay_entries(num_entries(data))
        for each in files_in_inner_zip(data, file.parts[-1], self.lines.add):
            if each.parts != (STAMP,):
                # The times in it are those of the student's clock; its own is that of who took it in.
                self.take(replace(each, parts=(*place, *each.parts), time=file.time), is_inner=True)

    def _pay(self, file: HandedIn) -> None:
        """What was read counts, too: many zips that hold nothing would keep the class waiting."""
        if len(self.names) >= MAX_FILES or file.size > self._left:
            raise UserError(f"beyond {MAX_FILES} files or {MAX_BYTES // 1_000_000} MB")
        self._left -= file.size

    def _pay_entries(self, number: int) -> None:
        """Entries that are left out take time as well, and next to no bytes."""
        if number > self._entries_left:
            raise UserError(f"beyond {_MAX_ENTRIES:,} entries of zips")
        self._entries_left -= number


def _stamp(file: HandedIn) -> datetime | None:
    try:
        return time_in(b"".join(file.content())) if not file.problem and file.size < 1_000 else None
    except UserError:
        return None
