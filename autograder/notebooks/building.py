"""From a lesson's text to the notebooks: the instructor's source, the learner's release, the quiz.

    notebooks/lessons/NN_*.py     →  notebooks/source/<stem>/<stem>.ipynb    with solutions, ignored by git
                                  →  notebooks/release/<stem>/<stem>.ipynb   without them, committed
    notebooks/lessons/NN_quiz.toml  →  autograder/lessons/lesson_NN/quiz.json
                                       (an exam's from the texts in the folder that it names as well)
    all of a lesson                 →  autograder/course/course.json    titles, minutes, places, hints (`describing`)

A lesson's author writes no grading metadata: what a cell holds decides what it is.

    @exercise("1.1") … ### BEGIN SOLUTION … ### END SOLUTION   →  solution cell `exercise-1-1`
    check("1.1")                                               →  locked, graded cell `check-1-1`
    check_quiz("01")                                           →  locked, graded cell `quiz-01`

Every other cell stays plain, so that a learner may change it and play. The release is made by nbgrader's own
converter with the course's own settings, so `nbgrader generate_assignment` gives the same file. The same text
always gives the same bytes: cell ids come from grade ids and headings, never from chance or the clock.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.course import load_lesson
from autograder.notebooks.build_cells import mark_cells, name_cells
from autograder.notebooks.describing import course_json, describe
from autograder.quizzes import compile_bank
from course_lib.base import UserError

PACKAGE = Path(__file__).resolve().parents[1]
NOTEBOOKS = PACKAGE.parent / "notebooks"
LESSON_TEXTS = "[0-9][0-9]_*.py"
QUIZ_TEXTS = "[0-9][0-9]_quiz.toml"

_NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def build(
    only: Sequence[str] = (),
    *,
    check: bool = False,
    notebooks_dir: str | Path | None = None,
    package_dir: str | Path | None = None,
) -> list[str]:
    """Generate every notebook, quiz and the course's outline from the texts; return the files that changed.

    `only` names lessons by their numbers ("01"); without it all are made.

    With `check` nothing is written: the answer is the list of files that a build would change. A source
    notebook that does not exist (a fresh clone has none) is no drift; one that differs is, and so is a release
    that no text makes any more.
    Paths in the answer are relative to the folder above `notebooks_dir`, sorted.

    Raises:
        UserError: there are no lesson texts, or one of them cannot be built; names the file and the fix.
    """
    notebooks = Path(notebooks_dir or NOTEBOOKS).resolve()
    package = Path(package_dir or PACKAGE).resolve()
    texts = sorted((notebooks / "lessons").glob(LESSON_TEXTS))
    unknown = set(only) - {text.name[:2] for text in texts}
    if unknown:
        known = ", ".join(text.name[:2] for text in texts)
        raise UserError(f"no lesson {', '.join(sorted(unknown))}; there are: {known}")
    texts = [text for text in texts if not only or text.name[:2] in only]
    if not texts:
        raise UserError(f"no lesson texts in {notebooks / 'lessons'}: run this in a checkout of the project")
    sources = {text: _source(text) for text in texts}
    with tempfile.TemporaryDirectory(prefix="workbook-build-") as scratch:
        wanted = _generate(sources, notebooks, Path(scratch))
    outline = package / "course" / "course.json"
    described = {text.name[:2]: _described(text, notebook) for text, notebook in sources.items()}
    wanted[outline] = course_json(described, outline if only else None)
    quizzes = [text for text in (notebooks / "lessons").glob(QUIZ_TEXTS) if not only or text.name[:2] in only]
    wanted |= {package / "lessons" / f"lesson_{text.name[:2]}" / "quiz.json": _quiz(text) for text in quizzes}
    changed = [path for path, content in wanted.items() if _differs(path, content, check=check)]
    shown = functools.partial(_shown, root=notebooks.parent)
    if check:
        released = set((notebooks / "release").glob("[0-9][0-9]_*/*.ipynb"))
        orphans = set() if only else released - set(wanted)
        gone = [f"{shown(path)} (no lesson text makes it: delete it)" for path in orphans]
        return sorted([*map(shown, changed), *gone])
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wanted[path])
    return sorted(map(shown, changed))


def source_notebook(text: Path, points: Mapping[str, float]) -> NotebookNode:
    """The instructor's notebook of one lesson text, marked for nbgrader.

    Args:
        text: a jupytext percent file.
        points: maximum score of each exercise ("1.1") and of the quiz ("quiz-01").

    Raises:
        UserError: the text has a cell that cannot be marked.
    """
    try:
        notebook = nbformat.from_dict(jupytext.read(text, fmt="py:percent"))
        # A live jupytext pairing in the metadata would write answers back into a release: keep none of it.
        notebook.metadata = nbformat.from_dict(_NOTEBOOK_METADATA)
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        mark_cells(notebook, points)
        name_cells(notebook)
    except UserError as error:
        raise UserError(f"{text.name}: {error}") from None
    return notebook


def lesson_points(lesson_id: str, quiz_text: Path) -> dict[str, float]:
    """Maximum score of each exercise of a lesson, and under "quiz-01" of its quiz if it has one."""
    try:
        lesson = load_lesson(lesson_id)
    except KeyError as error:
        raise UserError(f"{error.args[0]}; add autograder/lessons/lesson_{lesson_id}") from None
    points = {exercise.id: float(exercise.max_score) for exercise in lesson.exercises}
    if quiz_text.exists():
        points[f"quiz-{lesson_id}"] = float(compile_bank(quiz_text).num_questions)
    return points


def _source(text: Path) -> NotebookNode:
    lesson_id = text.name[:2]
    return source_notebook(text, lesson_points(lesson_id, text.with_name(f"{lesson_id}_quiz.toml")))


def _described(text: Path, notebook: NotebookNode) -> dict[str, Any]:
    try:
        return describe(notebook)
    except UserError as error:
        raise UserError(f"{text.name}: {error}") from None


def _generate(sources: Mapping[Path, NotebookNode], notebooks: Path, scratch: Path) -> dict[Path, bytes]:
    """Source and release notebooks of all texts, made in `scratch`, keyed by where they belong."""
    for text, notebook in sources.items():
        target = scratch / "source" / text.stem / f"{text.stem}.ipynb"
        target.parent.mkdir(parents=True)
        nbformat.write(notebook, target)
    for text in sources:
        _generate_release(scratch, text.stem, notebooks / "nbgrader_config.py")
    made = [path for step in ("source", "release") for path in sorted((scratch / step).glob("*/*.ipynb"))]
    return {notebooks / path.relative_to(scratch): path.read_bytes() for path in made}


def _generate_release(course: Path, assignment: str, settings: Path) -> None:
    """What `nbgrader generate_assignment --no-db` does in the course folder `course`."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.converters.base import NbGraderException
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader(settings.name, path=str(settings.parent)).load_config()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.assignment_id = assignment
    config.SaveCells.enabled = False
    config.GenerateAssignment.no_database = True
    # The hook tidies the real release folder; a build must touch nothing but what it answers for.
    config.GenerateAssignment.pop("post_convert_hook", None)
    try:
        GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
    except NbGraderException as error:
        raise UserError(f"{assignment}: nbgrader could not make the release: {error}") from error


def _quiz(text: Path) -> bytes:
    return (
        f"{json.dumps(compile_bank(text).to_dict(), indent=1, ensure_ascii=False, sort_keys=True)}\n".encode()
    )


def _differs(path: Path, content: bytes, *, check: bool) -> bool:
    if not path.exists():
        return not (check and path.parent.parent.name == "source")
    return path.read_bytes() != content


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
