"""PostgreSQL as the gradebook: a real server, two graders at once, and nbgrader's own commands on what they wrote."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, text

from tests.autograder.nbgrader_course import LESSON_00, LESSON_01, Course, with_solutions
from tests.autograder.postgres import INITDB, server

STUDENTS = [f"student-{number}" for number in range(4)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(INITDB is None, reason="PostgreSQL's server is not installed (Debian: postgresql)"),
]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture(scope="module")
def course(database: str, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A class that handed in two lessons, and an empty gradebook."""
    course = Course(tmp_path_factory.mktemp("class"))
    with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(f"c.CourseDirectory.db_url = {database!r}\n")
    for slug in (LESSON_00, LESSON_01):
        course.nbgrader("generate_assignment", slug)
    release, source = course.notebook("release", LESSON_01), course.notebook("source", LESSON_01)
    for number, student in enumerate(STUDENTS):
        notebook = course.notebook("source" if number % 2 else "release", LESSON_00)
        course.submit(student, LESSON_00, notebook)
        course.submit(
            student,
            LESSON_01,
            with_solutions(release, source, "1.4") if number == 0 else course.notebook("release", LESSON_01),
        )
    return course


def begin(course: Course, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "autograder.cli.main", *arguments],
        cwd=course.root,
        env=course.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_graders_at_once_fill_one_gradebook(course: Course, database: str) -> None:
    from nbgrader.api import Gradebook
    from nbgrader.apps.api import NbGraderAPI
    from traitlets.config.loader import PyFileConfigLoader

    graders = [begin(course, "grade", lesson) for lesson in ("0", "1")]
    for grader in graders:
        printed = grader.communicate()[0]
        assert grader.returncode == 0, printed
        assert f"{len(STUDENTS)} of {len(STUDENTS)} submissions have a grade" in printed
    with Gradebook(database, "training-workbook") as gradebook:
        for slug in (LESSON_00, LESSON_01):
            submissions = gradebook.assignment_submissions(slug)
            assert sorted(each.student.id for each in submissions) == STUDENTS
            graded = [len({grade.name for grade in each.notebooks[0].grades}) for each in submissions]
            assert graded == [len(each.notebooks[0].grades) for each in submissions], (
                "each cell has one grade"
            )
        scores = {each.student.id: each.score for each in gradebook.assignment_submissions(LESSON_00)}
        assert scores == {name: float(number % 2) for number, name in enumerate(STUDENTS)}
        right = gradebook.find_submission_notebook(LESSON_01, LESSON_01, STUDENTS[0])
        assert {g.name: g.auto_score for g in right.grades}["check-1-4"] > 0

    # What formgrader's pages show.
    config = PyFileConfigLoader("nbgrader_config.py", path=str(course.root)).load_config()
    api = NbGraderAPI(config=config)
    (assignment,) = [each for each in api.get_assignments() if each["name"] == LESSON_00]
    assert (assignment["num_submissions"], assignment["average_score"]) == (len(STUDENTS), 0.5)
    assert [each["autograded"] for each in api.get_submissions(LESSON_01)] == [True] * len(STUDENTS)
    assert {each["id"]: each["score"] for each in api.get_students()}.keys() == set(STUDENTS)


def test_report_export_feedback_and_upgrade_take_the_same_gradebook(course: Course) -> None:
    with begin(course, "grade", "0") as grader:
        printed = grader.communicate()[0]
        assert grader.returncode == 0, printed
    with begin(course, "report", "0", "--json") as report:
        found = json.loads(report.communicate()[0])
    assert sum(student["score"] for student in found["students"].values()) == len(STUDENTS) / 2
    course.nbgrader("export", "--exporter=autograder.grading.nbgrader.exports.Canvas")
    rows = list(csv.reader((course.root / "grades-canvas.csv").read_text(encoding="utf-8").splitlines()))
    assert [row[3] for row in rows[2:]] == STUDENTS
    assert course.exported(LESSON_00)[STUDENTS[1]] == 1.0
    course.nbgrader("generate_feedback", LESSON_00, "--student", STUDENTS[1])
    assert "0.1" in course.feedback(STUDENTS[1], LESSON_00)
    assert "error" not in course.nbgrader("db", "upgrade").lower()


def test_a_student_whom_another_grader_adds_meanwhile_is_no_error(course: Course, database: str) -> None:
    from nbgrader.api import Gradebook

    course.submit("late", LESSON_00, course.notebook("source", LESSON_00))
    engine = create_engine(database)
    with engine.connect() as other:
        # The other has added the student and not told yet: the grader looks, finds nobody, adds, and has to wait.
        other.execute(text("INSERT INTO student (id) VALUES ('late')"))
        with begin(course, "grade", "0", "--students", "late") as grader:
            with engine.connect() as watch:
                asks = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                while watch.execute(asks).scalar() == 0 and grader.poll() is None:
                    watch.rollback()  # else it would see the same for ever
                    time.sleep(0.05)
            other.commit()
            printed = grader.communicate()[0]
    engine.dispose()
    assert (grader.returncode, "1 of 1 submissions have a grade" in printed) == (0, True), printed
    assert "Traceback" not in printed
    shutil.rmtree(course.root / "submitted" / "late")  # the class is that of the other tests
    with Gradebook(database, "training-workbook") as gradebook:
        gradebook.remove_student("late")
