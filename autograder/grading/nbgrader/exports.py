"""Grades in the column formats of learning management systems, as exporters of nbgrader:

    nbgrader export --exporter=autograder.grading.nbgrader.exports.Canvas

Canvas reads a CSV with the columns Student, ID, SIS User ID, SIS Login ID, Section and one per assignment, and a row
"Points Possible" (its manual, "How do I import grades in the Gradebook?"). Moodle's grade import maps columns by hand;
with an identity column and one per grade item nothing else is needed (its documentation, "Grade import").

What a student is called is the student's to choose, and a spreadsheet runs a cell that begins as a formula does:
`text_cell` writes each text so that it stays one.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin

from autograder.common import one_line
from autograder.grading.terms import extend, granted_in, notes_on, settle_lateness

# As a wizard may split the line where its user says another separator than ours, a cell may begin behind any of them;
# blanks and quotation marks before a formula are dropped. A full-width sign is the sign (Unicode's NFKC), and so is the
# minus of mathematics.
_FORMULA = re.compile(r"""(^|[\s,;:|"'])([=+\-@−])""")


Row = Iterable[str | float]


class Csv(ExportPlugin):
    """The table of nbgrader's own `CsvExportPlugin`, which writes names as they are: a row per assignment and student,
    with zero points for a missing submission. The last column says what time was granted, and what came late."""

    def export(self, gradebook: Gradebook) -> None:
        own = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"]
        rows: list[Row] = [[*own, "raw_score", "late_submission_penalty", "score", "max_score", "note"]]
        assignments, students = _chosen(self, gradebook)
        for assignment in assignments:
            notes = _notes(self, gradebook, assignment)
            for student in students:
                submission = _submission(gradebook, assignment, student)
                raw = submission.score if submission else 0.0
                penalty = submission.late_submission_penalty if submission else 0.0
                time = submission.timestamp if submission else None
                texts = [assignment.name, assignment.duedate, time, student.id]
                texts += [student.last_name, student.first_name, student.email]
                points = [raw, penalty, max(0.0, raw - penalty), assignment.max_score]
                rows.append([*(str(text or "") for text in texts), *points, notes.get(student.id, "")])
        _write(self, "grades.csv", rows)


class Canvas(ExportPlugin):
    """For Canvas: Grades → Import. Student ids must be the SIS login ids.

    Without notes: a column that Canvas does not know becomes a new assignment (its lib/gradebook_importer.rb).
    """

    def export(self, gradebook: Gradebook) -> None:
        def who(student: Any) -> list[str]:
            name = ", ".join(filter(None, [student.last_name, student.first_name])) or student.id
            return [name, "", "", student.id, ""]

        columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
        possible = ["Points Possible", "", "", "", ""]
        _write(self, "grades-canvas.csv", _by_student(self, gradebook, columns, who, possible))


class Moodle(ExportPlugin):
    """For Moodle: Grades → Import → CSV file, with "Username" mapped to the user's name. The last column is for those
    who teach: leave its mapping at "Ignore"."""

    def export(self, gradebook: Gradebook) -> None:
        columns = ["Username", "Email address"]
        rows = _by_student(self, gradebook, columns, lambda student: [student.id, student.email or ""])
        assignments, students = _chosen(self, gradebook)
        of_each = {each.name: _notes(self, gradebook, each) for each in assignments}
        notes = [
            "; ".join(
                f"{name}: {notes[student.id]}" for name, notes in of_each.items() if student.id in notes
            )
            for student in students
        ]
        _write(
            self,
            "grades-moodle.csv",
            ([*row, note] for row, note in zip(rows, ["Note", *notes], strict=True)),
        )


def _by_student(
    plugin: ExportPlugin,
    gradebook: Gradebook,
    columns: Sequence[str],
    who: Callable[[Any], list[str]],
    possible: Sequence[str] = (),
) -> Iterator[Row]:
    """One row per student, one column per assignment; a missing submission is an empty cell and no zero.

    Args:
        columns: before those of the assignments; `who` fills them for a student.
        possible: the same of a row with the points to reach, where the system reads one.
    """
    assignments, students = _chosen(plugin, gradebook)
    for assignment in assignments:
        _notes(plugin, gradebook, assignment)
    yield [*columns, *(each.name for each in assignments)]
    if possible:
        yield [*possible, *(each.max_score for each in assignments)]
    for student in students:
        yield [*who(student), *(_points(gradebook, each, student) for each in assignments)]


def _chosen(plugin: ExportPlugin, gradebook: Gradebook) -> tuple[list[Any], list[Any]]:
    """The assignments and the students that were asked for."""
    names, ids = [str(name) for name in plugin.assignment], [str(name) for name in plugin.student]
    return (
        [each for each in gradebook.assignments if not names or each.name in names],
        [each for each in gradebook.students if not ids or each.id in ids],
    )


def _notes(plugin: ExportPlugin, gradebook: Gradebook, assignment: Any) -> dict[str, str]:
    """What was granted, by student; penalties are brought up to date with it."""
    rows = granted_in(Path.cwd())  # nbgrader works in the course's root
    extend(gradebook, assignment.name, rows)
    settle_lateness(gradebook, assignment.name, plugin.config)
    return notes_on(gradebook, assignment.name, rows)


def _write(plugin: ExportPlugin, file_name: str, rows: Iterable[Row]) -> None:
    path = Path(plugin.to or file_name)
    plugin.log.info("Exporting grades to %s", path)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        table.writerows([text_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def _points(gradebook: Gradebook, assignment: Any, student: Any) -> float | str:
    submission = _submission(gradebook, assignment, student)
    return max(0.0, submission.score - submission.late_submission_penalty) if submission else ""


def _submission(gradebook: Gradebook, assignment: Any, student: Any) -> Any:
    """None where there is none."""
    try:
        return gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return None


def text_cell(text: str) -> str:
    """A text on one line that no spreadsheet takes for a formula: a single quote is put before what could begin one.

    OWASP, "CSV Injection" (https://owasp.org/www-community/attacks/CSV_Injection): no cell may begin with = + - @, a
    tab or a line end, also not behind a separator or a quotation mark in the text; each text is in double quotes.
    """
    shown = one_line(text)
    # Signs are looked for where they mean the same and written as they stand: NFKC alone could change a name.
    alike = "".join(sign if len(sign := unicodedata.normalize("NFKC", char)) == 1 else char for char in shown)
    starts = {match.start(2) for match in _FORMULA.finditer(alike)}
    return "".join("'" * (place in starts) + char for place, char in enumerate(shown))
