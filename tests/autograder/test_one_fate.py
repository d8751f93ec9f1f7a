"""One hand-in, one fate: its student gets a grade or a named reason, whatever is in it, and all others their grade."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.common import printable
from autograder.course.lessons import load_lesson
from autograder.engine.rules import key_of
from autograder.engine.source.notebook import sources_in
from autograder.grading.nbgrader.learner_text import as_typed, come_out, harmless
from autograder.grading.submissions import near_names, read_submission, stage, students_of, unfit_name
from tests.autograder.hostile_hand_ins import FURTHER, KNOWN, NAMES, PIXEL, code, hand_in
from tests.autograder.nbgrader_course import LESSON_00, NOTEBOOKS, Course, cell

LESSON = load_lesson("00")
RELEASE = NOTEBOOKS / "release" / LESSON_00 / f"{LESSON_00}.ipynb"
KINDS = KNOWN | FURTHER
HONEST = {"right": 1.0, "pasted-an-image": 1.0, "wrong": 0.0, "stub": 0.0}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory and folders are limited so on Linux alone")


def release() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RELEASE.read_text(encoding="utf-8"))
    return found


@LINUX
@pytest.mark.parametrize("kind", KINDS)
def test_what_stopped_a_class_is_read_and_staged_or_named(tmp_path: Path, kind: str) -> None:
    hand_in(tmp_path, "ada", LESSON.slug, KINDS[kind], release())
    submission = read_submission(tmp_path, "ada", LESSON)
    stage(submission, RELEASE, tmp_path / "staged", LESSON)
    staged = nbformat.read(tmp_path / "staged" / "ada" / LESSON_00 / f"{LESSON_00}.ipynb", as_version=4)
    nbformat.validate(staged)
    assert "0.1" in submission.sources or submission.problems
    assert sum(map(len, submission.problems)) < 12_000


@pytest.mark.parametrize("kind", KNOWN)
def test_the_exercise_of_who_did_such_a_thing_elsewhere_is_found(tmp_path: Path, kind: str) -> None:
    hand_in(tmp_path, "ada", LESSON.slug, KNOWN[kind], release())
    before = "".join(cell_of(release(), "exercise-0-1")["source"])
    assert read_submission(tmp_path, "ada", LESSON).sources["0.1"] == before


@pytest.mark.slow
def test_an_exercise_is_found_beside_cells_that_keep_the_parser_busy(tmp_path: Path) -> None:
    def put(folder: Path, slug: str, notebook: dict[str, Any]) -> None:
        busy = [code("exercise\n" + "a[a]\n" * 38_000) for _ in range(25)]
        made = notebook | {"cells": [*notebook["cells"], *busy]}
        (folder / f"{slug}.ipynb").write_text(json.dumps(made), encoding="utf-8")

    hand_in(tmp_path, "ada", LESSON.slug, put, release())
    found = read_submission(tmp_path, "ada", LESSON)
    assert list(found.sources) == ["0.1"] and found.problems == ()
    staged = tmp_path / "submitted" / "ada" / LESSON_00 / f"{LESSON_00}.ipynb"
    assert sources_in(staged) == found.sources


@pytest.mark.slow
def test_a_notebook_beside_it_changes_nothing_of_how_one_is_read(tmp_path: Path) -> None:
    """One that keeps the parser busy had the other read by its text alone, and the copy of that by Python."""

    def put(folder: Path, slug: str, notebook: dict[str, Any]) -> None:
        stub = code('@exercise("0.1")\ndef speedup(a, b):\n    raise NotImplementedError\n')
        solved = code('def speedup(a, b):\n    return a / b\nspeedup = exercise("0.1")(speedup)\n')
        made = notebook | {"cells": [stub, solved]}
        busy = notebook | {"cells": [code("exercise\n" + "a[a]\n" * 38_000) for _ in range(25)]}
        (folder / f"{slug}.ipynb").write_text(json.dumps(made), encoding="utf-8")
        (folder / "zzz.ipynb").write_text(json.dumps(busy), encoding="utf-8")

    hand_in(tmp_path, "ada", LESSON.slug, put, release())
    found = read_submission(tmp_path, "ada", LESSON)
    assert "a / b" in found.sources["0.1"]
    assert sources_in(tmp_path / "submitted" / "ada" / LESSON_00 / f"{LESSON_00}.ipynb") == found.sources


def cell_of(notebook: dict[str, Any], grade_id: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in notebook["cells"] if each["metadata"].get("nbgrader", {}).get("grade_id") == grade_id
    )
    return found


def test_a_time_of_hand_in_is_kept_and_garbage_is_named(tmp_path: Path) -> None:
    for student, said, stamp in (
        ("ada", "2027-02-03 12:00:00 UTC", "2027-02-03 12:00:00 UTC"),
        ("bob", "2027-02-03 12:00:00 +0100", ""),
        ("eve", "soon", ""),
    ):
        hand_in(tmp_path, student, LESSON.slug, lambda *_: None, release())
        folder = tmp_path / "submitted" / student / LESSON_00
        (folder / "timestamp.txt").write_text(said, encoding="utf-8")
        found = read_submission(tmp_path, student, LESSON)
        if student != "bob":  # of what dateutil makes of it nothing is promised
            assert found.stamp == stamp
        assert ("holds no time" in " ".join(found.problems)) == (not found.stamp)


def test_a_folder_that_is_a_link_or_a_file_is_named(tmp_path: Path) -> None:
    hand_in(tmp_path, "honest", LESSON.slug, lambda *_: None, release())
    home = tmp_path / "submitted"
    (home / "thief").symlink_to(home / "honest")
    (home / "other").mkdir()
    (home / "other" / LESSON_00).symlink_to(home / "honest" / LESSON_00)
    (home / "file").mkdir()
    (home / "file" / LESSON_00).write_text("my work")
    (home / "gone").mkdir()
    (home / "gone" / LESSON_00).symlink_to(home / "nowhere")
    assert students_of(tmp_path, LESSON_00) == ["file", "gone", "honest", "other", "thief"]
    links = dict.fromkeys(("thief", "other", "gone"), "is a link")
    for student, says in (links | {"file": "is no folder"}).items():
        found = read_submission(tmp_path, student, LESSON)
        assert not found.cells and says in found.problems[0]


def test_a_folder_of_nearly_the_lessons_name_is_named(tmp_path: Path) -> None:
    near = [LESSON_00.upper(), LESSON_00.replace("_", "-"), f"{LESSON_00} (1)", f"{LESSON_00}_copy"]
    for number, name in enumerate(near):
        (tmp_path / "submitted" / f"ada{number}" / name).mkdir(parents=True)
    (tmp_path / "submitted" / "bob" / "01_efficient_training_loops").mkdir(parents=True)
    (tmp_path / "submitted" / "cid" / LESSON_00).mkdir(parents=True)
    (tmp_path / "submitted" / "cid" / f"{LESSON_00}_old").mkdir()
    found = near_names(tmp_path, LESSON_00)
    assert [*found] == ["ada0", "ada1", "ada2", "ada3"]
    for name, why in zip(near, found.values(), strict=True):
        assert name in why and f"rename it to {LESSON_00}" in why


def test_names_that_nbgrader_takes_for_others_are_named() -> None:
    for name in NAMES:
        assert bool(unfit_name(name)) == (name != "disk is full"), name
    for name in ("ada", "ada.lovelace+1@example.org", "Ada Lovelace_1234_assignsubmission_file", "Žofie"):
        assert not unfit_name(name)


def test_names_in_imports_cannot_keep_the_grader_busy() -> None:
    names = ", ".join(f"a{number}" for number in range(15_000))
    for source in (
        "from course_lib import (\n" * 7_000,
        "import course_lib." + "a" * 100_000,
        f"from course_lib import {names}",
    ):
        assert len(key_of("0.1", source)) == 64


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["x" + " " * 190_000 + "x", r"\begin{a}" * 20_000, "![a](attachment:a)", "![a](attachment:a)\n" * 9],
)
def test_a_text_that_does_not_come_out_is_shown_as_typed(text: str) -> None:
    assert harmless(text) == as_typed(text)


@pytest.mark.slow
@pytest.mark.everyday
def test_one_such_text_costs_the_others_nothing() -> None:
    texts = [("markdown", "**right**", {}), ("markdown", r"\begin{a}" * 20_000, {}), ("code", "x = 1", {})]
    assert come_out(texts) == [True, False, True]  # type: ignore[arg-type]


def test_a_pasted_image_stays_and_what_only_says_it_is_one_goes(tmp_path: Path) -> None:
    notebook = release()
    attachments = {
        "a.png": {"image/png": PIXEL},
        "b.png": {"text/html": "<script>"},
        "c.png": {"image/png": "<b>"},
    }
    notebook["cells"].append(
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": "![](attachment:a.png)",
            "attachments": attachments,
        }
    )
    hand_in(tmp_path, "ada", LESSON.slug, lambda *_: None, notebook)
    folder = tmp_path / "submitted" / "ada" / LESSON_00
    (folder / f"{LESSON_00}.ipynb").write_text(json.dumps(notebook))
    (kept,) = [each for each in read_submission(tmp_path, "ada", LESSON).cells if "attachments" in each]
    assert kept["attachments"] == {"a.png": {"image/png": PIXEL}}
    assert come_out([("markdown", kept["source"], kept["attachments"])]) == [True]


def test_of_many_small_things_no_more_is_read_than_of_few_large_ones(tmp_path: Path) -> None:
    def put(folder: Path, slug: str, notebook: dict[str, Any]) -> None:
        images = {f"{number:x}.png": {"image/png": ""} for number in range(50_000)}
        images = {"\ud800.png": {"image/png": ""}, "a" * 1_000: {"image/png": ""}} | images
        many = {"cell_type": "markdown", "metadata": {}, "source": "x", "attachments": images}
        unseen = [
            {"cell_type": "markdown", "metadata": {}, "source": "\U000e0001" * 190_000} for _ in range(24)
        ]
        made = notebook | {"cells": [*notebook["cells"], many, *unseen]}
        (folder / f"{slug}.ipynb").write_text(json.dumps(made), encoding="utf-8")

    hand_in(tmp_path, "ada", LESSON.slug, put, release())
    found = read_submission(tmp_path, "ada", LESSON)
    assert sum(len(cell.get("attachments", {})) for cell in found.cells) == 5_000
    assert sum(len(printable(cell["source"])) for cell in found.cells) <= 5_000_000
    stage(found, tmp_path / "none", tmp_path / "staged", LESSON)
    assert list(found.sources) == ["0.1"] and "more than 5,000,000 characters" in found.problems[0]


def honest(course: Course) -> None:
    """Four students without fault, one of whom pasted a picture."""
    solved = course.notebook("source", LESSON_00)
    course.submit("right", LESSON_00, solved)
    image = nbformat.v4.new_markdown_cell("My plot: ![image.png](attachment:image.png)")
    image["attachments"] = {"image.png": {"image/png": PIXEL}}
    solved.cells.append(image)
    course.submit("pasted-an-image", LESSON_00, solved)
    course.submit("stub", LESSON_00, course.notebook("release", LESSON_00))
    wrong = course.notebook("source", LESSON_00)
    mistake = cell(wrong, "exercise-0-1")
    mistake.source = mistake.source.replace("def ", "def  if ", 1)
    course.submit("wrong", LESSON_00, wrong)


def graded(course: Course) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "grade", "00", "--json"],
        cwd=course.root,
        env=course.environment(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ran.returncode in (0, 1) and "Traceback" not in ran.stderr, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@LINUX
@pytest.mark.slow
@pytest.mark.everyday
@pytest.mark.timeout(1200)
def test_a_class_with_all_of_them_is_graded_and_gets_feedback(tmp_path: Path) -> None:
    course = Course(tmp_path, LESSON_00)
    honest(course)
    names = {kind.replace(" ", "-").replace(":", "").replace(",", ""): put for kind, put in KINDS.items()}
    for student, put in names.items():
        hand_in(course.root, student, LESSON_00, put, release())
    for name in NAMES:
        hand_in(course.root, name, LESSON_00, KNOWN["magics"], release())
    (course.root / "submitted" / "near" / LESSON_00.upper()).mkdir(parents=True)
    found = graded(course)
    assert found["graded"] >= len(HONEST) + len(names)
    assert {name: found["students"][name]["score"] for name in HONEST} == HONEST
    for name in names:
        assert found["students"][name]["score"] == 0.0 and not found["students"][name]["error"], name
    told = [each for name, each in found["students"].items() if each["error"]]
    assert len(told) == len(NAMES) and all("rename it" in each["error"] for each in told)

    course.nbgrader("generate_feedback", LESSON_00)
    for name in ("right", "pasted-an-image", "environments", "spaces-in-a-text", "colours", "magics"):
        page = course.feedback(name, LESSON_00)
        assert len(page) < 5_000_000, name
    assert f"data:image/png;base64,{PIXEL}" in course.feedback("pasted-an-image", LESSON_00)

    command = [sys.executable, "-m", "autograder.cli.main", "report", "00", "--json"]
    ran = subprocess.run(
        command, cwd=course.root, env=course.environment(), capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert {
        name: each["score"] for name, each in json.loads(ran.stdout)["students"].items() if name in HONEST
    } == HONEST


@LINUX
@pytest.mark.slow
@pytest.mark.further
@pytest.mark.timeout(1200)
def test_stock_nbgrader_goes_on_behind_them(tmp_path: Path) -> None:
    course = Course(tmp_path, LESSON_00)
    honest(course)
    for kind in ("environments", "spaces in a text", "magics", "garbage for a time", "a lost attachment"):
        hand_in(course.root, kind.replace(" ", "-"), LESSON_00, KINDS[kind], release())
    (course.root / "submitted" / "right" / LESSON_00 / "more.txt").write_text(os.linesep)
    said = course.nbgrader("autograde", LESSON_00, fails=True)  # for the one whose time it cannot read
    assert "for student 'garbage-for-a-time'" in said and said.count("for student '") == 1
    for name, score in (HONEST | {"environments": 0.0, "magics": 0.0, "a-lost-attachment": 0.0}).items():
        assert course.scores(name, LESSON_00) == {"check-0-1": score}
