"""A class through `workbook grade`, beside stock `nbgrader autograde` on a sample of the same notebooks.

    python -m tests.benchmarks.class_throughput                      # 100 submissions over lessons 03, 04 and 08
    python -m tests.benchmarks.class_throughput --submissions 12     # a small try

A speed exercise costs both the same: stock asks the same engine for it. So the lessons decide the ratio. These hold
two speed exercises, one and none, as all lessons after the first do; lesson 01 has four of six, and `--lessons 01`
measures it by itself. The class is that of `class_makeup`. Ours is graded cold, one command a lesson. Stock is a
course with nbgrader's own preprocessors: a kernel executes every cell, the lesson's experiments too, and `check` asks
the engine from there; a cell may take 900 s instead of 30, so that stock loses nothing to its clock. Half of a
lesson's sample goes before ours and half after: both see the machine alike. Each has records of its own: neither goes
on from the other's measurements. Stock's time for the class is the sample's mean of each kind and lesson, times how
many there are, and one start of nbgrader a lesson. Where no broken or hostile one of a lesson was sampled, its
perfect or partial ones stand for them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from autograder.course.lessons import load_lesson
from autograder.engine.evidence import hardware, versions
from autograder.grading.units import Unit
from tests.autograder.nbgrader_course import Course
from tests.benchmarks.class_makeup import Made, make_class
from tests.benchmarks.class_table import LIKE, Row, table

LESSONS = ["03", "04", "08"]
STOCK_CONFIG = "c.Execute.timeout = 900\nc.Execute.iopub_timeout = 900\n"
OUT = Path(__file__).with_name("results") / "class_throughput.json"


def stratum(made: Made, course: Course) -> str:
    """Its kind; of the broken files, those that stock nbgrader cannot open cost it nothing and stand apart."""
    if made.kind != "broken":
        return made.kind
    slug = load_lesson(made.lesson_id).slug
    try:
        notebook = json.loads(
            (course.root / f"submitted/{made.student}/{slug}/{slug}.ipynb").read_text("utf-8")
        )
        return "broken" if notebook["nbformat"] == 4 and notebook["cells"] else "unreadable"
    except (ValueError, KeyError, TypeError):
        return "unreadable"


def sample(made: list[Made], kinds: dict[str, str], each: int) -> list[Made]:
    """`each` of every kind in every lesson, as far as there are so many; of those in `LIKE`, in the whole class."""
    taken: Counter[tuple[str, str]] = Counter()
    found = []
    for one in sorted(made, key=lambda one: one.lesson_id):
        kind = kinds[one.student]
        key = ("" if kind in LIKE else one.lesson_id, kind)
        taken[key] += 1
        found += [one] if taken[key] <= each else []
    return found


def environment(course: Course) -> dict[str, str]:
    """As a user's: both may take the threads that torch takes by itself."""
    return {key: value for key, value in course.environment().items() if key != "OMP_NUM_THREADS"}


def grade(course: Course, lesson_id: str) -> Row:
    """Our command on a whole lesson."""
    start = time.monotonic()
    command = [sys.executable, "-m", "autograder.cli.main", "grade", lesson_id, "--json"]
    ran = subprocess.run(
        command, cwd=course.root, env=environment(course), stdout=subprocess.PIPE, text=True, check=False
    )
    if ran.returncode not in (0, 1):
        raise SystemExit(f"workbook grade ended with status {ran.returncode}")
    return json.loads(ran.stdout) | {"seconds": time.monotonic() - start}


def autograde(course: Course, made: Made) -> Row:
    """Stock nbgrader on one submission: the seconds of its start, and those of the work itself."""
    slug, start, begun = load_lesson(made.lesson_id).slug, time.monotonic(), 0.0
    with subprocess.Popen(
        [sys.executable, "-m", "nbgrader", "autograde", slug, f"--student={made.student}"],
        cwd=course.root,
        env=environment(course),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as ran:
        assert ran.stdout
        lines = []
        for line in ran.stdout:
            begun = begun or time.monotonic() - start
            lines.append(line)
    seconds = time.monotonic() - start
    error = "" if ran.returncode == 0 else _last_error(lines)
    return {"start_seconds": begun, "seconds": seconds - begun, "error": error}


def _last_error(lines: list[str]) -> str:
    errors = [line.strip() for line in lines if "Error" in line.partition(":")[0]]
    return (errors or lines)[-1].strip()[:200]


def scores(course: Course, made: Made) -> dict[str, float | None]:
    """The automatic points of each graded cell; empty where there is no grade."""
    from nbgrader.api import MissingEntry

    try:
        return course.scores(made.student, load_lesson(made.lesson_id).slug)
    except MissingEntry:
        return {}


def run(folder: Path, lessons: list[str], number: int, each: int, seed: int) -> Row:
    """Make the class, grade it both ways, and return all that was found."""
    ours, stock = Course(folder / "ours"), Course(folder / "stock", measured=False)
    with (stock.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(STOCK_CONFIG)
    for course in (ours, stock):
        for lesson_id in lessons:
            course.nbgrader("generate_assignment", load_lesson(lesson_id).slug)
    made = make_class(ours, lessons, number, seed)
    shutil.copytree(ours.root / "submitted", stock.root / "submitted")
    kinds = {each.student: stratum(each, ours) for each in made}
    sampled, graded, taken = sample(made, kinds, each), {}, {}
    bar = tqdm(total=len(sampled), desc="stock", file=sys.stderr)
    load = [os.getloadavg()[0]]
    for lesson_id in lessons:
        here = [one for one in sampled if one.lesson_id == lesson_id]
        for part in (here[::2], None, here[1::2]):
            if part is None:
                graded[lesson_id] = grade(ours, lesson_id)
                load.append(os.getloadavg()[0])
                bar.write(f"ours, lesson {lesson_id}: {graded[lesson_id]['seconds']:.0f} s", file=sys.stderr)
            for one in part or ():
                taken[one.student] = autograde(stock, one) | {"scores": scores(stock, one)}
                bar.write(
                    f"stock, {one.student}, lesson {lesson_id}, {kinds[one.student]}: "
                    f"{taken[one.student]['seconds']:.0f} s",
                    file=sys.stderr,
                )
                bar.update()
    bar.close()
    for one in made:
        graded[one.lesson_id]["students"][one.student]["scores"] = scores(ours, one)
    return {
        "hardware": hardware(),
        "versions": versions() | {"nbgrader": version("nbgrader")},
        "load_average": load,
        "made": [
            asdict(one) | {"sources": sorted(one.sources), "stratum": kinds[one.student]} for one in made
        ],
        "distinct_units": len({Unit(*item) for one in made for item in one.sources.items()}),
        "handed_in_units": sum(len(one.sources) for one in made),
        "checks": _checks(ours),
        "ours": graded,
        "stock": taken,
    }


def _checks(course: Course) -> list[Row]:
    """What each check that ran took."""
    kept = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((course.root / ".workbook" / "results").rglob("*.json"))
    ]
    return [{key: result[key] for key in ("id", "verdict", "seconds")} for result in kept]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=100)
    parser.add_argument("--lessons", nargs="+", default=LESSONS)
    parser.add_argument("--stock-each", type=int, default=2, help="sampled of each kind in each lesson")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT, help="the raw file")
    parser.add_argument("--table", action="store_true", help="measure nothing, show what the raw file says")
    arguments = parser.parse_args()
    if not arguments.table:
        with tempfile.TemporaryDirectory(prefix="class-") as folder:
            found = run(
                Path(folder), arguments.lessons, arguments.submissions, arguments.stock_each, arguments.seed
            )
        arguments.out.write_text(json.dumps(found), encoding="utf-8")
    print(table(json.loads(arguments.out.read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
