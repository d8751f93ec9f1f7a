"""What the course's own code knows of a lesson's text, so that nobody types it twice: `course/course.json`.

Its title, minutes and goal, where its places are, and the titles and hints of its exercises. It is written by
`workbook build` and read by `autograder.course`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from course_lib.base import UserError

_TITLE = re.compile(r"^# (?:\d\d · )?(.+)$", re.MULTILINE)
_MINUTES = re.compile(r"^\*(?:About )?(?:\d+ to )?(\d+) minutes", re.MULTILINE)
_GOAL = re.compile(r"^\| \[(\d\d) · .+?\]\(.+?\) \| (.+) \|$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PLACE = re.compile(r"""^(?:@?(exercise|predict|diagnose|quiz|exam))\(\s*["']([\w.]+)["']""", re.MULTILINE)
_EXERCISE = re.compile(r"^### (\d+\.\d+) · (.+)$", re.MULTILINE)
_HINT = re.compile(r"<details><summary>(Hint.*?)</summary>\s*(.*?)\s*</details>", re.DOTALL)
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\n]*\)")


def describe(notebook: NotebookNode) -> dict[str, Any]:
    """What `course.json` holds of a lesson, as JSON values.

    `title`, `minutes`; of the start page the `goals` that its table gives the lessons; `sections`: by heading, and by
    each place in it ("exercise 1.3", "prediction 1a", "quiz"), the heading and the cell that begins with it;
    `exercises`: the `title` of each and its `hints`, title and text.

    Raises:
        UserError: the text does not say how it is called or how long it takes.
    """
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title, minutes = _TITLE.search(text), _MINUTES.search(text)
    if not title or not minutes:
        raise UserError('begin with a heading "# 01 · Its title" and a line "*About 90 minutes …"')
    goals = dict(_GOAL.findall(text))
    return {
        "title": title[1],
        "minutes": int(minutes[1]),
        **({"goals": goals} if goals else {}),
        "sections": _sections(notebook),
        "exercises": _exercises(text),
    }


def course_json(described: Mapping[str, dict[str, Any]], before: Path | None) -> bytes:
    """The file's content: these lessons by id, and beside them those of the file as it was `before`."""
    lessons = json.loads(before.read_text(encoding="utf-8")) if before and before.exists() else {}
    lessons.update(described)
    return f"{json.dumps(dict(sorted(lessons.items())), indent=1, ensure_ascii=False)}\n".encode()


def _sections(notebook: NotebookNode) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    section = ["", ""]
    for cell in notebook.cells:
        for heading in _HEADING.findall(cell.source) if cell.cell_type == "markdown" else ():
            section = [heading, cell.id]
            sections.setdefault(heading, section)
        for what, name in _PLACE.findall(cell.source) if cell.cell_type == "code" else ():
            place = {
                "exercise": f"exercise {name}",
                "predict": f"prediction {name}",
                "diagnose": f"prediction {name}",
            }.get(what, "quiz")
            sections.setdefault(place, section)
    return sections


def _exercises(text: str) -> dict[str, dict[str, Any]]:
    text = _LINK.sub(r"\1", text)  # links lead within the lesson; elsewhere they lead nowhere
    _, *parts = _EXERCISE.split(text)
    sections = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {number: {"title": title, "hints": _HINT.findall(part)} for number, title, part in sections}
