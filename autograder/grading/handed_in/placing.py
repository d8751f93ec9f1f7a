"""One student's hand-in into its place, or into that of an earlier one: killed at any moment, either is there."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC
from pathlib import Path

from autograder.common import named
from autograder.course import Lesson
from autograder.grading.handed_in.collected import Collected, Outcome
from autograder.grading.handed_in.taking import write_hand_in
from autograder.grading.handed_in.whose import HandIn
from autograder.grading.reading import STAMP, time_in
from course_lib.base import UserError

_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EROFS)


class _Untaken(Exception):
    """Nothing of a hand-in can be taken."""


def put(home: Path, handed_in: HandIn, lesson: Lesson, found: Collected) -> Outcome:
    """Write a hand-in, unless it is there or what is there is newer; returns which. Raises UserError where nobody's can
    be written, and whatever else is the fate of this one."""
    student, target = home.name, home / lesson.slug
    made, old = home / f".collecting-{lesson.slug}", home / f".replaced-{lesson.slug}"
    try:
        if old.is_dir() and not target.exists():  # killed between the two renames
            old.rename(target)
        _remove(made, old)
        made.mkdir(parents=True)
        try:
            lines = write_hand_in(handed_in, made)
        except UserError as error:
            raise _Untaken(str(error)) from None
        found.problems.extend(f"{named(student)}: {line}" for line in lines)
        if not target.exists():
            made.rename(target)
            return "collected"
        before, now = _contents(target), _contents(made)
        gone = before.keys() - now.keys() - {STAMP} - _not_brought(before, now)
        if now.items() <= before.items() and not gone:
            return "unchanged"
        is_same_work = before == {name: content for name, content in now.items() if name != STAMP}
        if not is_same_work and _time(target) > _time(made):
            return "kept"
        stayed = _not_brought(before, now)
        for name in stayed:
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(target / name, made / name)
        target.rename(old)
        made.rename(target)
        if stayed:
            found.stayed[student] = sorted(stayed)
        others = {name for name, content in before.items() if now.get(name) != content}
        found.files[student] = sorted(others - stayed) or [STAMP]
        return "replaced"
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise UserError(f"cannot write {target}: {error.strerror}") from None
        raise
    finally:
        _remove(made, old)
        with suppress(OSError):
            home.rmdir()  # where nothing was there and nothing came


def _remove(*folders: Path) -> None:
    for folder in folders:
        with suppress(RecursionError):  # a hand-in that somebody unpacked by hand may be as deep as it likes
            shutil.rmtree(folder, ignore_errors=True)


def _not_brought(before: Collection[str], now: Collection[str]) -> set[str]:
    """What stays of an earlier hand-in: its answers where the later one has none, its notebooks where that has none."""
    return {
        name
        for kind in (is_of_answers, _is_notebook)
        if not any(map(kind, now))
        for name in filter(kind, before)
    }


def is_of_answers(name: str) -> bool:
    return name.endswith(".json") and "answers" in name.rpartition("/")[2]


def _is_notebook(name: str) -> bool:
    return name.endswith(".ipynb")


def _time(folder: Path) -> float:
    """When a hand-in was made: its time stamp, else the time of its newest file."""
    stamp = folder / STAMP
    if stamp.is_file() and (time := time_in(stamp.read_bytes()[:200])):
        return time.replace(tzinfo=UTC).timestamp()
    return max((path.stat().st_mtime for path in paths_in(folder)), default=0.0)


def _contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in paths_in(folder)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def paths_in(folder: Path) -> list[Path]:
    paths = [Path(root, name) for root, _, names in os.walk(folder) for name in names]
    return [path for path in paths if path.is_file() and not path.is_symlink()]
