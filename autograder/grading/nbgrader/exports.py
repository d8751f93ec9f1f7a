"""Grades in the column formats of learning management systems, as exporters of nbgrader:

    nbgrader export --exporter=autograder.grading.nbgrader.exports.Canvas

Canvas reads a CSV with the columns Student, ID, SIS User ID, SIS Login ID, Section and one per assignment, and a row
"Points Possible" (its manual, "How do I import grades in the Gradebook?"). Moodle's grade import maps columns by hand;
with an identity column and one per grade item nothing else is needed (its documentation, "Grade import").
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin


class Canvas(ExportPlugin):
    """For Canvas: Grades → Import. Student ids must be the SIS login ids."""

    def export(self, gradebook: Gradebook) -> None:
        def who(student: Any) -> list[str]:
            name = ", ".join(filter(None, [student.last_name, student.first_name])) or student.id
            return [name, "", "", student.id, ""]

        columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
        _write(
            self, gradebook, "grades-canvas.csv", columns, who, possible=["Points Possible", "", "", "", ""]
        )


class Moodle(ExportPlugin):
    """For Moodle: Grades → Import → CSV file, with "Username" mapped to the user's name."""

    def export(self, gradebook: Gradebook) -> None:
        columns = ["Username", "Email address"]
        _write(
            self, gradebook, "grades-moodle.csv", columns, lambda student: [student.id, student.email or ""]
        )


def _write(
    plugin: ExportPlugin,
    gradebook: Gradebook,
    file_name: str,
    columns: Sequence[str],
    who: Callable[[Any], list[str]],
    possible: Sequence[str] = (),
) -> None:
    """One row per student, one column per assignment; a missing submission is an empty cell and no zero.

    Args:
        columns: before those of the assignments; `who` fills them for a student.
        possible: the same of a row with the points to reach, where the system reads one.
    """
    names = [str(name) for name in plugin.assignment]
    assignments = [each for each in gradebook.assignments if not names or each.name in names]
    ids = [str(name) for name in plugin.student]
    students = [each for each in gradebook.students if not ids or each.id in ids]
    path = Path(plugin.to or file_name)
    plugin.log.info("Exporting grades to %s", path)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*columns, *(each.name for each in assignments)])
        if possible:
            rows.writerow([*possible, *(each.max_score for each in assignments)])
        for student in students:
            rows.writerow([*who(student), *(_points(gradebook, each, student) for each in assignments)])


def _points(gradebook: Gradebook, assignment: Any, student: Any) -> float | str:
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return ""
    return max(0.0, submission.score - submission.late_submission_penalty)
