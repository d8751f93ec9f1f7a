"""Whose a file is that was handed in, by the names that people and learning management systems give.

    STUDENT/… or STUDENT.ipynb or STUDENT.zip                 plain: the student's id, or the name
    Full Name_12345_assignsubmission_file_/…                  Moodle, "Download all submissions"; without folders, the
                                                              file's name follows (mod/assign/classes/downloader.php)
    lastfirst_12345_678_FILE, lastfirst_LATE_12345_678_FILE   Canvas, "Download submissions" (lib/content_zipper.rb)

Names are looked up among the students of the gradebook, Canvas's number of a user as their `lms_user_id`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.course import Lesson, lesson_ids, load_lesson
from autograder.grading.gradebook import nbgrader_api
from autograder.grading.handed_in.files import HandedIn
from course_lib.base import UserError

_MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_file_(?P<file>(?!\.{1,2}$).*)")
_OF_MOODLE = "_assignsubmission_file_"
_MOODLE_OTHER = re.compile(r".+_\d+_assignsubmission_\w+_.*")  # text typed in, comments
_CANVAS = re.compile(r"(?P<name>[^\W_]\w*?)_(?P<late>LATE_)?(?P<number>\d+)_\d+_(?P<file>(?!\.{1,2}$).+)")
_CANVAS_NUMBERS = re.compile(r"_[1-9]\d*(?=_[1-9]\d*_)")  # wherever they could stand
_CANVAS_ANON = re.compile(r"(LATE_)?anon_\w+_\d+_(?P<file>.+)")
_AGAIN = re.compile(r"-\d+(?=\.\w+$)")  # Canvas's "notebook-1.ipynb" of a second hand-in
_COPY = re.compile(r"(?i)([ _-]?\(?\d+\)?| copy)?")  # what a second download adds to a name
_ID = re.compile(r"[^\W_.+*][^+*/\\\0]{0,99}")


@dataclass
class HandIn:
    """What one student handed in, as one folder or zip has it.

    Attributes:
        name: as it stands there.
        number: Canvas's, of the user; "" elsewhere.
        is_plain: whether a person named it, and no system.
        is_late: whether Canvas says so.
        files: their paths begin within the hand-in.
        is_clear: whether its name can be read in one way only: a student's own name may look like the system's.
    """

    name: str
    number: str
    is_plain: bool
    is_late: bool = False
    files: list[HandedIn] = field(default_factory=list)
    is_clear: bool = True


def is_of_one(name: str, roster: Roster) -> bool:
    """Whether a folder, zip or file of this name is one student's own: what is inside speaks for nobody else then."""
    stem = Path(name).stem if name.lower().endswith((".zip", ".ipynb")) else name
    return bool(_MOODLE.fullmatch(name) or _CANVAS.fullmatch(name)) or stem in roster


def grouped(files: Iterable[HandedIn], lesson: Lesson) -> list[HandIn]:
    """The hand-ins that a folder or a zip holds for a lesson, by name."""
    others = {load_lesson(lesson_id).slug for lesson_id in lesson_ids()} - {lesson.slug}
    is_as_released = re.compile(rf"{lesson.slug}(_answers)?(-\d+)?\.[a-z]+").fullmatch
    groups: dict[tuple[str, str, bool], HandIn] = {}
    for file in files:
        first, rest, key = file.parts[0], file.parts[1:], ""
        if match := _MOODLE.fullmatch(first):
            is_clear = first.count(_OF_MOODLE) == 1
            each = HandIn(match["name"], "", is_plain=False, is_clear=is_clear)
            rest, key = ((match["file"], *rest) if match["file"] else rest), match["number"]
        elif not rest and not _CANVAS_ANON.fullmatch(first) and (match := _CANVAS.fullmatch(first)):
            key = match["number"]
            is_clear = len(_CANVAS_NUMBERS.findall(first)) == 1 or bool(is_as_released(match["file"]))
            each = HandIn(match["name"], key, False, is_late=bool(match["late"]), is_clear=is_clear)
            rest = (_AGAIN.sub("", match["file"]),)
        elif _MOODLE_OTHER.fullmatch(first) or (not rest and _CANVAS_ANON.fullmatch(first)):
            each, rest = HandIn(first, "", is_plain=False), rest or (first,)
        elif not rest:  # a file per student
            stem, dot, suffix = first.rpartition(".")
            name = stem.removesuffix("_answers")
            each = HandIn(name or first, "", is_plain=True)
            rest = (f"{lesson.slug}{'_answers' * (name != stem)}{dot}{suffix}",)
        else:
            each = HandIn(first, "", is_plain=True)
            if rest[0] in others and len(rest) > 1:
                continue
            rest = rest[1:] if rest[0] == lesson.slug and len(rest) > 1 else rest
        group = groups.setdefault((each.name, key, each.is_clear), each)
        group.files.append(replace(file, parts=rest or (first,)))
    return sorted(groups.values(), key=lambda each: each.name)


def without_top(files: list[HandedIn], lesson: Lesson, roster: Roster, packed: str) -> list[HandedIn]:
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


class Roster:
    """The students of the gradebook."""

    def __init__(self, course: Path) -> None:
        from nbgrader.api import Gradebook

        coursedir = nbgrader_api(course).coursedir
        self.by_name: dict[str, set[str]] = defaultdict(set)
        self.by_number: dict[str, str] = {}
        self.ids: set[str] = set()
        self.slugs = {load_lesson(lesson_id).slug for lesson_id in lesson_ids()}
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            for student in gradebook.students:
                self.ids.add(student.id)
                if student.lms_user_id:
                    self.by_number[str(student.lms_user_id)] = student.id
                names = [student.first_name or "", student.last_name or ""]
                for name in {_letters("".join(names)), _letters("".join(reversed(names)))} - {""}:
                    self.by_name[name].add(student.id)

    def __contains__(self, name: str) -> bool:
        """Whether a student has this id or is called so."""
        return name in self.ids or bool(self.by_name.get(_letters(name)))

    def is_(self, handed_in: HandIn) -> str:
        """The id of who handed it in. Raises UserError with the reason, where that is not known."""
        name = handed_in.name
        if name in self.slugs:
            raise UserError(
                "this is a lesson's name and no student's: put it into a folder with the student's id"
            )
        if not handed_in.is_clear:
            raise UserError("its name can be read in more than one way, as that of one student or of another")
        if handed_in.number in self.by_number:
            return self.by_number[handed_in.number]
        if name in self.ids:
            return name
        called = self.by_name.get(_letters(name), set())
        if len(called) == 1:
            return next(iter(called))
        if called:
            raise UserError(f"{len(called)} students are called so: {', '.join(sorted(called))}")
        if alike := [each for each in self.ids if folded_name(each) == folded_name(name)]:
            raise UserError(f"this is {alike[0]} in other letters: rename it if it is theirs")
        if handed_in.is_plain and _ID.fullmatch(name) and name.isprintable():
            return name
        number = f" --lms-user-id {handed_in.number}" if handed_in.number else ""
        raise UserError(
            "no student of the gradebook is called so; there, run: nbgrader db student add ID --first-name FIRST "
            f"--last-name LAST{number}"
        )


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def folded_name(name: str) -> str:
    """The same for names that some file systems hold for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
