"""An instructor's day after `workbook grade`: what nbgrader does on top of it stands, and nobody can harm a class."""

from __future__ import annotations

import csv
import hashlib
import importlib
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.course.lessons import load_lesson
from autograder.lessons.checking.mutants import load_mutants
from tests.autograder.nbgrader_course import (
    LESSON_00,
    LESSON_01,
    Course,
    cell,
    right_answers,
    with_solutions,
)
from tests.autograder.test_grading import workbook
from tests.exploits.all_cases import EXPLOITS
from tests.exploits.forged_nbgrader import FORGERIES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

POINTS = {exercise.id: float(exercise.max_score) for exercise in load_lesson("01").exercises}
COMMENT = "A good idea, half done: two points for it."
LATE = "\nc.AssignLatePenalties.plugin_class = 'late_rules.OnePoint'\n"
ONE_POINT = """
from nbgrader.plugins import BasePlugin


class OnePoint(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 1
"""
#: `workbook grade` with another file in the place of the one that holds the checks of 1.1 and 1.2.
CHECKS = "autograder.lessons.lesson_01.checks.collated"
GRADE = f"""
import json, sys
from dataclasses import asdict
from concurrent.futures import Executor, Future
from importlib.abc import MetaPathFinder
from importlib.util import spec_from_file_location
from pathlib import Path

class Corrected(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return spec_from_file_location(name, sys.argv[1]) if name == {CHECKS!r} else None

sys.meta_path.insert(0, Corrected())
from autograder.engine import rules
from autograder.engine.check import check_source
from autograder.grading.marking import grade

content = rules._content
installed = Path(rules.ROOT, *{CHECKS!r}.split(".")).with_suffix(".py")
rules._content = lambda path: content(Path(sys.argv[1]) if path == installed else path)

class Here(Executor):  # an engine's own process would load what is installed
    def submit(self, check_unit, unit):
        future = Future()
        future.set_result(check_source(unit.exercise_id, unit.source))
        return future

print(json.dumps(asdict(grade("01", Path.cwd(), students=sys.argv[2:], executor=Here()))))
"""
OLD_WORDS, NEW_WORDS = "the attention mask marks padding as real", "the mask takes padding for text"


def test_what_a_person_gives_stands_and_a_corrected_check_touches_its_own_alone(tmp_path: Path) -> None:
    course = a_class(tmp_path)
    checks = tmp_path / "collated.py"
    shutil.copy(inspect.getfile(importlib.import_module(CHECKS)), checks)
    found = grade(course, checks)
    assert found["graded"] == 3
    assert found["students"]["ada"]["score"] == POINTS["1.3"]
    assert found["students"]["grace"]["score"] == POINTS["1.3"] + POINTS["1.4"] + 2 - 1, "late by a day"

    override(course, "ada", "check-1-1", "exercise-1-1", manual=2.0, extra=0.5)
    override(course, "alan", "check-1-4", "exercise-1-4", manual=1.0, extra=0.0)
    stood = stamps(course)
    again = grade(course, checks)
    assert (again["checked"], again["students"]["ada"]["score"]) == (0, POINTS["1.3"] + 2.5), (
        "points by hand count"
    )
    assert stamps(course) == stood
    assert by_hand(course, "ada", "check-1-1") == (2.0, 0.5, False, COMMENT)

    course.nbgrader("generate_feedback", LESSON_01, "--student", "ada")
    assert OLD_WORDS in course.feedback("ada", LESSON_01)

    results = kept(course)
    correct(checks)
    found = grade(course, checks)
    new = kept(course) - results
    assert found["checked"] == len(new) and {path.parent.name for path in new} == {"1.1", "1.2"}
    now = stamps(course)
    assert {name for name in now if now[name] != stood[name]} == {"ada"}, "the one whose result is another"
    assert OLD_WORDS not in outputs(course, "ada") and NEW_WORDS in outputs(course, "ada")
    # As in stock nbgrader: the points of a person stay, and are marked for a second look.
    assert by_hand(course, "ada", "check-1-1") == (2.0, 0.5, True, COMMENT)
    assert by_hand(course, "alan", "check-1-4") == (1.0, 0.0, False, COMMENT)

    hand_in_again(course)
    assert grade(course, checks, "alan")["graded"] == 1
    assert by_hand(course, "alan", "check-1-4") == (1.0, 0.0, True, COMMENT)

    course.nbgrader("generate_feedback", LESSON_01)
    feedback = course.feedback("ada", LESSON_01)
    assert COMMENT in feedback and NEW_WORDS in feedback
    assert "Late submission penalty" in course.feedback("grace", LESSON_01)
    exports_agree(
        course,
        {"ada": POINTS["1.3"] + 2.5, "grace": POINTS["1.3"] + POINTS["1.4"] + 1, "alan": 1 + POINTS["1.3"]},
    )


def a_class(tmp_path: Path) -> Course:
    """Ada has 1.1 wrong and 1.3 right, Grace is a day late, Alan has done nothing."""
    course = Course(tmp_path)
    (course.root / "late_rules.py").write_text(ONE_POINT, encoding="utf-8")
    with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(LATE)
    course.nbgrader("generate_assignment", LESSON_01)
    with gradebook(course) as opened:
        opened.update_or_create_assignment(LESSON_01, duedate="2027-02-01 12:00:00")
    release, source = (course.notebook(step, LESSON_01) for step in ("release", "source"))
    ada = with_solutions(release, source, "1.3")
    (wrong,) = (each for each in load_mutants("01")["1.1"] if each.name == "attention mask ignores padding")
    cell(ada, "exercise-1-1").source = wrong.source
    course.submit("ada", LESSON_01, ada)
    grace = with_solutions(course.notebook("release", LESSON_01), source, "1.3", "1.4")
    course.submit("grace", LESSON_01, grace, dict(list(right_answers("01").items())[:2]))
    stamp(course, "grace", "2027-02-02 12:00:00 UTC")
    course.submit("alan", LESSON_01, course.notebook("release", LESSON_01))
    stamp(course, "alan", "2027-01-31 12:00:00 UTC")
    return course


def grade(course: Course, checks: Path, *students: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-c", GRADE, str(checks), *students],
        cwd=course.root,
        env=course.environment(),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def stamp(course: Course, student: str, when: str) -> None:
    """As the exchange notes when it was handed in."""
    path = course.root / "submitted" / student / LESSON_01 / "timestamp.txt"
    path.write_text(when, encoding="utf-8")


def hand_in_again(course: Course) -> None:
    """Alan has done 1.3 in the meantime."""
    shutil.rmtree(course.root / "submitted" / "alan")
    alan = with_solutions(course.notebook("release", LESSON_01), course.notebook("source", LESSON_01), "1.3")
    course.submit("alan", LESSON_01, alan)
    stamp(course, "alan", "2027-02-01 09:00:00 UTC")


def correct(checks: Path) -> None:
    text = checks.read_text(encoding="utf-8")
    assert OLD_WORDS in text
    checks.write_text(text.replace(OLD_WORDS, NEW_WORDS), encoding="utf-8")


def override(course: Course, student: str, check: str, exercise: str, *, manual: float, extra: float) -> None:
    """What formgrader writes when a person gives points and a comment."""
    with gradebook(course) as opened:
        grade = opened.find_grade(check, LESSON_01, LESSON_01, student)
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = manual, extra, False
        opened.find_comment(exercise, LESSON_01, LESSON_01, student).manual_comment = COMMENT
        opened.db.commit()


def by_hand(course: Course, student: str, check: str) -> tuple[float, float, bool, str]:
    exercise = check.replace("check", "exercise")
    with gradebook(course) as opened:
        grade = opened.find_grade(check, LESSON_01, LESSON_01, student)
        comment = opened.find_comment(exercise, LESSON_01, LESSON_01, student)
        return grade.manual_score, grade.extra_credit, grade.needs_manual_grade, comment.comment


def gradebook(course: Course) -> Any:
    from nbgrader.api import Gradebook

    return Gradebook(f"sqlite:///{course.root / 'gradebook.db'}")


def stamps(course: Course) -> dict[str, int]:
    """When each student's graded notebook was written: nbgrader writes it with the grades."""
    graded = sorted((course.root / "autograded").glob(f"*/{LESSON_01}/*.ipynb"))
    return {path.parts[-3]: path.stat().st_mtime_ns for path in graded}


def outputs(course: Course, student: str) -> str:
    path = course.root / "autograded" / student / LESSON_01 / f"{LESSON_01}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return json.dumps([each["outputs"] for each in notebook["cells"] if each["cell_type"] == "code"])


def kept(course: Course) -> set[Path]:
    return set((course.root / ".workbook" / "results").rglob("*.json"))


def exports_agree(course: Course, totals: dict[str, float]) -> None:
    """The gradebook, and the three tables made of it."""
    assert course.exported(LESSON_01) == totals
    for name, column in (("Canvas", "SIS Login ID"), ("Moodle", "Username")):
        course.nbgrader("export", f"--exporter=autograder.grading.nbgrader.exports.{name}")
        with (course.root / f"grades-{name.lower()}.csv").open(encoding="utf-8") as file:
            rows = {row[column]: float(row[LESSON_01]) for row in csv.DictReader(file) if row[column]}
        assert rows == totals


HOSTILE = (
    *("other submissions and the gradebook", "the checks and the wrong solutions", "the grader's memory"),
    *("the library poisoned", "all other processes killed", "a note for the next worker"),
    *("bytes into every pipe", "the process leaves with success", "not a number"),
)
FORGED = ("points in the metadata", "a check graded by hand", "no check at all")


def test_hostile_submissions_harm_nobody_else(tmp_path: Path) -> None:
    course = Course(tmp_path, LESSON_00)
    expected = hand_in_hostile(course)
    before = snapshot(course.root)
    found = workbook(course, "grade", "00")
    assert found["graded"] == len(expected) and set(found["students"]) == set(expected)
    for name, told in found["students"].items():
        assert told["error"] == "", name
        assert told["score"] == expected[name] or (told["look"] and name not in ("ada", "grace")), (
            name,
            told,
        )
    assert found["students"]["ada"] == {"look": [], "error": "", "score": 1.0, "max_score": 1.0}
    changed = {
        path for path, digest in snapshot(course.root).items() if before.get(path) != digest
    } | before.keys() - snapshot(course.root).keys()
    ours = ("autograded/", ".workbook/", "gradebook.db")
    assert not [path for path in changed if not path.startswith(ours)]
    with gradebook(course) as opened:
        assert {student.id for student in opened.students} == set(expected)
        submissions = opened.assignment_submissions(LESSON_00)
        assert {each.student.id: each.score for each in submissions} == {
            name: told["score"] for name, told in found["students"].items()
        }
        assert {each.max_score for each in submissions} == {1.0}


def hand_in_hostile(course: Course) -> dict[str, float]:
    """The score that each student has earned. They are graded in the order of their names: honest ones come first, in
    the middle and last."""
    release, source = (course.notebook(step, LESSON_00) for step in ("release", "source"))
    course.submit("ada", LESSON_00, source)
    wrong = course.notebook("release", LESSON_00)
    course.submit("grace", LESSON_00, wrong)
    course.submit("zoe", LESSON_00, source)
    earned = {"ada": 1.0, "grace": 0.0, "zoe": 1.0}
    for number, case in enumerate(case for case in EXPLOITS if case.name in HOSTILE):
        cell(release, "exercise-0-1").source = case.source
        earned[f"hostile-{number:02d}"] = 0.0
        course.submit(f"hostile-{number:02d}", LESSON_00, release)
    for number, name in enumerate(FORGED):
        forged = course.notebook("release", LESSON_00)
        FORGERIES[name][1](forged)
        earned[f"forged-{number}"] = 0.0
        course.submit(f"forged-{number}", LESSON_00, forged)
    return earned


def snapshot(folder: Path) -> dict[str, Any]:
    """Every file of a folder by its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
