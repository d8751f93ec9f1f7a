"""`workbook collect`: what students handed in, from folders and zips to where nbgrader and `workbook grade` look.

The time of a hand-in is what a table says (`known`), or nbgrader's `timestamp.txt` in a plain folder, and nothing else:
Moodle and Canvas stamp the files of their zips with the time of the download. Such times only tell which of two is the
newer.
"""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autograder.common import named, one_line
from autograder.course import Lesson
from autograder.grading.handed_in.archives import Tell, files_in_zip
from autograder.grading.handed_in.collected import Collected, Unassigned
from autograder.grading.handed_in.files import HandedIn, file_at, files_in_folder
from autograder.grading.handed_in.known import Known
from autograder.grading.handed_in.origins import keep_origin
from autograder.grading.handed_in.placing import is_of_answers, paths_in, put
from autograder.grading.handed_in.roster import Roster, groups_of
from autograder.grading.handed_in.taking import Lines
from autograder.grading.handed_in.whose import HandIn, folded_name, grouped, is_of_one, without_top
from autograder.grading.marking import OnProgress, known_lesson
from autograder.grading.reading import STAMP
from autograder.quizzes import has_quiz
from course_lib.base import UserError

_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EROFS)


def collect(
    lesson_id: str,
    course: Path,
    paths: Sequence[Path],
    *,
    known: Sequence[Known] = (),
    takes_new: bool = False,
    on_progress: OnProgress = lambda *_: None,
) -> Collected:
    """Put what was handed in into `submitted/STUDENT/SLUG`.

    Of two hand-ins the files of the newer take the place of the older one's; the answers of the older stay where the
    newer has none. An older one never takes the place of a newer. Hand-ins of other lessons in the same folder are
    passed over. What is wrong with one is the fate of its student alone.

    Args:
        paths: folders, zips, notebooks. One that is named for a student of the gradebook is that student's alone.
        known: whose hand-ins are and when they came, where names do not say it.
        takes_new: whether a folder of a name that nobody in the gradebook has is a new student's.
        on_progress: gets the phase, which hand-in is taken now, and how many there are.

    Raises:
        UserError: a path cannot be read, `known` speaks of nobody, or the course cannot be written to.
    """
    lesson = known_lesson(lesson_id)
    roster = Roster(course, known, takes_new=takes_new)
    found = Collected(lesson.id)
    for path in paths:
        by_student = hand_ins(path, lesson, roster, found)
        for done, (student, each) in enumerate(by_student.items(), start=1):
            on_progress("collecting", done, len(by_student))
            if student != each.name:
                found.named[student] = each.name
            if student not in roster.ids:
                found.new.append(student)
            row = roster.known_of(each)
            each.time = row.time if row else None
            try:
                outcome = put(course / "submitted" / student, each, lesson, found)
                if outcome != "kept":
                    keep_origin(course, lesson.slug, student, each)
                found.of(outcome).append(student)
                _note_what_lacks(course / "submitted" / student / lesson.slug, each, lesson, found)
            except UserError:
                raise
            except Exception as error:
                if os.environ.get("WORKBOOK_DEBUG"):
                    raise
                found.failed[student] = one_line(str(error) or type(error).__name__)
    return found


def hand_ins(path: Path, lesson: Lesson, roster: Roster, found: Collected) -> dict[str, HandIn]:
    """Student → hand-in of a folder, zip or notebook; what belongs to nobody known, and what a person should know, goes
    into `found`."""
    lines = Lines()
    try:
        handed_in = grouped(_files(path, lesson, roster, lines.add), lesson)
    except _UnclearError as error:
        found.unassigned.append(Unassigned(path.name, str(error)))
        return {}
    found.problems.extend(lines)
    return _assigned(handed_in, roster, found)


def _note_what_lacks(folder: Path, handed_in: HandIn, lesson: Lesson, found: Collected) -> None:
    student = folder.parent.name
    if handed_in.is_late and not (folder / STAMP).is_file():
        found.late.append(student)
    if has_quiz(lesson.id) and not any(is_of_answers(path.name) for path in paths_in(folder)):
        found.without_answers.append(student)


class _UnclearError(Exception):
    """Whose the only folder in a folder or zip is."""


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
    """Each student's hand-in. Of several for one student that under the student's id counts, or under the name as it is
    spelt, and else none: which of them is the student's own, their names do not say."""
    claims: dict[str, list[tuple[str, HandIn]]] = defaultdict(list)
    groups = groups_of(handed_in)
    for each in handed_in:
        try:
            student = roster.is_(each, groups)
            claims[folded_name(student)].append((student, each))
        except UserError as error:
            found.unassigned.append(Unassigned(each.name, str(error)))
    assigned = {}
    for several in claims.values():
        exact = [(student, each) for student, each in several if student == each.name and each.is_plain]
        exact = exact or [
            (student, each) for student, each in several if each.name in roster.spelt.get(student, ())
        ]
        counted = exact if len(exact) == 1 else several if len(several) == 1 else []
        for student, each in several:
            if (student, each) in counted:
                assigned[student] = each
            else:
                others = ", ".join(named(other.name) for _, other in several if other is not each)
                why = f"{student} has another hand-in here, {others}: say whose each is, by --as, or take one away"
                found.unassigned.append(Unassigned(each.name, why))
    return assigned
