"""Whose a file is that was handed in, by the names that people and learning management systems give.

    STUDENT/… or STUDENT.ipynb or STUDENT.zip                 plain: the student's id, or the name
    Full Name_12345_assignsubmission_file/…                   Moodle, "Download all submissions", from 4.1 on
    Full Name_12345_assignsubmission_file_/…                  before (mod/assign/feedback/file/importziplib.php says so)
    Full Name_12345_assignsubmission_file_FILE                without folders (mod/assign/classes/downloader.php)
    Group-Full Name_12345_…, Participant 12345_…              before 4.1 with the group; in blind marking without names
    lastfirst_12345_678_FILE, lastfirst_LATE_12345_678_FILE   Canvas, "Download submissions" (lib/content_zipper.rb)

Names are looked up among the students of the gradebook, Canvas's number of a user as their `lms_user_id`. Moodle's
number is that of a participant in this one assignment: its worksheet says who it is (`known`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from autograder.course import Lesson, lesson_ids, load_lesson
from autograder.grading.handed_in.files import HandedIn
from course_lib.base import UserError

_MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_file(_(?P<file>(?!\.{1,2}$).*))?", re.DOTALL
)
_OF_MOODLE = "_assignsubmission_file"
_MOODLE_OTHER = re.compile(r".+_assignsubmission_\w+.*")  # text typed in, comments; a team without a number
_CANVAS = re.compile(
    r"(?P<name>[^\W_]\w*?)_(?P<late>LATE_)?(?P<number>\d+)_(?P<attachment>\d+)_(?P<file>(?!\.{1,2}$).+)"
)
_CANVAS_NUMBERS = re.compile(r"_[1-9]\d*(?=_[1-9]\d*_)")  # wherever they could stand
_CANVAS_ANON = re.compile(r"(LATE_)?anon_\w+_\d+_(?P<file>.+)")
_AGAIN = re.compile(r"-\d+(?=\.\w+$)")  # Canvas's "notebook-1.ipynb" of a second hand-in
_COPY = re.compile(r"(?i)([ _-]?\(?\d+\)?| copy)?")  # what a second download adds to a name


@dataclass
class HandIn:
    """What one student handed in, as one folder or zip has it.

    Attributes:
        name: as it stands there.
        number: Canvas's, of the user, or Moodle's, of the participant; "" elsewhere.
        system: "moodle", "canvas"; "" where a person named it.
        is_late: whether Canvas says so.
        time: when it came, where a table says so.
        attachments: Canvas's number of each file, by the file's name.
        files: their paths begin within the hand-in.
        is_clear: whether its name can be read in one way only: a student's own name may look like the system's.
    """

    name: str
    number: str = ""
    system: str = ""
    is_late: bool = False
    files: list[HandedIn] = field(default_factory=list)
    is_clear: bool = True
    time: datetime | None = None
    attachments: dict[str, str] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether a person named it, and no system."""
        return not self.system


def is_of_one(name: str, roster: Container[str]) -> bool:
    """Whether a folder, zip or file of this name is one student's own: what is inside speaks for nobody else then."""
    stem = Path(name).stem if name.lower().endswith((".zip", ".ipynb")) else name
    return bool(_MOODLE.fullmatch(name) or _CANVAS.fullmatch(name)) or stem in roster


def grouped(files: Iterable[HandedIn], lesson: Lesson) -> list[HandIn]:
    """The hand-ins that a folder or a zip holds for a lesson, by name."""
    others = {load_lesson(lesson_id).slug for lesson_id in lesson_ids()} - {lesson.slug}
    is_as_released = re.compile(rf"{lesson.slug}(_answers)?(-\d+)?\.[a-z]+").fullmatch
    groups: dict[tuple[str, str, bool], HandIn] = {}
    for file in files:
        first, rest = file.parts[0], file.parts[1:]
        if match := _MOODLE.fullmatch(first):
            is_clear = first.count(_OF_MOODLE) == 1
            each = HandIn(match["name"], match["number"], "moodle", is_clear=is_clear)
            rest = (match["file"], *rest) if match["file"] else rest
        elif not rest and not _CANVAS_ANON.fullmatch(first) and (match := _CANVAS.fullmatch(first)):
            is_clear = len(_CANVAS_NUMBERS.findall(first)) == 1 or bool(is_as_released(match["file"]))
            is_late = bool(match["late"])
            each = HandIn(match["name"], match["number"], "canvas", is_late=is_late, is_clear=is_clear)
            each.attachments[match["file"]] = match["attachment"]
            rest = (_AGAIN.sub("", match["file"]),)
        elif _MOODLE_OTHER.fullmatch(first):
            each, rest = HandIn(first, system="moodle"), rest or (first,)
        elif not rest and _CANVAS_ANON.fullmatch(first):
            each, rest = HandIn(first, system="canvas"), (first,)
        elif not rest:  # a file per student
            stem, dot, suffix = first.rpartition(".")
            name = stem.removesuffix("_answers")
            each = HandIn(name or first)
            rest = (f"{lesson.slug}{'_answers' * (name != stem)}{dot}{suffix}",)
        else:
            each = HandIn(first)
            if rest[0] in others and len(rest) > 1:
                continue
            rest = rest[1:] if rest[0] == lesson.slug and len(rest) > 1 else rest
        group = groups.setdefault((each.name, each.number, each.is_clear), each)
        group.attachments |= each.attachments
        group.files.append(replace(file, parts=rest or (first,)))
    return sorted(groups.values(), key=lambda each: each.name)


def without_top(files: list[HandedIn], lesson: Lesson, roster: Container[str], packed: str) -> list[HandedIn]:
    """The files without the folder that holds all of them, as one that was packed whole has; a student's stays.

    Which of the two it is, what lies in it cannot say: it is the student's.

    Args:
        packed: the name of the zip without its ending; "" of a folder, whose folders are students'.

    Raises UserError where it could be either.
    """
    top, *more = {file.parts[0] for file in files} or {""}
    if more or not all(len(file.parts) > 1 for file in files) or is_of_one(top, roster):
        return files
    below = {file.parts[1] for file in files}
    is_of_a_system = any(_MOODLE.fullmatch(name) or _CANVAS.fullmatch(name) for name in below)
    is_packed = bool(packed) and lesson.slug not in below and all(len(file.parts) > 2 for file in files)
    if not is_of_a_system and not is_packed:
        return files
    if packed.casefold().startswith(top.casefold()) and _COPY.fullmatch(packed[len(top) :]):
        return [replace(file, parts=file.parts[1:]) for file in files]
    raise UserError(
        "is it one student's, or does it hold a folder for each? Unpack it, and name the folder that holds the "
        "students' folders"
    )


def letters(name: str) -> str:
    """A name as it is compared."""
    return re.sub(r"[\W_]+", "", name.casefold())


def folded_name(name: str) -> str:
    """The same for names that some file systems hold for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
