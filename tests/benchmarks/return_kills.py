"""Kill `workbook return` at random moments, let it run again to its end, and look for feedback that is lost or double.

    python -m tests.benchmarks.return_kills --kills 50

A small class that handed in by Moodle, graded once; its feedback is given back once undisturbed. Then, each time from
nothing, the command is ended by SIGKILL at a moment drawn from its whole duration. Whatever archives are there must be
whole, and after a second run all archives together must hold each student once, with the page of the undisturbed run;
no lock may be held, and nothing half written may be left.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import nbformat

from autograder.common.apart import _end_kept
from autograder.grading.handed_in.collecting import collect
from autograder.grading.marking import grade
from tests.autograder.nbgrader_course import LESSON_00, Course
from tests.benchmarks.grade_kills import left
from tests.benchmarks.killed_grader import adopt_orphans

STUDENTS = 5


def make(folder: Path) -> Course:
    """The course, collected and graded."""
    course = Course(folder, LESSON_00)
    notebook = nbformat.writes(course.notebook("release", LESSON_00))
    archive = folder / "class.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for number in range(STUDENTS):
            packed.writestr(f"s{number}_{100 + number}_assignsubmission_file/{LESSON_00}.ipynb", notebook)
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        for number in range(STUDENTS):
            gradebook.add_student(f"s{number}")
    collect("00", course.root, [archive])
    grade("00", course.root)
    return course


def start(course: Course, temporary: Path) -> subprocess.Popen[str]:
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "autograder.cli.main", "return", "00", "--moodle", "--json"],
        cwd=course.root,
        env=course.environment() | {"TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def given_back(course: Course) -> list[tuple[str, bytes]]:
    """Name and page, of all archives together. Raises BadZipFile where one is not whole."""
    found = []
    for path in sorted((course.root / "returned").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            found += [(name, archive.read(name)) for name in archive.namelist()]
    return sorted(found)


def killed(course: Course, temporary: Path, seconds: float) -> bool:
    """Start it, and end it after so long; whether it had not ended by itself."""
    run = start(course, temporary)
    time.sleep(seconds)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    return run.returncode == -signal.SIGKILL


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    adopt_orphans()
    chance, bad, kills = random.Random(arguments.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        course, temporary = make(Path(folder)), Path(folder) / "tmp"
        _end_kept()  # of collecting and grading here: what is left below is the command's
        begun = time.monotonic()
        start(course, temporary).communicate()
        duration, truth = time.monotonic() - begun, given_back(course)
        assert len(truth) == STUDENTS, truth
        while kills < arguments.kills:
            shutil.rmtree(course.root / "returned", ignore_errors=True)
            wrong = []
            kills += killed(course, temporary, chance.uniform(0.1, 1.0) * duration)
            try:
                given_back(course)
                _, err = start(course, temporary).communicate()
                wrong += [] if given_back(course) == truth else ["not what the undisturbed run gave back"]
                wrong += [err] if "Traceback" in err else []
            except (OSError, zipfile.BadZipFile) as error:
                wrong.append(f"half an archive: {error}")
            wrong += left(course, temporary)
            bad += bool(wrong)
            for line in wrong:
                print(f"kill {kills}: {line}", file=sys.stderr)
    print(json.dumps({"kills": kills, "bad": bad}))
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
