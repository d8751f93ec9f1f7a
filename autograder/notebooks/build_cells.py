"""What a cell of a lesson text is to nbgrader, and the stable id it gets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import nbformat
from nbformat import NotebookNode

from autograder.engine import exercise_ids
from course_lib.base import UserError

_GRADED_CELL = re.compile(r"""(check|check_quiz)\(\s*["']([\w.]+)["']\s*\)""")
_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"

# What an author may say about a cell; the rest of jupytext's metadata is about the text, not the notebook.
_KEPT_METADATA = ("jupyter", "nbgrader", "tags")
_SCHEMA_VERSION = 3


def mark_cells(notebook: NotebookNode, points: Mapping[str, float]) -> None:
    """Give each cell its nbgrader metadata, in place.

    Args:
        notebook: as jupytext reads it.
        points: maximum score of each exercise, and under "quiz-07" of the quiz.

    Raises:
        UserError: an exercise without a solution region, without points, without its check or twice;
            a solution region outside an exercise.
    """
    found: Counter[str] = Counter()
    for cell in notebook.cells:
        # nbgrader's checksum sees a trailing newline, jupytext drops it on the next round: have none.
        cell.source = cell.source.rstrip()
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in _KEPT_METADATA})
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        mark = _mark(cell, points)
        if mark is not None:
            cell.metadata.nbgrader = nbformat.from_dict(mark)
        if "nbgrader" in cell.metadata:
            found[cell.metadata.nbgrader.grade_id] += 1
        elif _BEGIN in cell.source or _END in cell.source:
            raise UserError(f"a solution region outside an @exercise cell: {_first_line(cell)!r}")
    _require_pairs(found, points)


def name_cells(notebook: NotebookNode) -> None:
    """Give each cell a stable id, in place: its grade id, else the heading above it and a number."""
    section, taken, count = "top", {_grade_id(cell) for cell in notebook.cells}, Counter[str]()
    for cell in notebook.cells:
        headings = re.findall(r"^#+\s+(.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and headings:
            section = _slug(headings[-1])
        name = _grade_id(cell)
        while not name or (not _grade_id(cell) and name in taken):
            count[section] += 1
            name = f"{section}-{count[section]}"
        taken.add(name)
        cell.id = name


def _mark(cell: NotebookNode, points: Mapping[str, float]) -> dict[str, object] | None:
    """The nbgrader metadata of a cell, or None for a plain one (or one that its author marked by hand)."""
    if cell.cell_type != "code" or "nbgrader" in cell.metadata:
        return None
    code = "\n".join(line for line in cell.source.splitlines() if not line.lstrip().startswith("#")).strip()
    if exercises := exercise_ids(cell.source):
        _require_solution(cell, exercises)
        return _metadata(f"exercise-{_dashed(exercises[0])}")
    if match := _GRADED_CELL.fullmatch(code):
        is_quiz = match[1] == "check_quiz"
        name = f"quiz-{match[2]}" if is_quiz else match[2]
        if name not in points:
            known = ", ".join(sorted(points)) or "none"
            what = name if is_quiz else f"exercise {name}"
            raise UserError(f"{what} is graded here but has no points: the lesson's code knows {known}")
        return _metadata(name if is_quiz else f"check-{_dashed(name)}") | {"points": points[name]}
    return None


def _metadata(grade_id: str) -> dict[str, object]:
    is_graded = not grade_id.startswith("exercise-")
    return {
        "grade": is_graded,
        "grade_id": grade_id,
        "locked": is_graded,
        "schema_version": _SCHEMA_VERSION,
        "solution": not is_graded,
        "task": False,
    }


def _require_solution(cell: NotebookNode, exercises: list[str]) -> None:
    if len(exercises) > 1:
        raise UserError(f"exercises {', '.join(exercises)} share a cell: give each its own")
    marks = [mark for line in cell.source.splitlines() for mark in (_BEGIN, _END) if mark in line]
    if not marks or marks != [_BEGIN, _END] * (len(marks) // 2):
        raise UserError(
            f"exercise {exercises[0]}: put its solution between {_BEGIN!r} and {_END!r}, each on its own line"
        )


def _require_pairs(found: Counter[str], points: Mapping[str, float]) -> None:
    for grade_id, times in found.items():
        if times > 1:
            raise UserError(f"{times} cells are {grade_id!r}: keep one")
    for name in points:
        is_quiz = name.startswith("quiz")
        for grade_id in (name,) if is_quiz else (f"exercise-{_dashed(name)}", f"check-{_dashed(name)}"):
            if grade_id not in found:
                what = "check_quiz cell" if is_quiz else f"@exercise or check cell for {name}"
                raise UserError(f"no cell {grade_id!r}: add the {what} that the lesson's code expects")


def _grade_id(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def _first_line(cell: NotebookNode) -> str:
    return next((line for line in cell.source.splitlines() if line.strip()), "")


def _slug(heading: str) -> str:
    words = re.findall(r"[a-z0-9]+", heading.lower()) or ["section"]
    kept = [word for i, word in enumerate(words) if len("-".join(words[: i + 1])) <= 40]
    return "-".join(kept) or words[0][:40]  # an nbformat cell id has at most 64 characters


def _dashed(exercise_id: str) -> str:
    return exercise_id.replace(".", "-")
