"""`workbook collect`: what students handed in, from folders and zips to where nbgrader and `workbook grade` look.

The time of a hand-in is nbgrader's `timestamp.txt` in a plain folder, and nothing else: Moodle and Canvas stamp the
files of their zips with the time of the download. Such times only tell which of two is the newer.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from autograder.course import Lesson
from autograder.grading.handed_in.files import MAX_BYTES, MAX_FILES, HandedIn, files_in, files_in_inner_zip
from autograder.grading.handed_in.whose import HandIn, Roster, grouped
from autograder.grading.marking import OnProgress, known_lesson
from course_lib.base import UserError

STAMP = "timestamp.txt"
Outcome = Literal["collected", "replaced", "unchanged", "kept"]


@dataclass(frozen=True)
class Unassigned:
    """What belongs to nobody known: its name in the folder or zip, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Collected:
    """What `collect` came to.

    Attributes:
        collected, replaced, unchanged, kept: names of students; where one is kept, what was there is newer.
        named: student → the name in the folder or zip, where it is another.
        problems: a line for each file that was left out, and for what a person should know.
    """

    lesson: str
    collected: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    unassigned: list[Unassigned] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def of(self, outcome: Outcome) -> list[str]:
        """The names of those whose hand-ins came to this."""
        names: list[str] = getattr(self, outcome)
        return names


def collect(
    lesson_id: str, course: Path, paths: Sequence[Path], *, on_progress: OnProgress = lambda *_: None
) -> Collected:
    """Put what was handed in into `submitted/STUDENT/SLUG`.

    A newer hand-in takes the place of an older one, whole; an older one never that of a newer. Hand-ins of other
    lessons in the same folder are passed over.

    Args:
        paths: folders, zips, notebooks.
        on_progress: gets the phase, which hand-in is taken now, and how many there are.

    Raises:
        UserError: a path cannot be read, or the course not written to.
    """
    lesson = known_lesson(lesson_id)
    who = Roster(course)
    found = Collected(lesson.id)
    for path in paths:
        tell = found.problems.append
        handed_in = grouped(files_in(path, tell), lesson)
        taken: dict[str, str] = {}
        for done, each in enumerate(handed_in, start=1):
            on_progress("collecting", done, len(handed_in))
            try:
                student = who.is_(each)
                if student in taken:
                    raise UserError(
                        f"{student} has another hand-in here, {taken[student]}: take one of them away"
                    )
            except UserError as error:
                found.unassigned.append(Unassigned(each.name, str(error)))
                continue
            taken[student] = each.name
            if student != each.name:
                found.named[student] = each.name
            if each.is_late:
                tell(f"{student}: Canvas says LATE, and not how late; a penalty is yours to enter")
            found.of(_put(course / "submitted" / student, each, lesson, tell)).append(student)
    return found


def collected_text(found: Collected) -> str:
    """What `collect` did, in lines."""
    told: tuple[Outcome, ...] = ("collected", "replaced", "unchanged")
    counts = [f"{len(names)} {outcome}" for outcome in told if (names := found.of(outcome))]
    lines = [f"Lesson {found.lesson}: {', '.join(counts) or 'nothing collected'}"]
    lines += [f"  {name} → {student}" for student, name in found.named.items()]
    lines += [f"  {student}: what is there is newer, and stays" for student in found.kept]
    if found.unassigned:
        lines += ["Whose these are is not known:"]
        lines += [f"  {each.name}: {each.why}" for each in found.unassigned]
    if found.problems:
        lines += ["For a person to look at:", *(f"  {line}" for line in found.problems)]
    return "\n".join(lines)


def _put(home: Path, handed_in: HandIn, lesson: Lesson, tell: Callable[[str], None]) -> Outcome:
    """Write a hand-in, unless it is there or what is there is newer; returns which."""
    student, target = home.name, home / lesson.slug
    made, old = home / f".collecting-{lesson.slug}", home / f".replaced-{lesson.slug}"
    if old.is_dir() and not target.exists():  # killed between the two renames
        old.rename(target)
    for leftover in (made, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        made.mkdir(parents=True)
        for line in _write(handed_in, made, lesson):
            tell(f"{student}: {line}")
        if target.exists():
            if _contents(target) == _contents(made):
                return "unchanged"
            if _time(target) > _time(made):
                return "kept"
            target.rename(old)
            made.rename(target)
            return "replaced"
        made.rename(target)
        return "collected"
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from None
    finally:
        for leftover in (made, old):
            shutil.rmtree(leftover, ignore_errors=True)


def _write(handed_in: HandIn, folder: Path, lesson: Lesson) -> Iterator[str]:
    """Write the files; yields what a person should know."""
    problems: list[str] = []
    seen: set[str] = set()
    left = MAX_BYTES
    for file in _unpacked(handed_in.files, problems):
        name = "/".join(file.parts)
        if name == STAMP and not (handed_in.is_plain and _stamp(file)):
            if handed_in.is_plain:
                problems.append(f"{STAMP} holds no time: left out")
            continue  # in what a student uploaded it would be the student's own word
        if name.casefold() in seen:
            problems.append(f"{name} is there twice: the first one is taken")
        elif len(seen) >= MAX_FILES or file.size > left:
            problems.append(f"{name} is beyond {MAX_FILES} files or {MAX_BYTES // 1_000_000} MB: left out")
        else:
            try:
                file.write(folder.joinpath(*file.parts))
                left -= file.size
            except (UserError, FileExistsError, IsADirectoryError, NotADirectoryError) as error:
                problems.append(
                    f"{name}: {error if isinstance(error, UserError) else 'a file and a folder'}: left out"
                )
        seen.add(name.casefold())
    notebooks = sorted(folder.rglob("*.ipynb"))
    if not notebooks:
        problems.append("no notebook in it")
    yield from problems[:20]
    if len(problems) > 20:
        yield f"and {len(problems) - 20} more like these"


def _unpacked(files: list[HandedIn], problems: list[str]) -> Iterator[HandedIn]:
    """The files, and those of the zips among them; a zip within such a zip stays one."""
    for file in files:
        if not file.parts[-1].lower().endswith(".zip"):
            yield file
            continue
        try:
            inner = [each for each in files_in_inner_zip(file, problems.append) if each.parts != (STAMP,)]
        except UserError as error:
            problems.append(f"{error}: left out")
            continue
        yield from (replace(each, parts=(*file.parts[:-1], *each.parts)) for each in inner)


def _stamp(file: HandedIn) -> datetime | None:
    with file.open() as content:
        return _parsed(content.read(200))


def _parsed(text: bytes) -> datetime | None:
    from nbgrader.utils import parse_utc

    try:
        time = parse_utc(text.decode("utf-8").strip())
        return time.replace(tzinfo=UTC) if time else None
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None


def _time(folder: Path) -> float:
    """When a hand-in was made: its time stamp, else the time of its newest file."""
    stamp = folder / STAMP
    if stamp.is_file() and (time := _parsed(stamp.read_bytes()[:200])):
        return time.timestamp()
    return max((path.stat().st_mtime for path in folder.rglob("*") if path.is_file()), default=0.0)


def _contents(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }
