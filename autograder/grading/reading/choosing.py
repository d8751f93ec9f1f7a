"""Which of several files of a hand-in is graded, such as a copy that JupyterLab made beside the solved one.

What somebody did is never dropped in silence: a file that holds other work than the one that is graded is named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autograder.common import named
from autograder.course import Lesson
from autograder.engine import exercise_cells
from autograder.kept import lesson_of_answers, read_answers
from autograder.quizzes import has_quiz

Notebook = tuple[Path, list[dict[str, Any]]]
_STUB = "NotImplementedError"  # what each stub raises
_MOST_ANSWERS = 20  # files that are looked into
_MOST_NAMED = 5


def choose_notebook(
    found: list[Notebook], place: Path, lesson: Lesson, problems: list[str]
) -> Notebook | tuple[None, list[dict[str, Any]]]:
    """That with most exercises solved, then with most of them at all, then the one of the lesson's name.

    They are told by their text alone: Python reads the chosen one, here and where nbgrader has its copy of it.

    Args:
        found: path and clean cells of each.
        place: the folder of the hand-in.
        problems: gets a line for each other one with other code.
    """
    name = f"{lesson.slug}.ipynb"
    marked = {path: _of_lesson(cells, lesson) for path, cells in found}
    solved = {
        path: {id_: text for id_, text in each.items() if _STUB not in text} for path, each in marked.items()
    }
    best: Notebook | tuple[None, list[dict[str, Any]]] = max(
        found,
        key=lambda each: (len(solved[each[0]]), len(marked[each[0]]), each[0].name == name),
        default=(None, []),
    )
    if best[0] is None:
        problems.append("no notebook could be read")
        return best
    shown = _shown(best[0], place)
    if best[0].name != name:
        problems.append(f"the notebook is called {shown}: graded all the same")
    for path, each in solved.items():
        if others := [id_ for id_, text in each.items() if text != solved[best[0]].get(id_)]:
            problems.append(
                f"{_shown(path, place)} holds other code for {', '.join(others)}: graded was {shown}"
            )
    return best


def choose_answers(
    paths: list[Path], notebook: Path | None, place: Path, lesson: Lesson, problems: list[str]
) -> Path | None:
    """The lesson's own answers: those beside the notebook, under the name that this course gave them, or a copy that
    holds all of them and more. Without any there, the file with most; one that cannot be read where it is the only one,
    so that whatever speaks of it says the same. None where none is of this lesson.

    Args:
        paths: those whose name says that they hold answers.
        notebook: the one that is graded.
        place, problems: as of `choose_notebook`.
    """
    name = f"{lesson.slug}_answers.json"
    wanted = (notebook.parent if notebook else place) / name
    paths = sorted(paths, key=lambda path: (path != wanted, path.name != name))[:_MOST_ANSWERS]
    read = {path: read_answers(path) for path in paths}
    for path in paths:
        if problem := read[path].get("problem"):
            problems.append(f"{_shown(path, place)}: {problem}")
    good = {path: found for path, found in read.items() if "problem" not in found}
    own = {path: found for path, found in good.items() if lesson_of_answers(path, found) == lesson.id}
    if others := [_shown(path, place) for path in good if path not in own and good[path]]:
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        problems.append(f"not of this lesson, and not graded: {', '.join(others[:_MOST_NAMED])}{more}")
    if not own:
        damaged = next((path for path in paths if "problem" in read[path]), None)
        if has_quiz(lesson.id) and not damaged:
            problems.append(f"there is no answers file, {name}: of the quiz nothing was handed in")
        return damaged
    best = wanted if own.get(wanted) else max(own, key=lambda path: (len(own[path]), path == wanted))
    best = max(
        (path for path, found in own.items() if own[best].items() <= found.items()),
        key=lambda path: (len(own[path]), path == best),
    )
    shown = _shown(best, place)
    if best.name != name:
        problems.append(f"the answers file is called {shown}: graded all the same")
    for path, found in own.items():
        if any(own[best].get(question) != answer for question, answer in found.items()):
            problems.append(f"{_shown(path, place)} holds other answers: graded was {shown}")
    return best


def _of_lesson(cells: list[dict[str, Any]], lesson: Lesson) -> dict[str, str]:
    chosen = exercise_cells({"cells": cells}, lesson, by_text=True)
    return {each.id: chosen[each.id].source for each in lesson.exercises if each.id in chosen}


def _shown(path: Path, place: Path) -> str:
    return named(path.relative_to(place).as_posix())
