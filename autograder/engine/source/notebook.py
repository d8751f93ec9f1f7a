"""Finds the exercise cells of a notebook, whatever was moved, copied or renamed around them."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.common import ApartError, run_apart
from autograder.course import Lesson, find_exercise, load_lesson
from autograder.engine.source.choosing import Cells, Chosen, choose
from autograder.engine.source.marks import exercise_ids as exercise_ids
from autograder.engine.source.marks import is_stub as is_stub
from autograder.engine.source.marks import marked_ids as marked_ids
from autograder.engine.source.python import MAX_CELL as MAX_CELL
from autograder.engine.source.python import NO_PYTHON as NO_PYTHON
from autograder.engine.source.python import as_python as as_python
from autograder.engine.source.python import is_python as is_python
from course_lib.base import UserError


def read_notebook(path: Path) -> dict[str, Any]:
    """The notebook as nbformat's dict. Raises `UserError` for what is not one."""
    try:
        notebook = json.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a notebook, for it is not valid JSON ({error})") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UserError(f"{path}: not a notebook of format 4; open and save it in JupyterLab once")
    return notebook


def sources_in(path: Path) -> dict[str, str]:
    """`exercise_sources` of a notebook's file, read apart. Raises `UserError` for what cannot be read as one."""
    try:
        found: list[tuple[str, list[str]]] = apart_or_by_text(_sources_in, str(path))
    except ApartError as why:
        raise UserError(
            f"{path}: not read, for that {why}; hand in a notebook as JupyterLab saves it"
        ) from None
    return {mark: source for source, marks in found for mark in marks}


def told_in(path: Path) -> list[str]:
    """What a person should know of the cells that `sources_in` gives, a line each; nothing of what cannot be read."""
    try:
        found: list[str] = apart_or_by_text(_told_in, str(path))
    except (ApartError, UserError):
        return []
    return found


def apart_or_by_text(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function that reads cells gives, run apart. Its last argument is whether exercises are found by their
    text alone: so they are where one cell keeps Python's parser busy, and the others are judged all the same."""
    try:
        return run_apart(function, *arguments, False)
    except ApartError:
        return run_apart(function, *arguments, True)


def _sources_in(path: str, by_text: bool) -> list[tuple[str, list[str]]]:
    """Each cell once with its exercises: one cell may name thousands."""
    marks_of: dict[str, list[str]] = {}
    for mark, source in exercise_sources(
        read_notebook(Path(path)), by_text=by_text, name=Path(path).name
    ).items():
        marks_of.setdefault(source, []).append(mark)
    return list(marks_of.items())


def _told_in(path: str, by_text: bool) -> list[str]:
    notebook = read_notebook(Path(path))
    lesson = _lesson_in(notebook, Path(path).name)
    cells = exercise_cells(notebook, lesson, by_text=by_text)
    own = lesson.exercises if lesson else ()
    return [line for each in own if each.id in cells for line in cells[each.id].told(each.id, each.entry)]


def text_of(source: object) -> str:
    """A cell's text, which may stand there in lines; what is none counts as empty."""
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def exercise_sources(notebook: dict[str, Any], *, by_text: bool = False, name: str = "") -> dict[str, str]:
    """Exercise id → source of the cell that is judged: see `exercise_cells`, for the lesson that it seems to be.

    Args:
        name: of the file, which says the lesson where no cell does.
    """
    cells = exercise_cells(notebook, _lesson_in(notebook, name), by_text=by_text)
    return {mark: chosen.source for mark, chosen in cells.items()}


def exercise_cells(
    notebook: dict[str, Any], lesson: Lesson | None, *, by_text: bool = False
) -> dict[str, Chosen]:
    """Exercise id → the cell that is judged, of the lesson's exercises and of others that a cell is marked for.

    Args:
        by_text: do not ask Python, which one of the cells may keep busy.
    """
    return choose_cells(_cells(notebook), lesson, by_text=by_text)


def choose_cells(cells: Cells, lesson: Lesson | None, *, by_text: bool = False) -> dict[str, Chosen]:
    """`exercise_cells` of cells that stand in no file."""
    entries = {each.id: each.entry for each in (lesson.exercises if lesson else ())}
    for mark in {mark for _, text in cells for mark in marked_ids(text)} - entries.keys():
        with contextlib.suppress(KeyError):
            entries[mark] = find_exercise(mark)[1].entry
    return choose(cells, entries, by_text=by_text)


def _lesson_in(notebook: dict[str, Any], name: str) -> Lesson | None:
    """The lesson of most of its exercises, else that of the file's name; None where there is none."""
    marks = [mark for is_code, text in _cells(notebook) if is_code for mark in marked_ids(text)]
    prefixes = Counter(mark.partition(".")[0].zfill(2) for mark in marks)
    for lesson_id in (*(lesson_id for lesson_id, _ in prefixes.most_common()), name[:2]):
        with contextlib.suppress(KeyError):
            return load_lesson(lesson_id)
    return None


def _cells(notebook: dict[str, Any]) -> list[tuple[bool, str]]:
    cells = [cell if isinstance(cell, dict) else {} for cell in notebook["cells"]]
    return [(cell.get("cell_type") == "code", text_of(cell.get("source"))) for cell in cells]
