"""Grades in the column formats of learning management systems, as exporters of nbgrader:

    nbgrader export --exporter=autograder.grading.exports.Canvas

Canvas reads a CSV with the columns Student, ID, SIS User ID, SIS Login ID, Section and one per assignment, and a row
"Points Possible" (its manual, "How do I import grades in the Gradebook?"). Moodle's grade import maps columns by hand;
with an identity column and one per grade item nothing else is needed (its documentation, "Grade import").
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin


class _LmsPlugin(ExportPlugin):
    """One row per student, one column per assignment; a missing submission is an empty cell and no zero."""

    file_name = ""

    def export(self, gradebook: Gradebook) -> None:
        wanted = [str(name) for name in self.assignment]
        assignments = [each for each in gradebook.assignments if not wanted or each.name in wanted]
        students = [
            each for each in gradebook.students if not self.student or each.id in map(str, self.student)
        ]
        path = Path(self.to or self.file_name)
        self.log.info("Exporting grades to %s", path)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(self.rows(gradebook, assignments, students))

    def rows(self, gradebook: Gradebook, assignments: list[Any], students: list[Any]) -> Iterator[list[Any]]:
        raise NotImplementedError


class Canvas(_LmsPlugin):
    """For Canvas: Grades → Import. Student ids must be the SIS login ids."""

    file_name = "grades-canvas.csv"

    def rows(self, gradebook: Gradebook, assignments: list[Any], students: list[Any]) -> Iterator[list[Any]]:
        yield [
            "Student",
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "Section",
            *(each.name for each in assignments),
        ]
        yield ["Points Possible", "", "", "", "", *(each.max_score for each in assignments)]
        for student in students:
            name = ", ".join(filter(None, [student.last_name, student.first_name])) or student.id
            yield [name, "", "", student.id, "", *(_points(gradebook, each, student) for each in assignments)]


class Moodle(_LmsPlugin):
    """For Moodle: Grades → Import → CSV file, with "Username" mapped to the user's name."""

    file_name = "grades-moodle.csv"

    def rows(self, gradebook: Gradebook, assignments: list[Any], students: list[Any]) -> Iterator[list[Any]]:
        yield ["Username", "Email address", *(each.name for each in assignments)]
        for student in students:
            yield [
                student.id,
                student.email or "",
                *(_points(gradebook, each, student) for each in assignments),
            ]


def _points(gradebook: Gradebook, assignment: Any, student: Any) -> float | str:
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return ""
    return max(0.0, submission.score - submission.late_submission_penalty)
