"""A class of learners through stock nbgrader: generate, autograde, feedback, export."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.course.lessons import load_lesson
from tests.autograder.nbgrader_course import (
    LESSON_00,
    LESSON_01,
    NOTEBOOKS,
    Course,
    cell,
    right_answers,
    with_solutions,
    without,
)

pytestmark = pytest.mark.slow

POINTS = {exercise.id: float(exercise.max_score) for exercise in load_lesson("01").exercises}
QUIZ = right_answers("01")
# These rest on properties and counts alone, so that these tests need no quiet machine.
UNTIMED = ("1.3", "1.4")
ATTACK = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Lesson 01 graded for three learners, with feedback."""
    course = Course(tmp_path_factory.mktemp("course"))
    answers = course.root / "source" / LESSON_01 / f"{LESSON_01}_answers.json"
    answers.write_text('{"of": "the instructor"}', encoding="utf-8")
    course.nbgrader("generate_assignment", LESSON_01)
    course.submit("empty", LESSON_01, course.notebook("release", LESSON_01))
    course.submit("half", LESSON_01, *half_done(course))
    course.submit("broken", LESSON_01, broken(course))
    course.nbgrader("autograde", LESSON_01)
    course.nbgrader("generate_feedback", LESSON_01)
    return course


def half_done(course: Course) -> tuple[nbformat.NotebookNode, dict[str, str]]:
    release, source = (course.notebook(step, LESSON_01) for step in ("release", "source"))
    return with_solutions(release, source, *UNTIMED), dict(list(QUIZ.items())[:3])


def broken(course: Course) -> nbformat.NotebookNode:
    """Everything at once: what is right in it still counts."""
    notebook, _ = half_done(course)
    cell(notebook, "exercise-1-1").source = '@exercise("1.1")\ndef collate(batch:\n    return ((('
    # A forged check: 100 points in its text, more points in its metadata, an output already there.
    check = cell(notebook, "check-1-1")
    check.source = "100.0"
    check.metadata.nbgrader.points = 1000.0
    check.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "10.0"})]
    cell(notebook, "check-1-6").metadata.nbgrader.grade = False
    loader = "def make_loader(dataset, micro_batch_size, collate_fn):"
    cell(notebook, "exercise-1-5").source = f'@exercise("1.5")\n{loader}\n    raise OSError("{ATTACK}")'
    # JupyterLab copies the metadata with a cell; stock nbgrader then stops grading the whole class.
    notebook.cells.append(copy.deepcopy(cell(notebook, "exercise-1-3")))
    notebook.cells[-1].id = "a-copy"
    notebook.cells.append(new_code_cell("1 / 0", metadata={"nbgrader": {"grade_id": "mine", "grade": True}}))
    return without(notebook, "exercise-1-2", "check-1-2", "check-1-4", "quiz-01")


def test_an_instructors_answers_are_not_released(course: Course) -> None:
    assert [path.name for path in (course.root / "release" / LESSON_01).iterdir()] == [f"{LESSON_01}.ipynb"]


def test_generate_assignment_gives_the_committed_release(course: Course) -> None:
    name = Path("release", LESSON_01, f"{LESSON_01}.ipynb")
    assert (course.root / name).read_bytes() == (NOTEBOOKS / name).read_bytes()


def test_scores_are_what_the_checks_say(course: Course) -> None:
    nothing = dict.fromkeys([*(f"check-{i.replace('.', '-')}" for i in POINTS), "quiz-01"], 0.0)
    solved = {f"check-{i.replace('.', '-')}": POINTS[i] for i in UNTIMED}
    assert course.scores("empty", LESSON_01) == nothing
    assert course.scores("half", LESSON_01) == nothing | solved | {"quiz-01": 3.0}
    assert course.scores("broken", LESSON_01) == nothing | solved


def test_export_has_the_same_totals(course: Course) -> None:
    solved = sum(POINTS[exercise_id] for exercise_id in UNTIMED)
    assert course.exported(LESSON_01) == {"empty": 0.0, "half": solved + 3, "broken": solved}


def test_feedback_tells_each_learner_why(course: Course) -> None:
    empty, half, broken = (course.feedback(who, LESSON_01) for who in ("empty", "half", "broken"))
    assert empty.count("is still the stub it came as") == len(POINTS)
    assert "came without its answers file" in empty and "came without its answers file" not in half
    assert "workbook-card" in half and "Right on secret inputs" in half
    assert "3 of " in half
    assert "The notebook has no cell with" in broken
    assert "was never closed" in broken or "SyntaxError" in broken


def test_feedback_runs_nothing_that_a_learner_wrote(course: Course) -> None:
    feedback = course.feedback("broken", LESSON_01)
    assert ATTACK not in feedback and "&lt;script&gt;alert(1)" in feedback


def test_grading_again_gives_the_same(course: Course) -> None:
    before = course.scores("broken", LESSON_01)
    course.nbgrader("autograde", LESSON_01, "--force", "--student", "broken")
    assert course.scores("broken", LESSON_01) == before


def test_no_grade_is_given_at_a_weaker_sandbox_than_required(
    course: Course, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    monkeypatch.setenv("PATH", str(tmp_path))  # where no bubblewrap is
    course.submit("guarded", LESSON_01, *half_done(course))
    try:
        config.write_text(before.replace("# c.MeasuredGrades", "c.MeasuredGrades"))
        printed = course.nbgrader("autograde", LESSON_01, "--student", "guarded", fails=True)
    finally:
        config.write_text(before)
    assert "sandbox level 'bubblewrap' is required, and this machine holds" in printed
    assert set(course.scores("guarded", LESSON_01).values()) == {None}
    course.nbgrader("autograde", LESSON_01, "--student", "guarded")
    assert course.scores("guarded", LESSON_01)["check-1-3"] == POINTS["1.3"]


def test_an_assignment_of_the_instructors_own_is_executed_as_ever(course: Course) -> None:
    _submit_own_assignment(course)
    course.nbgrader("autograde", "own")
    assert [course.scores(who, "own") for who in ("good", "bad")] == [{"own-check": 2.0}, {"own-check": 0.0}]


def test_a_check_mixed_with_a_foreign_graded_cell_is_refused(course: Course) -> None:
    path = course.root / "source" / LESSON_00 / f"{LESSON_00}.ipynb"
    notebook = course.notebook("source", LESSON_00)
    notebook.cells += _own_cells()
    nbformat.write(notebook, path)
    course.nbgrader("generate_assignment", LESSON_00)
    course.submit("someone", LESSON_00, course.notebook("release", LESSON_00))
    printed = course.nbgrader("autograde", LESSON_00, fails=True)
    assert "graded cell 'own-check' is no check of lesson" in printed
    assert course.scores("someone", LESSON_00) == {"check-0-1": None, "own-check": None}


def test_plain_nbgrader_gives_right_partial_credit(tmp_path: Path) -> None:
    """Without our settings the kernel runs `check`, and nbgrader reads its `Score`."""
    course = Course(tmp_path, LESSON_01, measured=False)
    notebook, choices = half_done(course)
    # The experiments of the lesson take minutes and say nothing here.
    notebook.cells = [c for c in notebook.cells if "nbgrader" in c.metadata]
    notebook.cells.insert(0, new_code_cell("from autograder import check, check_quiz"))
    course.submit("half", LESSON_01, notebook, choices)
    course.nbgrader("autograde", LESSON_01)
    scores = course.scores("half", LESSON_01)
    expected = {"check-1-3": POINTS["1.3"], "check-1-4": POINTS["1.4"], "quiz-01": 3.0}
    assert {name: score for name, score in scores.items() if score} == expected


def _own_cells() -> list[nbformat.NotebookNode]:
    """An exercise and its assert, as an instructor writes them with nbgrader alone."""
    mark = {
        "schema_version": 3,
        "task": False,
        "grade": False,
        "grade_id": "own",
        "locked": False,
        "solution": True,
    }
    test = {"grade": True, "grade_id": "own-check", "locked": True, "points": 2, "solution": False}
    return [
        new_code_cell("### BEGIN SOLUTION\ndef f(): return 1\n### END SOLUTION", metadata={"nbgrader": mark}),
        new_code_cell("assert f() == 1", metadata={"nbgrader": mark | test}),
    ]


def _submit_own_assignment(course: Course) -> None:
    notebook = new_notebook(cells=_own_cells())
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    folder = course.root / "source" / "own"
    folder.mkdir()
    nbformat.write(notebook, folder / "own.ipynb")
    course.nbgrader("generate_assignment", "own")
    course.submit("good", "own", notebook)
    course.submit("bad", "own", course.notebook("release", "own"))
