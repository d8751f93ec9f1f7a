"""`workbook collect`: what students handed in, from folders and zips to where nbgrader and `workbook grade` look.

The time of a hand-in is nbgrader's `timestamp.txt` in a plain folder, and nothing else: Moodle and Canvas stamp the
files of their zips with the time of the download. Such times only tell which of two is the newer.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from pathlib import Path

from autograder.common import named, one_line
from autograder.course import Lesson
from autograder.grading.handed_in.archives import Tell, files_in_zip
from autograder.grading.handed_in.collected import Collected, Outcome, Unassigned
from autograder.grading.handed_in.files import HandedIn, file_at, files_in_folder
from autograder.grading.handed_in.taking import Lines, write_hand_in
from autograder.grading.handed_in.whose import HandIn, Roster, folded_name, grouped, is_of_one, without_top
from autograder.grading.marking import OnProgress, known_lesson
from autograder.grading.reading import STAMP, time_in
from course_lib.base import UserError

_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EROFS)


def collect(
    lesson_id: str, course: Path, paths: Sequence[Path], *, on_progress: OnProgress = lambda *_: None
) -> Collected:
    """Put what was handed in into `submitted/STUDENT/SLUG`.

    A newer hand-in takes the place of an older one, whole; an older one never that of a newer. Hand-ins of other
    lessons in the same folder are passed over. What is wrong with one is the fate of its student alone.

    Args:
        paths: folders, zips, notebooks. One that is named for a student of the gradebook is that student's alone.
        on_progress: gets the phase, which hand-in is taken now, and how many there are.

    Raises:
        UserError: a path cannot be read, or the course not written to.
    """
    lesson = known_lesson(lesson_id)
    roster = Roster(course)
    found = Collected(lesson.id)
    for path in paths:
        lines = Lines()
        try:
            handed_in = grouped(_files(path, lesson, roster, lines.add), lesson)
        except _UnclearError as error:
            found.unassigned.append(Unassigned(path.name, str(error)))
            continue
        found.problems.extend(lines)
        by_student = _assigned(handed_in, roster, found)
        for done, (student, each) in enumerate(by_student.items(), start=1):
            on_progress("collecting", done, len(by_student))
            if student != each.name:
                found.named[student] = each.name
            if each.is_late:
                late = "Canvas says LATE, and not how late; a penalty is yours to enter"
                found.problems.append(f"{named(student)}: {late}")
            try:
                found.of(_put(course / "submitted" / student, each, lesson, found)).append(student)
            except UserError:
                raise
            except Exception as error:
                if os.environ.get("WORKBOOK_DEBUG"):
                    raise
                found.failed[student] = one_line(str(error) or type(error).__name__)
    return found


class _UnclearError(Exception):
    """Whose the only folder in a folder or zip is."""


class _Untaken(Exception):
    """Nothing of a hand-in can be taken."""


def _files(path: Path, lesson: Lesson, roster: Roster, tell: Tell) -> list[HandedIn]:
    is_zip = path.suffix.lower() == ".zip"
    if not path.is_dir() and not path.is_file():
        raise UserError(f"there is no {path}; name a folder, a zip or a notebook")
    if path.is_dir():
        files = list(files_in_folder(path))
    elif is_zip and not is_of_one(path.name, roster):
        files = list(files_in_zip(path, tell))
    else:
        return [file_at(path.resolve(), (path.name,))]
    if path.is_dir() and is_of_one(path.name, roster):
        return [replace(file, parts=(path.name, *file.parts)) for file in files]
    try:
        return without_top(files, lesson, roster, path.stem if is_zip else "")
    except UserError as error:
        raise _UnclearError(str(error)) from None


def _assigned(handed_in: list[HandIn], roster: Roster, found: Collected) -> dict[str, HandIn]:
    """Each student's hand-in. Of several for one student that under the student's id counts, and else none: which of
    them is the student's own, their names do not say."""
    claims: dict[str, list[tuple[str, HandIn]]] = defaultdict(list)
    for each in handed_in:
        try:
            student = roster.is_(each)
            claims[folded_name(student)].append((student, each))
        except UserError as error:
            found.unassigned.append(Unassigned(each.name, str(error)))
    assigned = {}
    for several in claims.values():
        exact = [(student, each) for student, each in several if student == each.name and each.is_plain]
        counted = exact if len(exact) == 1 else several if len(several) == 1 else []
        for student, each in several:
            if (student, each) in counted:
                assigned[student] = each
            else:
                others = ", ".join(named(other.name) for _, other in several if other is not each)
                why = f"{student} has another hand-in here, {others}: take one of them away"
                found.unassigned.append(Unassigned(each.name, why))
    return assigned


def _put(home: Path, handed_in: HandIn, lesson: Lesson, found: Collected) -> Outcome:
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
        if before == now:
            return "unchanged"
        if _time(target) > _time(made):
            return "kept"
        target.rename(old)
        made.rename(target)
        found.files[student] = sorted(name for name, content in before.items() if now.get(name) != content)
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


def _time(folder: Path) -> float:
    """When a hand-in was made: its time stamp, else the time of its newest file."""
    stamp = folder / STAMP
    if stamp.is_file() and (time := time_in(stamp.read_bytes()[:200])):
        return time.replace(tzinfo=UTC).timestamp()
    return max((path.stat().st_mtime for path in _paths(folder)), default=0.0)


def _contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in _paths(folder)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _paths(folder: Path) -> list[Path]:
    paths = [Path(root, name) for root, _, names in os.walk(folder) for name in names]
    return [path for path in paths if path.is_file() and not path.is_symlink()]
