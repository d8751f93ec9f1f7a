"""A temporary nbgrader course made by the project's own build, and stock nbgrader run in it."""

from __future__ import annotations

import csv
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import autograder
from autograder.kept.answers import AnswersFile
from autograder.notebooks.building import build

NOTEBOOKS = Path(autograder.__file__).parents[1] / "notebooks"
LESSON_00 = "00_start_here"
LESSON_01 = "01_efficient_training_loops"


class Course:
    """A course folder with lessons' sources and releases in it; the assignments of `released` are generated.

    root: the folder, as `notebooks/` is in a checkout.
    data: what the checks keep (evidence, progress), apart from that of the machine's user.
    """

    def __init__(self, folder: Path, *released: str, measured: bool = True) -> None:
        self.root, self.data, self.is_measured = folder / "course", folder / "data", measured
        shutil.copytree(_template(measured, released), self.root)

    @classmethod
    def built(cls, folder: Path, *, measured: bool) -> Course:
        """A course built from nothing."""
        course = cls.__new__(cls)
        course.root, course.data, course.is_measured = folder / "course", folder / "data", measured
        shutil.copytree(NOTEBOOKS / "lessons", course.root / "lessons")
        shutil.copy(NOTEBOOKS / "nbgrader_config.py", course.root)
        build(notebooks_dir=course.root, package_dir=folder / "package")
        if not measured:  # nbgrader as it comes, knowing nothing of this project
            (course.root / "nbgrader_config.py").write_text(
                "c = get_config()\nc.GenerateAssignment.force = True\n", encoding="utf-8"
            )
        return course

    def nbgrader(self, *arguments: str, fails: bool = False) -> str:
        """Run `nbgrader ...` in the course folder and return all that it printed."""
        ran = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=self.root,
            env=self.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert (ran.returncode != 0) == fails, f"nbgrader {' '.join(arguments)}:\n{ran.stdout}"
        return ran.stdout

    def environment(self) -> dict[str, str]:
        """This process's environment, with `data` in the place of the user's own files.

        A measured course must work from a virtual environment that is not activated; plain nbgrader does not.
        """
        scripts = sysconfig.get_path("scripts")
        path = [part for part in os.environ["PATH"].split(os.pathsep) if part != scripts]
        if not self.is_measured:
            path.insert(0, scripts)
        return os.environ | {
            "WORKBOOK_DATA": str(self.data),
            "OMP_NUM_THREADS": "1",
            "PATH": os.pathsep.join(path),
        }

    def notebook(self, step: str, slug: str) -> NotebookNode:
        """The `source` or `release` notebook of a lesson."""
        return nbformat.read(self.root / step / slug / f"{slug}.ipynb", as_version=4)

    def submit(
        self, student: str, slug: str, notebook: NotebookNode, choices: Mapping[str, str] | None = None
    ) -> None:
        """Put a submission where the exchange would: a notebook and the choices of the quiz."""
        folder = self.root / "submitted" / student / slug
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{slug}.ipynb")
        for question_id, choice in (choices or {}).items():
            AnswersFile(folder / f"{slug}_answers.json", slug[:2]).save(question_id, {"choice": choice})

    def scores(self, student: str, slug: str) -> dict[str, float | None]:
        """The automatic score of each graded cell, as the gradebook has it."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            submission = gradebook.find_submission_notebook(slug, slug, student)
            return {grade.name: grade.auto_score for grade in submission.grades}

    def exported(self, slug: str) -> dict[str, float]:
        """Student → score of one assignment, from `nbgrader export`."""
        self.nbgrader("export")
        with (self.root / "grades.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return {
            row["student_id"]: float(row["score"])
            for row in rows
            if row["assignment"] == slug and row["score"]
        }

    def feedback(self, student: str, slug: str) -> str:
        """The HTML that a learner gets back."""
        return (self.root / "feedback" / student / slug / f"{slug}.html").read_text(encoding="utf-8")


_TEMPLATES = tempfile.TemporaryDirectory(prefix="course-templates-")


@functools.cache
def _template(measured: bool, released: tuple[str, ...]) -> Path:
    """The root of a course that others begin as copies of: building and generating take longer than most tests."""
    folder = Path(_TEMPLATES.name, "-".join(("measured" if measured else "plain", *released)))
    if not released:
        return Course.built(folder, measured=measured).root
    course = Course(folder, *released[:-1], measured=measured)
    course.nbgrader("generate_assignment", released[-1])
    return course.root


def cell(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    """The (last) cell with this grade id."""
    found = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
    return found[-1]


def with_solutions(release: NotebookNode, source: NotebookNode, *exercise_ids: str) -> NotebookNode:
    """A release notebook in which these exercises hold the reference solution."""
    for exercise_id in exercise_ids:
        grade_id = f"exercise-{exercise_id.replace('.', '-')}"
        cell(release, grade_id).source = cell(source, grade_id).source
    return release


def without(notebook: NotebookNode, *grade_ids: str) -> NotebookNode:
    """The notebook with these cells deleted."""
    gone = {id(cell(notebook, grade_id)) for grade_id in grade_ids}
    notebook.cells = [c for c in notebook.cells if id(c) not in gone]
    return notebook


def right_answers(lesson_id: str) -> dict[str, str]:
    """The key of each quiz question that has a fixed one; a measured question has none before it is measured.

    They are those of the second attempt: the better form counts.
    """
    from autograder.quizzes.grading import load_bank

    questions = load_bank(lesson_id).second_form().questions
    return {question.id: question.key for question in questions if question.key}
