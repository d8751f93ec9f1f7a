"""The parts of the course, as their texts describe them: what is learnt, how long it takes, and where."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from autograder.common import default_folder
from autograder.course.lessons import lesson_ids, load_lesson
from autograder.course.written import written


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
    """All parts in order."""
    goals = written()["00"]["goals"]
    return tuple(
        Part(
            id=lesson_id,
            title=said["title"],
            goal=goals.get(lesson_id, ""),
            minutes=said["minutes"],
            sections={place: Section(*section) for place, section in said["sections"].items()},
        )
        for lesson_id, said in written().items()
    )


def title_of(lesson_id: str) -> str:
    """The title of a lesson; "lesson" for one that this version does not know."""
    return str(written()[lesson_id]["title"]) if lesson_id in written() else "lesson"


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
