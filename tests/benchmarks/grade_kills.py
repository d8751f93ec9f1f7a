"""Kill `workbook grade` at random moments, let it run again to its end, and look for a grade that is not what it was.

    python -m tests.benchmarks.grade_kills --kills 50

A small class: five submissions of lesson 00, and two of lesson 04 with a property exercise and the timed one, right by
far or wrong by far, so that a verdict is the same every time. Each is graded once undisturbed. Then, each time from
nothing, the command is ended by SIGKILL at a moment drawn from one of its phases; what it had done is told by the files
that it keeps. Nothing may be left, and after a second run every student must have one submission, one notebook and one
grade a cell in the gradebook, and the same files for the feedback, all equal to the undisturbed run's. Linux: this
process adopts every orphan of the command, so that none can hide.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from autograder.course.lessons import load_lesson
from autograder.grading.units import Unit
from autograder.lessons.checking.mutants import load_mutants
from course_lib.base.files import BUILDING
from tests.autograder.nbgrader_course import Course, cell, right_answers, with_solutions
from tests.benchmarks.class_makeup import own
from tests.benchmarks.killed_grader import adopt_orphans, is_held, survivors

PHASES = ("start", "checks", "timed checks", "gradebook")
ALL = (*PHASES, "after the last grade")
CLASSES = {"00": (["0.1"], 5), "04": (["4.3", "4.5"], 2)}  # exercises that are handed in, number of students
LESSONS = ("00", "04", "00")
GONE_SECONDS = 5.0
Grades = dict[str, dict[str, Any]]


def make(folder: Path) -> Course:
    """The course with its submissions; every second student's last exercise is wrong."""
    course, chance = Course(folder), random.Random(0)
    for lesson_id, (exercise_ids, number) in CLASSES.items():
        slug = load_lesson(lesson_id).slug
        course.nbgrader("generate_assignment", slug)
        for index in range(number):
            student, source = f"student{index}", course.notebook("source", slug)
            notebook = with_solutions(course.notebook("release", slug), source, *exercise_ids)
            for exercise_id in exercise_ids:
                here = cell(notebook, f"exercise-{exercise_id.replace('.', '-')}")
                if index % 2 and exercise_id == exercise_ids[-1]:
                    here.source = load_mutants(lesson_id)[exercise_id][0].source
                here.source = own(here.source, student, chance)
            course.submit(student, slug, notebook, right_answers(lesson_id) if lesson_id == "04" else {})
    shutil.copy(course.root / "gradebook.db", course.root / "empty.db")
    return course


def command(course: Course, lesson_id: str, temporary: Path) -> subprocess.Popen[str]:
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "autograder.cli.main", "grade", lesson_id, "--json"],
        cwd=course.root,
        env=course.environment() | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def grade(course: Course, lesson_id: str, temporary: Path) -> dict[str, Any]:
    """Run it to its end. Raises RuntimeError with what it said if it does not come to one."""
    run = command(course, lesson_id, temporary)
    out, err = run.communicate()
    if run.returncode != 0:
        raise RuntimeError(f"status {run.returncode}: {err[-500:]}{out[-500:]}")
    return json.loads(out)


def in_the_gradebook(course: Course) -> tuple[Grades, list[str]]:
    """What each student has in the database, by student and lesson; and what is there twice, or half."""
    with contextlib.closing(sqlite3.connect(course.root / "gradebook.db", timeout=0)) as database:
        database.execute("BEGIN IMMEDIATE")  # held by nobody
        wrong = [] if database.execute("PRAGMA quick_check").fetchone()[0] == "ok" else ["gradebook: damaged"]
        rows = database.execute(
            "SELECT submitted_assignment.student_id, assignment.name, submitted_assignment.id, "
            "submitted_notebook.id, base_cell.name, grade.auto_score, grade.manual_score, grade.needs_manual_grade "
            "FROM submitted_assignment JOIN assignment ON assignment.id = submitted_assignment.assignment_id "
            "LEFT JOIN submitted_notebook ON submitted_notebook.assignment_id = submitted_assignment.id "
            "LEFT JOIN grade ON grade.notebook_id = submitted_notebook.id "
            "LEFT JOIN base_cell ON base_cell.id = grade.cell_id"
        ).fetchall()
    found: Grades = {}
    ids: dict[str, set[tuple[Any, Any]]] = {}
    for student, slug, *row_ids, name, auto, manual, by_hand in rows:
        who = f"{student} {slug[:2]}"
        ids.setdefault(who, set()).add(tuple(row_ids))
        grades = found.setdefault(who, {})
        wrong += [f"{who}: {name} twice"] if name in grades else []
        wrong += [f"{who}: {name} has no score"] if auto is None and not by_hand else []
        grades[name] = [auto, manual, by_hand]
    return found, wrong + [f"{who}: {len(each)} submissions" for who, each in ids.items() if len(each) > 1]


def files(course: Course) -> set[str]:
    """What feedback is made of, and what the next run relies on."""
    found = [*(course.root / "autograded").rglob("*"), *(course.root / ".workbook" / "graded").rglob("*")]
    return {str(path.relative_to(course.root)) for path in found if path.is_file()}


def left(course: Course, temporary: Path) -> list[str]:
    """Processes, temporary files and folders, and locks that are still held."""
    found = [f"process: {process}" for process in survivors(time.monotonic() + GONE_SECONDS)]
    found += [f"temporary: {path.name}" for path in temporary.iterdir()]
    for folder in (course.root, course.data):
        found += [f"half written: {path}" for path in folder.rglob(f"{BUILDING}*")]
        found += [f"lock held: {path}" for path in folder.rglob("*.lock") if is_held(path)]
    return found


def begin_anew(course: Course) -> None:
    """The course as it was before the first grade; a solution's measurements are gone too."""
    for folder in (".workbook", "autograded"):
        shutil.rmtree(course.root / folder, ignore_errors=True)
    shutil.rmtree(course.data, ignore_errors=True)
    shutil.copy(course.root / "empty.db", course.root / "gradebook.db")


def durations(course: Course, started: float) -> dict[str, float]:
    """Seconds that each phase of a run took, by the files that it left."""
    results = list((course.root / ".workbook" / "results").rglob("*.json"))
    groups = {
        "start": [min(results, key=_written)],
        "checks": [path for path in results if not _is_timed(path)],
        "timed checks": [path for path in results if _is_timed(path)],
        "gradebook": list((course.root / ".workbook" / "graded").rglob("*.json")),
    }
    found = {}
    for name, paths in groups.items():
        if paths:
            ended = max(map(_written, paths))
            found[name], started = ended - started, ended
    return found


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _is_timed(result: Path) -> bool:
    return Unit(result.parent.name, "").is_timed


def phase_now(course: Course, lesson_id: str) -> str:
    """The phase that a killed run was in, by what it had finished."""
    results = list((course.root / ".workbook" / "results").rglob("*.json"))
    exercise_ids, number = CLASSES[lesson_id]
    num_timed = number * sum(Unit(exercise_id, "").is_timed for exercise_id in exercise_ids)
    open_ids = {exercise.id for exercise in load_lesson(lesson_id).exercises} - set(exercise_ids)
    num_others = number * len(exercise_ids) - num_timed + len(open_ids)  # what is open is the same for all
    timed = sum(map(_is_timed, results))
    if not results:
        return "start"
    if len(results) - timed < num_others:
        return "checks"
    if timed < num_timed:
        return "timed checks"
    marks = list((course.root / ".workbook" / "graded").rglob("*.json"))
    return "gradebook" if len(marks) < number else "after the last grade"


def one_kill(
    course: Course,
    lesson_id: str,
    temporary: Path,
    aim: tuple[str, float],
    truth: tuple[Grades, set[str]],
) -> tuple[str, list[str]]:
    """Returns the phase that the kill fell into, and all that was wrong then or after the next run.

    Args:
        aim: a phase, and the seconds after its begin.
    """
    begin_anew(course)
    run = command(course, lesson_id, temporary)
    while run.poll() is None and ALL.index(phase_now(course, lesson_id)) < ALL.index(aim[0]):
        time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.communicate(timeout=aim[1])
    run.kill()
    _, err = run.communicate()
    phase = phase_now(course, lesson_id)
    wrong = [f"a traceback: {err[-300:]}"] if "Traceback" in err else []
    wrong += left(course, temporary)
    try:
        grade(course, lesson_id, temporary)
    except RuntimeError as error:
        return phase, [*wrong, f"the next run: {error}"]
    found, twice = in_the_gradebook(course)
    wrong += [*twice, *left(course, temporary)]
    wrong += [
        f"{who}: {found.get(who)}, not {grades}"
        for who, grades in truth[0].items()
        if found.get(who) != grades
    ]
    wrong += [f"{who}: nobody's" for who in found.keys() - truth[0].keys()]
    wrong += [f"file: {name}" for name in sorted(truth[1] ^ files(course))]
    return phase, wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    adopt_orphans()
    rng, rows = (
        random.Random(arguments.seed),
        {name: Counter[str]() for name in ALL},
    )
    with tempfile.TemporaryDirectory() as folder:
        course, temporary = make(Path(folder)), Path(folder) / "tmp"
        truths, takes = {}, {}
        for lesson_id in [*CLASSES, *CLASSES]:  # twice: the first run reads all from the disk
            begin_anew(course)
            started = time.time()
            grade(course, lesson_id, temporary)
            takes[lesson_id] = durations(course, started)
            truths[lesson_id] = in_the_gradebook(course)[0], files(course)
            print(f"undisturbed, lesson {lesson_id}: {takes[lesson_id]}", file=sys.stderr, flush=True)
        for number in range(arguments.kills):
            lesson_id = LESSONS[number % len(LESSONS)]
            phase, seconds = rng.choice(list(takes[lesson_id].items()))
            aim = phase, rng.uniform(0.0, seconds)
            phase, wrong = one_kill(course, lesson_id, temporary, aim, truths[lesson_id])
            rows[phase].update({"kills": 1, "bad": int(bool(wrong)), lesson_id: 1})
            told = "; ".join(wrong) or "as undisturbed"
            print(
                f"{number + 1}: lesson {lesson_id}, {aim[0]} + {aim[1]:.1f} s, fell into {phase}: {told}",
                file=sys.stderr,
                flush=True,
            )
    print(
        "| killed in | kills | of lesson 00 | of lesson 04 | not as the undisturbed run, or something left |"
    )
    print("|---|---|---|---|---|")
    for phase, row in rows.items():
        print(f"| {phase} | {row['kills']} | {row['00']} | {row['04']} | {row['bad']} |")
    return int(any(row["bad"] for row in rows.values()))


if __name__ == "__main__":
    raise SystemExit(main())
