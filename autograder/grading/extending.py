"""`workbook extend`: more time for a student, or for all whom the course's table names."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from autograder.common import named, quoted
from autograder.course import lesson_ids, load_lesson
from autograder.grading.gradebook import nbgrader_api
from autograder.grading.marking import known_lesson
from autograder.grading.terms import TABLE, Granted, checked, extend, grant, granted_in, settle_lateness
from course_lib.base import UserError


@dataclass(frozen=True, kw_only=True)
class Extended:
    """What `extended` came to.

    Attributes:
        rows: of the table, as it is now.
        counted: lesson → whose points count the extension now, for it was another before.
        unknown: whom the table names and neither the gradebook nor `submitted` has.
    """

    rows: list[Granted]
    counted: dict[str, list[str]]
    unknown: list[str]


def extended(
    course: Path,
    *,
    student: str = "",
    lesson_id: str = "",
    days: float | None = None,
    exam_time: float | None = None,
    note: str = "",
) -> Extended:
    """Write what a student is granted into the table, and bring the gradebook up to date with all of it.

    Args:
        student: the id; "" to change nothing in the table.
        lesson_id: "" for each lesson.
        days, exam_time, note: as in `Granted`.

    Raises:
        UserError: there is no course, student or lesson of that name, or nothing was granted; names the fix.
    """
    from nbgrader.api import Gradebook, MissingEntry

    api = nbgrader_api(course)
    if lesson_id:
        known_lesson(lesson_id)
    if not student and (days is not None or exam_time is not None or note):
        raise UserError("name the student: workbook extend STUDENT LESSON --days 3")
    if student and days is None and exam_time is None:
        raise UserError("say what is granted: --days 3, or --exam-time 1.5 for half as much time again")
    with Gradebook(api.coursedir.db_url, api.coursedir.course_id) as gradebook:
        known = {each.id for each in gradebook.students} | _handed_in(course)
        if student and student not in known:
            raise UserError(_nobody(student, known))
        if student:
            row = Granted(student=student, lesson=lesson_id, days=days, exam_time=exam_time, note=note)
            grant(course, checked(row, f"{student}, lesson {lesson_id or 'each'}"))
        rows, counted = granted_in(course), {}
        for lesson in map(load_lesson, lesson_ids()):
            try:
                changed = extend(gradebook, lesson.slug, rows)
            except MissingEntry:  # not released yet: it counts once the lesson is graded
                continue
            settle_lateness(gradebook, lesson.slug, api.config)
            if changed:
                counted[lesson.id] = changed
    unknown = sorted({row.student for row in rows} - known)
    return Extended(rows=rows, counted=counted, unknown=unknown)


def extended_text(found: Extended) -> str:
    """What is granted to whom, in lines."""
    if not found.rows:
        return f"Nobody has more time. For one: workbook extend STUDENT LESSON --days 3. For many: a table {TABLE}"
    lines = []
    for row in found.rows:
        where = f"lesson {row.lesson}" if row.lesson else "each lesson"
        lines.append(f"{named(row.student)}, {where}: {row.words or 'nothing more'}")
    for lesson, students in found.counted.items():
        lines.append(f"Lesson {lesson}, counted in the gradebook now: {', '.join(map(named, students))}")
    if any(row.exam_time for row in found.rows):
        lines.append(
            'An exam with a clock goes by what its learner tells it: give them the line exam("09", more_time=…) with '
            "their number. Grading goes by this table."
        )
    lines += [
        f"{named(name)} is neither in the gradebook nor in submitted: a slip of the pen?"
        for name in found.unknown
    ]
    return "\n".join([*lines, f"Kept in {TABLE}; who hands in later has it then."])


def _handed_in(course: Path) -> set[str]:
    submitted = course / "submitted"
    return {path.name for path in submitted.iterdir() if path.is_dir()} if submitted.is_dir() else set()


def _nobody(student: str, known: set[str]) -> str:
    near = difflib.get_close_matches(student, known, 1)
    meant = f"did you mean {named(near[0])}? Else" if near else "if that is the id,"
    return f"there is no student {quoted(student)}: {meant} enter them first: nbgrader db student add ID"
