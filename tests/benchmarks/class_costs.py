"""What a submission costs, part by part, for the plan of `class_plan`: checks, gradebook, disk, export, people.

    python -m tests.benchmarks.class_costs [--submissions 12] [--out FILE.json]

A small made class (`class_makeup`) over lessons 01, 04 and 08, graded cold, one lesson after the other. The gradebook
is written once more to a PostgreSQL server on this machine, from the results that are there: what remains is nbgrader's
work and the database's. Of this the time is noted on the clock and on this process's processor: the second says what
the work takes where nothing else runs, but for the waits for the disk and for the server. The export is timed on an
otherwise empty gradebook of two sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.course.lessons import find_exercise, load_lesson
from autograder.engine.evidence import hardware, versions
from autograder.grading.marking import grade
from autograder.grading.nbgrader.exports import Canvas
from autograder.grading.units import FOLDER
from tests.autograder.nbgrader_course import Course
from tests.autograder.postgres import INITDB, server
from tests.benchmarks.class_makeup import make_class

LESSONS = ["01", "04", "08"]
EXPORTED = (100, 400)  # students
OUT = Path(__file__).with_name("results") / "class_costs.json"


def measure(folder: Path, number: int) -> dict[str, Any]:
    course = Course(folder / "class")
    os.environ["WORKBOOK_DATA"] = str(course.data)
    for lesson_id in LESSONS:
        course.nbgrader("generate_assignment", load_lesson(lesson_id).slug)
    make_class(course, LESSONS, number, seed=0)
    shutil.copytree(course.root, folder / "postgres")
    load = [os.getloadavg()[0]]
    graded = {lesson_id: timed(lesson_id, course.root) for lesson_id in LESSONS}
    load.append(os.getloadavg()[0])
    kept = [json.loads(path.read_text()) for path in (course.root / FOLDER / "results").rglob("*.json")]
    students = [each for found in graded.values() for each in found["students"].values()]
    return {
        "command": f"python -m tests.benchmarks.class_costs --submissions {number}",
        "measured": time.strftime("%Y-%m-%d"),
        "hardware": hardware(),
        "versions": versions(),
        "load_average": load,
        "submissions": number,
        "lessons": LESSONS,
        "checks": [
            {
                "id": each["id"],
                "verdict": each["verdict"],
                "seconds": each["seconds"],
                "is_timed": clock(each),
            }
            for each in kept
        ],
        "gradebook_seconds": {
            "sqlite": per_submission(graded, number),
            "postgresql": per_submission(on_postgres(folder / "postgres", course), number)
            if INITDB
            else None,
        },
        "looks": sum(bool(each["look"] or each["error"]) for each in students),
        "bytes": {
            "handed in": size(course.root / "submitted") / number,
            "kept results": size(course.root / FOLDER / "results") / number,
            "staged, autograded": size(course.root / FOLDER / "staged", course.root / "autograded") / number,
            "evidence": size(course.data / "evidence") / number,
            "gradebook": size(course.root / "gradebook.db") / number,
        },
        "export_seconds": {str(each): export(folder / f"export-{each}", each) for each in EXPORTED},
    }


def clock(result: dict[str, Any]) -> bool:
    return find_exercise(result["id"])[1].clock is not None


def timed(lesson_id: str, course: Path) -> dict[str, Any]:
    """What `grade` found, and the `clock` and `processor` seconds of its last phase."""
    began = (0.0, 0.0)

    def show(phase: str, done: int, total: int) -> None:
        nonlocal began
        print(f"{lesson_id} {phase} {done}/{total}", file=sys.stderr)
        if phase != "gradebook":
            began = time.monotonic(), time.process_time()

    began = time.monotonic(), time.process_time()
    found = grade(lesson_id, course, on_progress=show)
    return asdict(found) | {"clock": time.monotonic() - began[0], "processor": time.process_time() - began[1]}


def per_submission(graded: dict[str, dict[str, Any]], number: int) -> dict[str, float]:
    return {name: sum(each[name] for each in graded.values()) / number for name in ("clock", "processor")}


def on_postgres(copy: Path, graded: Course) -> dict[str, dict[str, Any]]:
    """What `timed` finds of each lesson, with the results of another course at hand."""
    shutil.copytree(graded.root / FOLDER / "results", copy / FOLDER / "results")
    (copy / "gradebook.db").unlink(missing_ok=True)
    course = Course.__new__(Course)
    course.root, course.data, course.is_measured = copy, graded.data, True
    with server() as url:
        with (copy / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(f"c.CourseDirectory.db_url = {url!r}\n")
        for lesson_id in LESSONS:
            course.nbgrader("generate_assignment", load_lesson(lesson_id).slug)
        return {lesson_id: timed(lesson_id, copy) for lesson_id in LESSONS}


def export(folder: Path, number: int) -> float:
    """Seconds of the Canvas export of `number` students with one assignment of one graded cell."""
    from nbgrader.api import Gradebook

    folder.mkdir()
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment("lesson")
        gradebook.add_notebook("lesson", "lesson")
        gradebook.add_grade_cell("check", "lesson", "lesson", max_score=1, cell_type="code")
        for index in range(number):
            gradebook.add_student(f"student-{index}")
            gradebook.add_submission("lesson", f"student-{index}")
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        plugin = Canvas(to=str(folder / "grades.csv"))
        began = time.monotonic()
        plugin.export(gradebook)
        return time.monotonic() - began


def size(*folders: Path) -> int:
    files = [file for path in folders for file in ([path] if path.is_file() else path.rglob("*"))]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=12)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="class-costs-") as folder:
        found = measure(Path(folder), arguments.submissions)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
