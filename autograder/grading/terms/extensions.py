"""Who was granted more time: a table of the course, its days in nbgrader's gradebook, and what they change there.

    COURSE/accommodations.csv
        student,lesson,days,exam_time,note
        ada,02,3,,ill
        bo,,2,1.5,learning plan        without a lesson: each

For whom the table has days, it decides; for others stands what nbgrader's `Gradebook.grant_extension` gave.
"""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.common import locked, quoted, read_table
from autograder.course import lesson_ids
from autograder.quizzes import MAX_FACTOR
from course_lib.base import UserError, atomic_write_text

if TYPE_CHECKING:
    from nbgrader.api import Gradebook
    from traitlets.config import Config

TABLE = "accommodations.csv"
_MAX_DAYS = 366.0
_QUIET = logging.getLogger(__name__)  # what it says is not for the middle of a progress bar
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


@dataclass(frozen=True, kw_only=True)
class Granted:
    """A row of the table.

    Attributes:
        lesson: its number; "" for each.
        days: after the due date; None where the row says nothing of it.
        exam_time: how many times the usual time an exam takes; None likewise.
        note: why, for those who teach.
    """

    student: str
    lesson: str = ""
    days: float | None = None
    exam_time: float | None = None
    note: str = ""

    @property
    def words(self) -> str:
        """What was granted, without whom."""
        said = [
            f"{self.days:g} {'day' if self.days == 1 else 'days'} more" if self.days else "",
            f"{self.exam_time:g} × the time in exams" if self.exam_time else "",
            self.note,
        ]
        return ", ".join(filter(None, said))


def granted_in(course: Path) -> list[Granted]:
    """The rows of a course's table; none where there is none. Raises UserError with the row that is no such row."""
    path = course / TABLE
    if not path.is_file():
        return []
    header, rows = read_table(path)
    names = [name.strip().casefold() for name in header]
    known = [each.name for each in fields(Granted)]
    if "student" not in names or not {*names} <= {*known}:
        raise UserError(f"{path}: its first row must name columns of {','.join(known)}")
    return [_row(f"{path}: row {number}", dict(zip(names, row, strict=True))) for number, row in rows]


def granted_to(rows: Iterable[Granted], student: str, lesson_id: str) -> Granted:
    """What one student has in one lesson: of each column, the row of the lesson goes before that of all lessons."""
    found = Granted(student=student, lesson=lesson_id)
    mine = [row for row in rows if row.student == student and row.lesson in ("", lesson_id)]
    for row in sorted(mine, key=lambda row: row.lesson):
        found = replace(found, **_said(row) | {"lesson": lesson_id})
    return found


def _said(row: Granted) -> dict[str, Any]:
    """Its fields that say something."""
    return {name: value for name, value in asdict(row).items() if value not in (None, "")}


def grant(course: Path, row: Granted) -> Granted:
    """Write a row into the table, in place of that of the same student and lesson; returns it as it stands there now.

    What `row` leaves out stays. Raises UserError where the table is none or cannot be written.
    """
    with locked(course / TABLE):
        rows = {(each.student, each.lesson): each for each in granted_in(course)}
        key = row.student, row.lesson
        rows[key] = replace(rows.get(key, row), **_said(row))
        text = io.StringIO()
        table = csv.DictWriter(text, [each.name for each in fields(Granted)], lineterminator="\n")
        table.writeheader()
        for each in rows.values():
            table.writerow({name: _number(value) for name, value in asdict(each).items()})
        atomic_write_text(course / TABLE, text.getvalue())
    return rows[key]


def extend(gradebook: Gradebook, slug: str, rows: Iterable[Granted]) -> list[str]:
    """Give the days of the table to those who are in the gradebook with a lesson; returns whose were others before."""
    rows = list(rows)
    changed = []
    for submission in gradebook.assignment_submissions(slug):
        days = granted_to(rows, submission.student_id, slug[:2]).days
        if days is not None and (submission.extension or timedelta()) != timedelta(days=days):
            submission.extension = timedelta(days=days) or None
            changed.append(submission.student_id)
    gradebook.db.commit()
    return changed


def settle_lateness(gradebook: Gradebook, slug: str, config: Config) -> None:
    """Have nbgrader's own step take off anew what late work costs, from whoever it could have changed for: an extension
    or a due date counts at once, and not at the next grade alone.

    config: of the course, which names the rule for late work.
    """
    from nbformat.v4 import new_notebook
    from nbgrader.preprocessors import AssignLatePenalties

    step = AssignLatePenalties(config=config, log=_QUIET)
    db_url = gradebook.engine.url.render_as_string(hide_password=False)
    touched = [
        {"assignment": slug, "student": submission.student_id, "notebook": notebook.name, "db_url": db_url}
        for submission in gradebook.assignment_submissions(slug)
        if submission.late_submission_penalty or _is_after_due_date(submission)
        for notebook in submission.notebooks
    ]
    gradebook.db.commit()  # the step writes through a connection of its own
    for names in touched:
        step.preprocess(new_notebook(), {"nbgrader": names})
    gradebook.db.expire_all()


def _is_after_due_date(submission: Any) -> bool:
    """Whether it came after the due date that all others have."""
    due, came = submission.assignment.duedate, submission.timestamp
    return bool(due and came and came > due)


def notes_on(gradebook: Gradebook, slug: str, rows: Iterable[Granted]) -> dict[str, str]:
    """Student → what was granted in a lesson and whether it mattered, for the report and for exports."""
    rows = list(rows)
    notes = {}
    for student in {row.student for row in rows if row.lesson in ("", slug[:2])}:
        notes[student] = granted_to(rows, student, slug[:2]).words
    for submission in gradebook.assignment_submissions(slug):
        name = submission.student_id
        given = [notes.pop(name, "")]
        if submission.extension and not granted_to(rows, name, slug[:2]).days:
            given.append(f"{submission.extension / timedelta(days=1):g} days more")
        if submission.total_seconds_late:
            given.append(f"late by {_span(submission.total_seconds_late)}")
        elif _is_after_due_date(submission):
            given.append("in time by the extension")
        if any(given):
            notes[name] = ", ".join(filter(None, given))
    return {name: notes[name] for name in sorted(notes) if notes[name]}


def _span(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"


def _row(where: str, row: dict[str, str]) -> Granted:
    lesson = row.get("lesson", "")
    lesson = lesson.zfill(2) if lesson else ""
    if not row["student"]:
        raise UserError(f"{where} names no student")
    if lesson and lesson not in lesson_ids():
        raise UserError(f"{where}: there is no lesson {quoted(lesson)}; there are {', '.join(lesson_ids())}")
    days, exam_time = (_read(where, row.get(name, "")) for name in ("days", "exam_time"))
    return checked(
        Granted(
            student=row["student"], lesson=lesson, days=days, exam_time=exam_time, note=row.get("note", "")
        ),
        where,
    )


def checked(row: Granted, where: str) -> Granted:
    """The row, if its numbers are such. Raises UserError."""
    if row.days is not None and not 0 <= row.days <= _MAX_DAYS:
        raise UserError(f"{where}: days must be a number from 0 to {_MAX_DAYS:g}; got {row.days:g}")
    if row.exam_time is not None and not 1 <= row.exam_time <= MAX_FACTOR:
        raise UserError(
            f"{where}: exam_time must be a number from 1 to {MAX_FACTOR:g}, such as 1.5 for half as much time again; "
            f"got {row.exam_time:g}"
        )
    return row


def _read(where: str, text: str) -> float | None:
    if not text:
        return None
    with contextlib.suppress(ValueError):
        # A spreadsheet may write a comma.
        if math.isfinite(number := float(text.replace(",", "."))):
            return number
    raise UserError(f"{where}: {quoted(text)} is no number")


def _number(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
