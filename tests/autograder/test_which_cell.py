"""What somebody did in a notebook is never dropped in silence: which of several cells of an exercise is judged."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbformat import NotebookNode

from autograder.course import Lesson, lesson_ids, load_lesson
from autograder.engine import exercise_cells
from autograder.engine.source.notebook import exercise_sources, sources_in, told_in
from autograder.grading.submissions import read_submission
from tests.autograder.nbgrader_course import LESSON_00, NOTEBOOKS, Course, cell
from tests.kernels import run_all_cells

LESSON = load_lesson("00")
STUB = '@exercise("0.1")\ndef speedup(baseline_seconds, candidate_seconds):\n    raise NotImplementedError\n'
SOLVED = """@exercise("0.1")
def speedup(baseline_seconds, candidate_seconds):
    if baseline_seconds <= 0 or candidate_seconds <= 0:
        raise ValueError
    return baseline_seconds / candidate_seconds
"""
OTHER = SOLVED.replace("    return", "    # again\n    return")
DRAFT = SOLVED.replace("    return", "    return (")
QUOTED = '# my first try\n"""\n@exercise("0.1")\ndef speedup():\n    pass\n"""\nx = (1'
BARE = SOLVED.partition("\n")[2]


def code(text: str) -> NotebookNode:
    return nbformat.v4.new_code_cell(text)


def texts(*cells: str, kind: str = "code") -> list[dict[str, str]]:
    return [{"cell_type": kind, "source": each} for each in cells]


#: What honest people have in a notebook: its cells, the index of the one that is judged, what is said of it.
HONEST: dict[str, tuple[list[dict[str, str]], int, str]] = {
    "plain": (texts(SOLVED), 0, ""),
    "a copy of the stub below": (texts(SOLVED, STUB), 0, ""),
    "a copy of the solution below": (texts(SOLVED, SOLVED), 1, ""),
    "an unfinished draft below": (texts(SOLVED, DRAFT), 0, "cell 2 holds other work"),
    "a word about it below": (texts(SOLVED, 'print(exercise("0.1"))'), 0, ""),
    "a call without a solution below": (
        texts(SOLVED, 'exercise("0.1")(lambda *a: None)'),
        0,
        "cell 2 holds other work",
    ),
    "no Python that quotes the mark": (texts(SOLVED, QUOTED), 0, "cell 2 holds other work"),
    "Python that quotes the mark": (texts(SOLVED, 'NOTES = """\n@exercise("0.1")\n"""'), 0, ""),
    "turned to Markdown": (texts(SOLVED, kind="markdown"), 0, "cell 1 is no code cell"),
    "turned to Markdown, and the stub": (
        texts(SOLVED, kind="markdown") + texts(STUB),
        0,
        "cell 1 is no code cell",
    ),
    "turned to raw": (texts(SOLVED, kind="raw"), 0, "cell 1 is no code cell"),
    "the mark lost": (texts(BARE), 0, "graded was cell 1, which defines speedup"),
    "the mark lost, and the stub": (texts(STUB, BARE), 1, "graded was cell 2, which defines speedup"),
    "a name for the number": (
        texts(SOLVED.replace('@exercise("0.1")', 'ID = "0.1"\n@exercise(ID)'), STUB),
        0,
        "",
    ),
    "a name for the mark": (
        texts("from autograder import exercise as mark\n" + SOLVED.replace("@exercise", "@mark")),
        0,
        "",
    ),
    "a mark that was made before": (
        texts(SOLVED.replace('@exercise("0.1")', 'mark = exercise("0.1")\n@mark'), STUB),
        0,
        "",
    ),
    "applied by a call": (texts(BARE + 'speedup = exercise("0.1")(speedup)'), 0, ""),
    "with magics": (texts("%%time\n" + SOLVED, STUB), 0, ""),
    "two solutions": (texts(SOLVED, OTHER), 1, "cell 1 holds other work on it: graded was cell 2"),
    "an attempt and a helper without the entry": (texts("x = 1", DRAFT, STUB), 1, ""),
}


def judged(cells: list[dict[str, str]], lesson: Lesson | None = LESSON) -> tuple[int, str]:
    chosen = exercise_cells({"cells": cells}, lesson)["0.1"]
    assert chosen.source == cells[chosen.place]["source"]
    return chosen.place, "; ".join(chosen.told("0.1", "speedup"))


@pytest.mark.parametrize("kind", HONEST)
def test_honest_work_is_judged_whatever_stands_beside_it(kind: str) -> None:
    cells, place, says = HONEST[kind]
    found, told = judged(cells)
    assert found == place and says in told and bool(says) == bool(told)


@pytest.mark.parametrize("kind", HONEST)
def test_check_and_class_choose_the_same_cell(tmp_path: Path, kind: str) -> None:
    cells, place, says = HONEST[kind]
    made = [{"metadata": {}, **each} for each in copy.deepcopy(cells)]
    folder = tmp_path / "submitted" / "ada" / LESSON.slug
    folder.mkdir(parents=True)
    path = folder / f"{LESSON.slug}.ipynb"
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    submission = read_submission(tmp_path, "ada", LESSON)
    assert submission.sources == {"0.1": cells[place]["source"]} == sources_in(path)
    assert any(says in line for line in submission.problems) or not says
    assert told_in(path) == [line for line in submission.problems if line.startswith("0.1: ")]


def test_what_only_speaks_of_an_exercise_is_not_taken() -> None:
    of_another_lesson = '@exercise("1.1")\ndef speedup(a, b):\n    return 1\n'  # it may be a slip
    assert judged(texts(STUB, of_another_lesson, "# def speedup(a, b)\n"))[0] == 1
    nested = "def other():\n    def speedup(a, b):\n        return 1\n"
    quoted = texts("As I did it:\n```python\n" + SOLVED + "```", kind="markdown")
    assert judged(texts(STUB, nested) + quoted) == (
        0,
        "0.1: cell 3 holds other work on it: graded was cell 1",
    )


@pytest.mark.parametrize("lesson_id", lesson_ids())
def test_nothing_that_we_hand_out_is_taken_for_a_solution(lesson_id: str) -> None:
    lesson = load_lesson(lesson_id)
    for step, standing in (("release", "STUB"), ("source", "SOLVED")):
        for path in (NOTEBOOKS / step / lesson.slug).glob("*.ipynb"):
            found = exercise_cells(json.loads(path.read_text(encoding="utf-8")), lesson)
            assert {each.standing.name for each in found.values()} <= {standing}
            assert not any(each.others for each in found.values())


def test_thousands_of_ids_in_a_cell_are_found_in_time() -> None:
    source = "\n".join(f'@exercise("1.{number}")\ndef f{number}(): pass' for number in range(3_000))
    assert len(exercise_sources({"cells": texts(source, STUB)})) > 2_900


def in_kernel(folder: Path, *sources: str) -> str:
    cells = ["from autograder import check, exercise", *sources, 'check("0.1")']
    notebook = nbformat.v4.new_notebook(cells=[code(each) for each in cells])
    run_all_cells(notebook, folder, seconds=120, allow_errors=True)
    return str(notebook.cells[-1].outputs)


@pytest.mark.slow
@pytest.mark.everyday
@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ((SOLVED, STUB), "Passed"),
        ((SOLVED, 'exercise("0.1")(lambda *a: None)'), "Passed"),
        ((BARE,), 'Write @exercise("0.1") above it'),
        ((SOLVED.replace('@exercise("0.1")', 'ID = "0.1"\n@exercise(ID)'),), "Passed"),
        (("x = 1",), "has not run"),
    ],
)
def test_the_check_in_a_kernel_chooses_the_same_cell(
    tmp_path: Path, sources: tuple[str, ...], says: str
) -> None:
    assert says in in_kernel(tmp_path, *sources)


@pytest.mark.slow
@pytest.mark.everyday
def test_in_a_notebook_a_cell_that_was_changed_is_what_it_is_now(tmp_path: Path) -> None:
    """JupyterLab and VS Code say which cell it is that runs: a later text of it takes the place of the one before."""
    manager, client = start_new_kernel(cwd=str(tmp_path))
    said: list[str] = []

    def run(cell_id: str, text: str) -> str:
        content = {"code": text, "silent": False, "store_history": True, "allow_stdin": False}
        message = client.session.msg("execute_request", content, metadata={"cellId": cell_id})
        client.shell_channel.send(message)
        said.clear()
        while True:
            reply = client.get_iopub_msg(timeout=120)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                said.append(str(reply["content"]))
                if reply["content"].get("execution_state") == "idle":
                    return "".join(said)

    try:
        run("setup", "from autograder import check, exercise")
        run("one", SOLVED)
        run("two", DRAFT)
        assert "Passed" in (shown := run("check", 'check("0.1")')) and "More than one cell" in shown
        run("two", "x = 1")
        assert "Passed" in (shown := run("check", 'check("0.1")')) and "More than one cell" not in shown
        run("one", DRAFT)
        assert "was never closed" in run("check", 'check("0.1")')
        run("one", STUB)
        assert "still the stub" in run("check", 'check("0.1")')
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def at_solution(notebook: NotebookNode, kind: str) -> None:
    """The class of the honest, as their notebooks come: what stands where the exercise was, and below."""
    cells, _, _ = HONEST[kind]
    place = notebook.cells.index(cell(notebook, "exercise-0-1"))
    made = []
    for number, each in enumerate(cells):
        new = copy.deepcopy(notebook.cells[place]) if number == 0 else code("")
        new.cell_type, new.source = each["cell_type"], each["source"]
        made.append(new)
    notebook.cells[place : place + 1] = made


@pytest.mark.slow
@pytest.mark.everyday
@pytest.mark.timeout(1200)
def test_a_class_of_the_honest_gets_its_points(tmp_path: Path) -> None:
    course = Course(tmp_path, LESSON_00)
    zero = {"an attempt and a helper without the entry"}
    names = {kind.replace(" ", "-").replace(",", ""): kind for kind in HONEST}
    for student, kind in names.items():
        notebook = course.notebook("release", LESSON_00)
        at_solution(notebook, kind)
        course.submit(student, LESSON_00, notebook)
    ran = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "grade", "00", "--json"],
        cwd=course.root,
        env=course.environment(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ran.returncode in (0, 1), ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout)["students"]
    for student, kind in names.items():
        assert (found[student]["score"] == 0.0) == (kind in zero), (student, found[student])
        assert bool(found[student]["look"]) == bool(HONEST[kind][2]), (student, found[student])
    course.nbgrader("generate_feedback", LESSON_00)
    assert "is no code cell: read as the code it was" in course.feedback("turned-to-raw", LESSON_00)
