"""Reads the folder that a student handed in, whatever lies there. It runs apart, and gives values of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.common import named, printable
from autograder.course import load_lesson
from autograder.engine import MAX_CELL, exercise_cells, text_of
from autograder.grading.reading.choosing import choose_answers, choose_notebook
from course_lib.base import UserError

MAX_NOTEBOOK_BYTES = 200_000_000
MAX_TEXT = 5_000_000  # characters of all cells together; a lesson with every exercise solved has some 200,000
STAMP = "timestamp.txt"
_MAX_STAMP_BYTES = 200
_MAX_CELLS = 5_000
_MAX_DEPTH = 20  # folders within each other
_MAX_IMAGES = 5_000_000  # characters of all images that were pasted into texts, in base64
_COST_OF_IMAGE = 1_000  # what each counts for at least: a million of nothing is much
_MAX_IMAGE_NAME = 200  # characters
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_MAX_DIGITS = 400  # Python reads some thousands at most; of no number in a notebook these matter
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_KINDS = ("code", "markdown", "raw")
OURS = {"training_workbook": "ours"}
"""Metadata of a cell that grading adds; of a hand-in's own cells none is kept."""
Cell = dict[str, Any]


def read_folder(folder: str, lesson_id: str, by_text: bool) -> dict[str, Any]:
    """The notebook's clean cells, the path of the answers file or None, exercise id → source, the time of the
    hand-in or "", and problems, a line each.

    Args:
        by_text: find exercises without asking Python: see `exercise_cells`.
    """
    place, lesson = Path(folder), load_lesson(lesson_id)
    problems: list[str] = []
    path, cells = choose_notebook(_notebooks(place, problems), place, lesson, problems)
    chosen = exercise_cells({"cells": cells}, lesson, by_text=by_text)
    own = {each.id: chosen[each.id] for each in lesson.exercises if each.id in chosen}
    for each in lesson.exercises:
        problems += chosen[each.id].told(each.id, each.entry) if each.id in own else []
    if path and lesson.exercises and not own:
        problems.append(f"none of its cells is an exercise of lesson {lesson.id}: is it the right notebook?")
    answers = choose_answers(_answers(place), path, place, lesson, problems)
    return {
        "cells": cells,
        "answers": str(answers) if answers else None,
        "sources": {exercise_id: cell.source for exercise_id, cell in own.items()},
        "stamp": _stamp(place / STAMP, problems),
        "problems": problems,
    }


def time_in(text: bytes) -> datetime | None:
    """The time, in UTC without saying so, that nbgrader's own time stamp tells; None for anything else."""
    from nbgrader.utils import parse_utc

    try:
        found = parse_utc(text.decode("utf-8").strip())
        return found if isinstance(found, datetime) else None
    except Exception:  # of what can go wrong in that parser there is no list
        return None


def _notebooks(folder: Path, problems: list[str]) -> list[tuple[Path, list[Cell]]]:
    """Every notebook in the folder that can be read, with its clean cells."""
    found = []
    for path in _paths(folder, ".ipynb"):
        name = named(path.name)
        if ".ipynb_checkpoints" in path.parts:
            continue
        if path.is_symlink():  # it could lead to another student's work
            problems.append(f"{name} is a link and no file: not read")
        elif not path.is_file():
            problems.append(f"{name} is a folder or a device and no file: not read")
        else:
            try:
                found.append((path, _clean_cells(_read(path)["cells"], name, problems)))
            except UserError as error:
                problems.append(f"{name}: {error}")
    return found


def _paths(folder: Path, ending: str, depth: int = 0) -> list[Path]:
    """What lies in the folder and below it under such a name, in order. A link is not followed."""
    with os.scandir(folder) as entries:
        found = list(entries)
    paths = [Path(entry.path) for entry in found if entry.name.endswith(ending)]
    for entry in found if depth < _MAX_DEPTH else ():
        if entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                paths += _paths(Path(entry.path), ending, depth + 1)
    return sorted(paths)


def _read(path: Path) -> dict[str, Any]:
    """A notebook of any encoding. Raises `UserError` without the path."""
    try:
        size = path.stat().st_size
        notebook = _parse(path.read_bytes()) if size <= MAX_NOTEBOOK_BYTES else None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})") from None
    except RecursionError:
        raise UserError("not valid JSON (it is nested too deep)") from None
    except ValueError as error:
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
        return json.loads(data.removeprefix(b"\xef\xbb\xbf"), parse_int=_number)
    except UnicodeDecodeError:
        return json.loads(data.decode("cp1252", "replace"), parse_int=_number)


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else 0


def _clean_cells(cells: list[Any], name: str, problems: list[str]) -> list[Cell]:
    if len(cells) > _MAX_CELLS:
        problems.append(f"{name} has {len(cells):,} cells; the first {_MAX_CELLS:,} were read")
    clean, left, left_of_images = [], MAX_TEXT, _MAX_IMAGES
    for cell in cells[:_MAX_CELLS]:
        if not isinstance(cell, dict):
            continue
        made = _clean(cell, left_of_images)
        if len(made["source"]) > MAX_CELL:
            problems.append(f"{name} has a cell of more than {MAX_CELL:,} characters; the first were read")
        left -= len(printable(made["source"]))  # as a page has it
        if left < 0:
            problems.append(f"{name} has more than {MAX_TEXT:,} characters in its cells; the first were read")
            break
        left_of_images -= sum(
            _cost(each) for image in made.get("attachments", {}).values() for each in image.values()
        )
        clean.append(made)
    return clean


def _clean(cell: dict[str, Any], most_of_images: int) -> Cell:
    """A valid cell with the text and the grade id of whatever stood there, without outputs. What else nbgrader's mark
    held is in the gradebook, from where `RestoreCells` takes it. A text that is too long is cut behind the limit."""
    kind = cell.get("cell_type", "code")
    text = text_of(cell.get("source", cell.get("input", "")))[: MAX_CELL + 1]
    text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be written
    made: Cell = {"cell_type": kind if kind in _KINDS else "raw", "metadata": {}, "source": text}
    mark = cell["metadata"].get("nbgrader") if isinstance(cell.get("metadata"), dict) else None
    grade_id = mark.get("grade_id") if isinstance(mark, dict) else None
    if isinstance(grade_id, str) and _GRADE_ID.fullmatch(grade_id):
        made["metadata"]["nbgrader"] = {"grade_id": grade_id}
    if kind == "code":
        made |= {"outputs": [], "execution_count": None}
    elif kind == "markdown" and (images := images_of(cell.get("attachments"), most_of_images)):
        made["attachments"] = images
    return made


def images_of(attachments: object, most: int = _MAX_IMAGES) -> dict[str, dict[str, str]]:
    """The images among the attachments of a text, such as a screenshot that was pasted, up to `most` characters."""
    found: dict[str, dict[str, str]] = {}
    for name, kinds in attachments.items() if isinstance(attachments, dict) else ():
        for kind, data in kinds.items() if isinstance(kinds, dict) else ():
            text = text_of(data)
            if kind in IMAGES and _cost(text) <= most and _BASE64.fullmatch(text):
                if len(name) <= _MAX_IMAGE_NAME and name.isprintable():  # half of a surrogate pair is not
                    found[name] = {kind: text}
                    most -= _cost(text)
                break
    return found


def _cost(image: str) -> int:
    return max(len(image), _COST_OF_IMAGE)


def _answers(folder: Path) -> list[Path]:
    return [
        path
        for path in _paths(folder, ".json")
        if "answers" in path.name and path.is_file() and not path.is_symlink()
    ]


def _stamp(path: Path, problems: list[str]) -> str:
    """A time stamp as nbgrader writes it."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        found = time_in(file.read(_MAX_STAMP_BYTES))
    if found is None:
        problems.append(f"{STAMP} holds no time: taken as handed in in time")
        return ""
    return f"{found.isoformat(sep=' ')} UTC"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
