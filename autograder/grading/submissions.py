"""Submissions as they really come, and as nbgrader can read them.

A submission is a folder `submitted/STUDENT/SLUG` that nbgrader's collector, a person or an unpacked zip made. What is
wrong with it costs that student what cannot be read, never anybody else's grade: `stage` writes a clean copy that is
graded in its place, and `problems` says what a person should know. The folder itself is never changed.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from autograder.course import Lesson
from autograder.engine import exercise_sources
from autograder.kept import read_answers
from course_lib.base import UserError

MAX_NOTEBOOK_BYTES = 200_000_000
_MAX_CELLS = 5_000
_OF_THE_EXCHANGE = ("timestamp.txt", "submission_secret.txt")  # when it came, and where feedback goes back to
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What one student handed in for one lesson.

    Attributes:
        folder: where it lies.
        cells: the notebook's cells, clean, without outputs; empty where it could not be read.
        answers: the answers file, or None.
        sources: exercise id → source of its cell.
        problems: what is wrong with it, a line each, for the instructor and the student.
    """

    student: str
    folder: Path
    cells: tuple[NotebookNode, ...]
    answers: Path | None
    sources: dict[str, str]
    problems: tuple[str, ...]


def students_of(course: Path, slug: str) -> list[str]:
    """Everybody who handed something in for a lesson, in order."""
    return sorted(path.parent.name for path in (course / "submitted").glob(f"*/{slug}") if path.is_dir())


def read_submission(course: Path, student: str, lesson: Lesson) -> Submission:
    """One student's submission; whatever is in the folder, this returns."""
    folder = course / "submitted" / student / lesson.slug
    problems: list[str] = []
    found = _notebooks(folder, problems)
    path, cells, num_cells = max(
        found, key=lambda each: _fit(each[0], each[1], lesson), default=(None, (), 0)
    )
    if path is None:
        problems.append("no notebook could be read")
    elif path.name != f"{lesson.slug}.ipynb":
        problems.append(f"the notebook is called {path.name}: graded all the same")
    if num_cells > _MAX_CELLS:
        problems.append(f"the notebook has {num_cells:,} cells; the first {_MAX_CELLS:,} were read")
    sources = exercise_sources({"cells": cells})
    if (
        path is not None
        and not any(exercise.id in sources for exercise in lesson.exercises)
        and lesson.exercises
    ):
        problems.append(f"none of its cells is an exercise of lesson {lesson.id}: is it the right notebook?")
    answers = _answers(folder, lesson, problems)
    return Submission(
        student=student,
        folder=folder,
        cells=cells,
        answers=answers,
        sources=sources,
        problems=tuple(problems),
    )


def stage(submission: Submission, release: Path, staged: Path, lesson: Lesson) -> None:
    """Write the copy that nbgrader grades: `staged/STUDENT/SLUG`, made anew.

    Args:
        release: the release notebook, which stands in for one that cannot be read: graded cells and no work.
    """
    target = staged / submission.student / lesson.slug
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if submission.cells:
        notebook = new_notebook(cells=[nbformat.from_dict(cell) for cell in submission.cells])
    else:
        notebook = nbformat.read(release, as_version=4)
    if submission.problems:
        lines = "\n".join(f"- {line}" for line in submission.problems)
        notebook.cells.insert(0, new_markdown_cell(f"**About this submission**\n\n{lines}"))
    nbformat.write(notebook, target / f"{lesson.slug}.ipynb")
    if submission.answers:
        shutil.copyfile(submission.answers, target / f"{lesson.slug}_answers.json")
    for name in _OF_THE_EXCHANGE:
        if (file := submission.folder / name).is_file() and not file.is_symlink():
            shutil.copyfile(file, target / name)


def _notebooks(folder: Path, problems: list[str]) -> list[tuple[Path, tuple[NotebookNode, ...], int]]:
    """Every notebook in the folder that can be read: its clean cells, and how many there are."""
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts or not path.is_file():
            continue
        if path.is_symlink():  # it could lead to another student's work
            problems.append(f"{path.name} is a link and no file: not read")
            continue
        try:
            cells = _read(path)["cells"]
        except UserError as error:
            problems.append(f"{path.name}: {error}")
        else:
            clean = tuple(_clean(cell) for cell in cells[:_MAX_CELLS] if isinstance(cell, dict))
            found.append((path, clean, len(cells)))
    return found


def _read(path: Path) -> dict[str, Any]:
    """A notebook of any encoding. Raises `UserError` without the path."""
    try:
        size = path.stat().st_size
        notebook = _parse(path.read_bytes()) if size <= MAX_NOTEBOOK_BYTES else None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"not valid JSON ({str(error)[:120]})") from None
    if size > MAX_NOTEBOOK_BYTES:
        raise UserError(
            f"{size / 1e6:,.0f} MB, more than the {MAX_NOTEBOOK_BYTES / 1e6:,.0f} MB that are read"
        )
    if isinstance(notebook, dict) and isinstance(notebook.get("worksheets"), list):  # format 3 and older
        sheets = [sheet for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        notebook["cells"] = [cell for sheet in sheets for cell in _list(sheet.get("cells"))]
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UserError("not a notebook")
    return notebook


def _parse(data: bytes) -> Any:
    """JSON is UTF-8, and some editors write UTF-16 or 32, which `json` sees; what is neither is an old code page."""
    try:
        return json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except UnicodeDecodeError:
        return json.loads(data.decode("cp1252", "replace"))


def _fit(path: Path, cells: tuple[NotebookNode, ...], lesson: Lesson) -> tuple[int, bool]:
    """Which of several notebooks is the lesson's: that with most of its exercises, then the one of its name."""
    known = {exercise.id for exercise in lesson.exercises}
    return len(known & exercise_sources({"cells": cells}).keys()), path.name == f"{lesson.slug}.ipynb"


def _clean(cell: dict[str, Any]) -> NotebookNode:
    """A valid cell with the text and the grade id of whatever stood there, without outputs. What else nbgrader's mark
    held is in the gradebook, from where `RestoreCells` takes it."""
    kind = str(cell.get("cell_type", "code"))
    source = cell.get("source", cell.get("input", ""))
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be written
    made = _NEW_CELL.get(kind, new_raw_cell)(text)
    mark = cell["metadata"].get("nbgrader") if isinstance(cell.get("metadata"), dict) else None
    name = mark.get("grade_id") if isinstance(mark, dict) else None
    if isinstance(name, str) and _GRADE_ID.fullmatch(name):
        made.metadata["nbgrader"] = nbformat.from_dict({"grade_id": name})
    return made


def _answers(folder: Path, lesson: Lesson, problems: list[str]) -> Path | None:
    wanted = folder / f"{lesson.slug}_answers.json"
    others = [
        path for path in sorted(folder.rglob("*answers*.json")) if path.is_file() and not path.is_symlink()
    ]
    path = wanted if wanted in others else next(iter(others), None)
    if path is None:
        return None
    if path != wanted:
        problems.append(f"the answers file is called {path.name}: graded all the same")
    if problem := read_answers(path).get("problem"):
        problems.append(f"{path.name}: {problem}")
        return None
    return path


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
