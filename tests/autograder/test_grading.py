"""A class through `workbook grade`: what comes is graded as far as it can be, once, and nobody suffers for another."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from filelock import FileLock

from autograder.common.result import Reason, Result
from autograder.course.lessons import load_lesson
from autograder.engine.timing.conditions import num_cores
from autograder.grading.marking import _stands
from autograder.grading.submissions import read_submission, stage
from autograder.grading.units import (
    Results,
    Unit,
    check_died,
    check_unit,
    counted,
    engines,
    without_result,
)
from tests.autograder.malformed import corpus
from tests.autograder.nbgrader_course import LESSON_00, NOTEBOOKS, Course, cell
from tests.everyday import first_of

LESSON = load_lesson("00")
RELEASE = NOTEBOOKS / "release" / LESSON_00 / f"{LESSON_00}.ipynb"
FILES = dict(corpus(json.loads(RELEASE.read_text(encoding="utf-8"))))
#: One of each kind; the others are read and staged, which is where they differ.
GRADED = (
    *(
        "cut-0",
        "flipped-1",
        "empty",
        "deep",
        "nan",
        "encoding-utf-16",
        "encoding-cp1252",
        "top-cells-3",
        "cell-source-5",
    ),
    *(
        "cell-metadata-0",
        "grade-id-0",
        "points-4",
        "doubled",
        "no-marks",
        "all-locked",
        "format-3",
        "old-schema",
    ),
    *("large-outputs", "other-course", "python-2", "carriage-returns"),
)
STUB_SCORES = {"check-0-1": 0.0}


def put(course: Path, student: str, data: bytes, name: str = f"{LESSON_00}.ipynb") -> Path:
    folder = course / "submitted" / student / LESSON_00
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    return folder


def test_the_corpus_is_large() -> None:
    assert len(FILES) >= 200


def test_whatever_comes_is_read_and_staged_as_a_valid_notebook(tmp_path: Path) -> None:
    for name, data in FILES.items():
        folder = put(tmp_path, name, data)
        submission = read_submission(tmp_path, name, LESSON)
        stage(submission, RELEASE, tmp_path / "staged", LESSON)
        staged = nbformat.read(tmp_path / "staged" / name / LESSON_00 / f"{LESSON_00}.ipynb", as_version=4)
        nbformat.validate(staged)
        assert submission.cells or submission.problems, name
        assert [path.name for path in folder.iterdir()] == [f"{LESSON_00}.ipynb"], (
            "the submission itself is not touched"
        )


def test_another_name_encoding_or_format_costs_nothing(tmp_path: Path) -> None:
    for name in (
        "encoding-utf-16",
        "encoding-utf-8-sig",
        "encoding-cp1252",
        "format-3",
        "no-ids",
        "carriage-returns",
    ):
        put(tmp_path, name, FILES[name], name="my notebook (final).ipynb")
        submission = read_submission(tmp_path, name, LESSON)
        assert "0.1" in submission.sources, name
        assert "graded all the same" in " ".join(submission.problems)


def test_a_notebook_that_is_too_large_is_called_that(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "large" / LESSON.slug
    folder.mkdir(parents=True)
    with (folder / f"{LESSON.slug}.ipynb").open("wb") as file:
        file.truncate(210_000_000)
    problems = read_submission(tmp_path, "large", LESSON).problems
    assert problems[0] == f"{LESSON.slug}.ipynb: 210 MB, more than the 200 MB that are read"


def test_a_link_to_another_students_work_is_not_read(tmp_path: Path) -> None:
    folder = put(tmp_path, "honest", RELEASE.read_bytes())
    thief = tmp_path / "submitted" / "thief" / LESSON_00
    thief.mkdir(parents=True)
    for name in (f"{LESSON_00}.ipynb", f"{LESSON_00}_answers.json"):
        (thief / name).symlink_to(folder / f"{LESSON_00}.ipynb")
    submission = read_submission(tmp_path, "thief", LESSON)
    assert not submission.cells and submission.answers is None
    assert "is a link" in submission.problems[0]


def test_what_the_exchange_left_travels_and_a_link_in_its_place_does_not(tmp_path: Path) -> None:
    folder = put(tmp_path, "honest", RELEASE.read_bytes())
    thief = put(tmp_path, "thief", RELEASE.read_bytes())
    for name, text in (("timestamp.txt", "2027-02-03 12:00:00.5 UTC"), ("submission_secret.txt", "mine")):
        (folder / name).write_text(text, encoding="utf-8")
        (thief / name).symlink_to(folder / name)
    for student, is_there in (("honest", True), ("thief", False)):
        stage(read_submission(tmp_path, student, LESSON), RELEASE, tmp_path / "staged", LESSON)
        staged = tmp_path / "staged" / student / LESSON_00
        assert (staged / "timestamp.txt").exists() is is_there
        assert (staged / "submission_secret.txt").exists() is is_there


def test_a_result_is_kept_by_content(tmp_path: Path) -> None:
    results, unit = Results(tmp_path), Unit("0.1", "x = 1")
    assert results.get(unit) is None
    result = Result(id="0.1", verdict="pass", reason=Reason(note="right", next="go on"))
    results.put(unit, result)
    assert results.get(Unit("0.1", "x = 1")) == result
    assert results.get(Unit("0.1", "x = 2")) is None
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text("torn")
    assert results.get(unit) is None


def workbook(course: Course, *arguments: str) -> dict[str, Any]:
    """What a verb of `workbook` answers in the course's folder, as JSON."""
    command = [sys.executable, "-m", "autograder.cli.main", *arguments, "--json"]
    ran = subprocess.run(
        command, cwd=course.root, env=course.environment(), capture_output=True, text=True, timeout=900
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "Traceback" not in ran.stderr
    return json.loads(ran.stdout)


HALF = """
from nbgrader.plugins import BasePlugin


class Half(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2
"""


def test_a_cell_that_never_ends_is_waited_for_twice() -> None:
    unit = Unit("0.1", "while True: pass")
    first = counted(without_result(unit, "no result within 600 s"), None)
    assert not _stands(first) and "not the learner's mistake" not in first.reason.note
    assert _stands(counted(without_result(unit, "no result within 600 s"), first))
    assert not _stands(check_died(unit, "it was killed"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    first_of(
        [
            (["99"], "no lesson '99'"),
            (["0", "--students", "nobody"], "nobody handed in nothing"),
            (["1"], "nothing was handed in"),
            (["0"], "nbgrader generate_assignment 00_start_here"),
            (["0", "--course", "/"], "no nbgrader course"),
        ],
        2,
    ),
)
def test_what_cannot_be_graded_is_one_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    shutil.copy(NOTEBOOKS / "nbgrader_config.py", tmp_path)
    put(tmp_path, "ada", RELEASE.read_bytes())
    if "--course" in arguments:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "submitted").rename(tmp_path / "elsewhere" / "submitted")
        arguments = ["0", "--course", str(tmp_path / "elsewhere")]
    ran = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "grade", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    assert says in ran.stderr


def small_class(folder: Path) -> Course:
    """A right solution, a stub and a wrong one of lesson 00, not graded yet."""
    course = Course(folder, LESSON_00)
    course.submit("right", LESSON_00, course.notebook("source", LESSON_00))
    course.submit("stub", LESSON_00, course.notebook("release", LESSON_00))
    wrong = course.notebook("source", LESSON_00)
    mistake = cell(wrong, "exercise-0-1")
    mistake.source = mistake.source.replace(
        "baseline_seconds / candidate_seconds", "candidate_seconds / baseline_seconds"
    )
    course.submit("wrong", LESSON_00, wrong)
    return course


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The same with one of each kind of broken file, and an empty folder."""
    course = small_class(tmp_path_factory.mktemp("class"))
    for name in GRADED:
        put(course.root, name, FILES[name])
    (course.root / "submitted" / "nothing" / LESSON_00).mkdir(parents=True)
    return course


@pytest.mark.slow
@pytest.mark.everyday
@pytest.mark.timeout(1200)
def test_a_class_is_graded_whatever_is_in_it(course: Course) -> None:
    found = workbook(course, "grade", "00")
    assert found["graded"] == len(GRADED) + 4
    assert {name: each["error"] for name, each in found["students"].items() if each["error"]} == {}
    assert found["students"]["right"] == {"look": [], "error": "", "score": 1.0, "max_score": 1.0}
    for name in (*GRADED, "stub", "wrong", "nothing"):
        assert found["students"][name]["score"] == 0.0, name
        assert course.scores(name, LESSON_00) == STUB_SCORES
    assert "not valid JSON" in " ".join(found["students"]["cut-0"]["look"])

    shutil.rmtree(course.root / "autograded" / "right")
    again = workbook(course, "grade", "00")
    assert (again["checked"], again["students"]) == (0, found["students"])
    assert (course.root / "autograded" / "right" / LESSON_00).is_dir(), "what feedback is made of is back"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_rule_for_late_work_that_came_later_counts(course: Course) -> None:
    """And so does an extension that was granted after it."""
    from nbgrader.api import Gradebook

    course.submit("tardy", LESSON_00, course.notebook("source", LESSON_00))
    late = course.root / "submitted" / "tardy" / LESSON_00 / "timestamp.txt"
    late.write_text("2027-02-03 12:00:00 UTC", encoding="utf-8")
    course.nbgrader("db", "assignment", "add", LESSON_00, "--duedate", "2027-02-01 23:59 UTC")
    config = course.root / "nbgrader_config.py"
    before = config.read_text(encoding="utf-8")
    (course.root / "late_rules.py").write_text(HALF, encoding="utf-8")
    rule = 'c.AssignLatePenalties.plugin_class = "late_rules.Half"\n'
    try:
        scores = []
        for settings in (before, before + rule):
            config.write_text(settings, encoding="utf-8")
            found = workbook(course, "grade", "00", "--students", "tardy")
            scores.append(found["students"]["tardy"]["score"])
        with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", "training-workbook") as gradebook:
            gradebook.grant_extension(LESSON_00, "tardy", days=3)
        found = workbook(course, "grade", "00", "--students", "tardy")
        scores.append(found["students"]["tardy"]["score"])
    finally:
        config.write_text(before, encoding="utf-8")
    assert scores == [1.0, 0.5, 1.0]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", first_of(["SIGINT", "SIGKILL"], everyday=0, further=1))
def test_ended_in_the_middle_it_goes_on(course: Course, name: str) -> None:
    source = course.notebook("source", LESSON_00)
    names = [f"{name.lower()}-{number}" for number in range(6)]
    for student in names:  # each with code of its own, so that each is checked
        exercise = cell(source, "exercise-0-1")
        exercise.source += f"\nNAME = {student!r}\n"
        course.submit(student, LESSON_00, source)
    # A test that runs in the background would pass on that it hears no SIGINT.
    starts = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    starts += "from autograder.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", starts, "grade", "00", "--students", ",".join(names)]
    with subprocess.Popen(
        command, cwd=course.root, env=course.environment(), stderr=subprocess.PIPE, text=True
    ) as run:
        kept = course.root / ".workbook" / "results"
        before = len(list(kept.rglob("*.json")))
        while len(list(kept.rglob("*.json"))) == before and run.poll() is None:
            time.sleep(0.01)
        engines = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(getattr(signal, name))
        _, said = run.communicate()
    if name == "SIGINT":
        assert run.returncode == 130
        assert "Traceback" not in said and "goes on from there" in said.splitlines()[-1]
    _, left = psutil.wait_procs(engines, timeout=30)
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]

    found = workbook(course, "grade", "00", "--students", ",".join(names))
    assert found["reused"] > 0 and found["graded"] == len(names)
    assert {each["score"] for each in found["students"].values()} == {1.0}


@pytest.mark.further
def test_timed_work_waits_for_a_core_whoever_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    with engines(), ThreadPoolExecutor() as pool, contextlib.ExitStack() as busy:
        for number in range(num_cores()):
            busy.enter_context(FileLock(tmp_path / "locks" / f"lane-{number}.lock"))
        stub = pool.submit(check_unit, Unit("1.5", ""))
        assert wait([stub], timeout=1.0).not_done
        busy.close()
        assert stub.result().id == "1.5"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_report_names_the_mistakes_and_who_wrote_the_same(tmp_path: Path) -> None:
    course, page = small_class(tmp_path), tmp_path / "class.html"
    shutil.copytree(course.root / "submitted" / "right", course.root / "submitted" / "copier")
    workbook(course, "grade", "00")
    found = workbook(course, "report", "0", "--out", str(page))
    (exercise,) = found["exercises"]
    assert exercise["verdicts"]["pass"] == 2
    assert {"id": "0.1", "students": ["copier", "right"]} in found["alike"]
    assert exercise["mistakes"], "the wrong solution has a name"
    assert "copier, right" in page.read_text(encoding="utf-8")
    course.nbgrader("export", "--exporter=autograder.grading.nbgrader.exports.Canvas")
    rows = (course.root / "grades-canvas.csv").read_text(encoding="utf-8").splitlines()
    assert rows[1] == '"Points Possible","","","","",1.0'
    assert '"right","","","right","",1.0' in rows
