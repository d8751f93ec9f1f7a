"""More time: a table of the course, `workbook extend`, and that it counts in gradebook, reports and exports at once."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.cli.main import main
from autograder.grading.gradebook import Entries
from autograder.grading.nbgrader.bridge import prepare_environment
from autograder.grading.terms.extensions import Granted, grant, granted_in, granted_to
from course_lib.base.errors import UserError
from tests.autograder.nbgrader_course import LESSON_00, NOTEBOOKS

HALF = """
from nbgrader.plugins import BasePlugin


class Half(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2
"""
DUE = "2027-02-01 12:00:00"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ada and Bo each handed in lesson 00 two days late, and have the half of 8 points; Cy is on the roster."""
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path / "data"))
    prepare_environment()
    root = tmp_path / "course"
    root.mkdir()
    shutil.copy(NOTEBOOKS / "nbgrader_config.py", root)
    (root / "late_half.py").write_text(HALF, encoding="utf-8")
    with (root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("\nc.AssignLatePenalties.plugin_class = 'late_half.Half'\n")
    monkeypatch.syspath_prepend(str(root))
    with opened(root) as gradebook:
        gradebook.add_assignment(LESSON_00, duedate=DUE)
        gradebook.add_notebook(LESSON_00, LESSON_00)
        gradebook.add_grade_cell("check-0-1", LESSON_00, LESSON_00, max_score=8, cell_type="code")
        for student in ("ada", "bo", "cy"):
            gradebook.add_student(student, last_name=student.title())
        for student in ("ada", "bo"):
            gradebook.add_submission(LESSON_00, student, timestamp="2027-02-03 12:00:00")
            notebook = gradebook.find_submission_notebook(LESSON_00, LESSON_00, student)
            (grade,) = notebook.grades
            grade.auto_score, notebook.late_submission_penalty = 8.0, 4.0
        gradebook.db.commit()
    monkeypatch.chdir(root)
    return root


def opened(root: Path) -> Gradebook:
    return Gradebook(f"sqlite:///{root / 'gradebook.db'}", "training-workbook")


def points(root: Path) -> dict[str, float]:
    with opened(root) as gradebook:
        return {
            each.student_id: each.score - each.late_submission_penalty
            for each in gradebook.assignment_submissions(LESSON_00)
        }


def test_an_extension_counts_at_once(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert points(course) == {"ada": 4.0, "bo": 4.0}
    assert main(["extend", "ada", "00", "--days", "3", "--note", "ill"]) == 0
    out = capsys.readouterr().out
    assert "ada, lesson 00: 3 days more, ill" in out and "counted in the gradebook now: ada" in out
    assert points(course) == {"ada": 8.0, "bo": 4.0}
    assert main(["extend", "ada", "0", "--days", "1.5"]) == 0
    assert points(course)["ada"] == 4.0, "half a day late again"
    assert (course / "accommodations.csv").read_text() == (
        "student,lesson,days,exam_time,note\nada,00,1.5,,ill\n"
    )
    assert main(["extend", "ada", "00", "--days", "0"]) == 0
    with opened(course) as gradebook:
        assert gradebook.find_submission(LESSON_00, "ada").extension is None


def test_a_table_is_applied_and_that_of_the_lesson_goes_first(course: Path) -> None:
    # As a spreadsheet saves it: a mark before it, semicolons, a comma in a number.
    (course / "accommodations.csv").write_text(
        "student;days;lesson;exam_time\nada;1;;1,5\nada;2;0;\nbo;1,5;;\n", encoding="utf-8-sig"
    )
    assert main(["extend"]) == 0
    assert points(course) == {"ada": 8.0, "bo": 4.0}
    rows = granted_in(course)
    assert granted_to(rows, "ada", "09") == Granted(student="ada", lesson="09", days=1.0, exam_time=1.5)
    assert granted_to(rows, "ada", "00") == Granted(student="ada", lesson="00", days=2.0, exam_time=1.5)
    assert granted_to(rows, "nobody", "00").words == ""


def test_what_nbgrader_granted_counts_in_report_and_exports(course: Path) -> None:
    """Also without `workbook extend`, and without another `workbook grade`."""
    with opened(course) as gradebook:
        gradebook.grant_extension(LESSON_00, "bo", days=2)
    rows = exported(course, "autograder.grading.exports.Csv", "grades.csv")
    assert [(row["student_id"], row["score"], row["note"]) for row in rows] == [
        ("ada", "4.0", "late by 2.0 days"),
        ("bo", "8.0", "2 days more, in time by the extension"),
        ("cy", "0.0", ""),
    ]
    with opened(course) as gradebook:
        gradebook.grant_extension(LESSON_00, "bo", days=1)
    rows = exported(course, "autograder.grading.exports.Moodle", "grades-moodle.csv")
    assert [(row["Username"], row[LESSON_00], row["Note"]) for row in rows[:2]] == [
        ("ada", "4.0", f"{LESSON_00}: late by 2.0 days"),
        ("bo", "4.0", f"{LESSON_00}: 1 days more, late by 24.0 hours"),
    ]
    assert "Note" not in exported(course, "autograder.grading.exports.Canvas", "grades-canvas.csv")[0]


def exported(course: Path, exporter: str, file: str) -> list[dict[str, str]]:
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "export", f"--exporter={exporter}"],
        cwd=course,
        check=True,
        capture_output=True,
        env=os.environ,
    )
    with (course / file).open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def test_a_report_shows_it(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for student in ("ada", "bo"):
        folder = course / "submitted" / student / LESSON_00
        folder.mkdir(parents=True)
    (course / "accommodations.csv").write_text("student,days,exam_time,note\nada,3,1.5,<b>plan\n")
    assert main(["report", "00", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["students"]["ada"]["score"] == 8.0 and found["students"]["bo"]["score"] == 4.0
    assert found["granted"] == {
        "ada": "3 days more, 1.5 × the time in exams, <b>plan, in time by the extension",
        "bo": "late by 2.0 days",
    }
    page = (course / "report-00.html").read_text(encoding="utf-8")
    assert "<h2>More time</h2>" in page and "&lt;b&gt;plan" in page


def test_who_has_not_handed_in_yet_has_it_when_they_do(course: Path) -> None:
    grant(course, Granted(student="cy", days=2.0))
    (course / "source").mkdir()
    from autograder.course.lessons import load_lesson

    entries = Entries(course, load_lesson("00"), None)
    entries._introduce("cy")
    entries._introduce("dan")
    with opened(course) as gradebook:
        cy = gradebook.find_submission(LESSON_00, "cy")
        assert cy.extension.days == 2 and cy.total_seconds_late == 0
        assert {each.student_id for each in gradebook.assignment_submissions(LESSON_00)} == {
            "ada",
            "bo",
            "cy",
        }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["extend", "adda", "00", "--days", "3"], "did you mean ada?"),
        (["extend", "ada", "77", "--days", "3"], "no lesson '77'"),
        (["extend", "ada", "00"], "--days 3"),
        (["extend", "ada", "00", "--days", "-1"], "from 0 to 366"),
        (["extend", "ada", "09", "--exam-time", "0.5"], "from 1 to 10"),
        (["extend", "--days", "3"], "name the student"),
    ],
)
def test_what_cannot_be_granted_is_one_line(
    course: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert says in err and len(err.splitlines()) == 1
    assert not (course / "accommodations.csv").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,days\nada,3\n", "its first row must name columns of student,lesson,days,exam_time,note"),
        ("student,days\nada,soon\n", "row 2: “soon” is no number"),
        ("student,lesson\nada,99\n", "row 2: there is no lesson “99”"),
        ("student,days\n,3\n", "row 2 names no student"),
        ("student,days\nada,3\nada,nan\n", "row 3: “nan” is no number"),
    ],
)
def test_a_row_that_is_none_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "accommodations.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=says):
        granted_in(tmp_path)


def test_a_name_in_the_table_that_nobody_has_is_told(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "accommodations.csv").write_text("student,days\nadda,3\n", encoding="utf-8")
    assert main(["extend"]) == 1
    assert "adda is neither in the gradebook nor in submitted" in capsys.readouterr().out


@pytest.fixture(autouse=True)
def _no_course_is_left_on_the_path() -> Iterator[None]:
    before = [*sys.path]
    yield
    sys.path[:] = before
    sys.modules.pop("late_half", None)
