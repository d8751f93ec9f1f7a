"""The parts of the course, as the release's notebooks describe them: what is learnt, how long it takes, and where.

Nothing of it is typed twice: what a part teaches stands in the start page's table, its minutes in its first lines.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.common import START_PAGE, default_folder, release_folder
from autograder.course.lessons import lesson_ids, load_lesson

_GOAL = re.compile(r"^\| \[(\d\d) · .+?\]\(.+?\) \| (.+) \|$", re.MULTILINE)
_MINUTES = re.compile(r"^\*(?:About )?(?:\d+ to )?(\d+) minutes", re.MULTILINE)
_PLACE = re.compile(r"""^(?:@?(exercise|predict|quiz|exam))\(\s*["']([\w.]+)["']""", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A heading of a notebook, and the id of the cell that begins with it."""

    heading: str
    cell_id: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """A lesson, the exam or the project.

    Attributes:
        goal: what you learn, to follow "you learn to"; "" for the start page.
        minutes: about how long it takes, reading, exercises and quiz together.
        sections: by heading, and of each place that progress names ("exercise 1.3", "prediction 1a", "quiz") the one
            that it is in.
    """

    id: str
    title: str
    goal: str
    minutes: int
    sections: dict[str, Section]


@functools.cache
def parts() -> tuple[Part, ...]:
    """All parts in order.

    Raises:
        UserError: the release notebooks are not there.
    """
    start_page = "\n".join(map(_text, _cells(release_folder() / START_PAGE)))
    goals = dict(_GOAL.findall(start_page))
    return tuple(_part(lesson_id, goals.get(lesson_id, "")) for lesson_id in lesson_ids())


def title_of(lesson_id: str) -> str:
    """The title of a lesson; "lesson" for one that this version does not know."""
    return load_lesson(lesson_id).title if lesson_id in lesson_ids() else "lesson"


def lesson_href(lesson_id: str, cell_id: str = "") -> str:
    """Way from the notebook in the current folder to a lesson's, "" where it is not there.

    Args:
        cell_id: of the cell that JupyterLab opens it at; elsewhere it opens at its top.
    """
    if lesson_id not in lesson_ids():
        return ""
    slug = load_lesson(lesson_id).slug
    ways = (folder / f"{slug}.ipynb" for folder in _folders(slug))
    way = next((way.as_posix() for way in ways if way.is_file()), "")
    return f"{way}#cell-id={cell_id}" if way and cell_id else way


def answers_path(lesson_id: str) -> Path | None:
    """The answers file of a lesson in the learner's folder; None where there is none."""
    slug = load_lesson(lesson_id).slug
    folders = (*_folders(slug), default_folder() / slug)
    return next((path for folder in folders if (path := folder / f"{slug}_answers.json").is_file()), None)


def _folders(slug: str) -> tuple[Path, ...]:
    return Path(), Path("..", slug), Path(slug)


def _part(lesson_id: str, goal: str) -> Part:
    lesson = load_lesson(lesson_id)
    cells = _cells(release_folder() / lesson.slug / f"{lesson.slug}.ipynb")
    minutes = _MINUTES.search(_text(cells[0]))
    sections: dict[str, Section] = {}
    section = Section("", "")
    for cell in cells:
        for heading in _HEADING.findall(_text(cell)) if cell["cell_type"] == "markdown" else ():
            section = Section(heading, cell["id"])
            sections.setdefault(heading, section)
        for what, name in _PLACE.findall(_text(cell)) if cell["cell_type"] == "code" else ():
            place = {"exercise": f"exercise {name}", "predict": f"prediction {name}"}.get(what, "quiz")
            sections.setdefault(place, section)
    return Part(
        id=lesson_id,
        title=lesson.title,
        goal=goal,
        minutes=int(minutes[1]) if minutes else 0,
        sections=sections,
    )


def _cells(notebook: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return cells


def _text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])
