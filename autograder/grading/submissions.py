"""Submissions as they really come, and as nbgrader can read them.

A submission is a folder `submitted/STUDENT/SLUG` that nbgrader's collector, a person or an unpacked zip made. What is
wrong with it costs that student what cannot be read, never anybody else's grade: it is read apart (`reading`),
`stage` writes a clean copy that is graded in its place, and `problems` says what a person should know. The folder
itself is never changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.common import ApartError, named, one_line
from autograder.course import Lesson
from autograder.engine import apart_or_by_text
from autograder.grading.reading import MAX_NOTEBOOK_BYTES as MAX_NOTEBOOK_BYTES
from autograder.grading.reading import OURS, read_folder

_SECRET = "submission_secret.txt"  # of nbgrader's exchange: where feedback goes back to
_MAX_SECRET_BYTES = 1_000
_MAX_NAME_BYTES = 200  # of a student's folder; a file system takes 255, and some is added to it
_NO_NAME = re.compile(r"[*?\[\]]|^\.|^\s|\s$")  # nbgrader looks for a student's folder by such a pattern
_MAX_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What one student handed in for one lesson.

    Attributes:
        folder: where it lies.
        cells: the notebook's cells as nbformat has them, clean, without outputs; empty where it could not be read.
        answers: the answers file, or None.
        sources: exercise id → source of its cell.
        problems: what is wrong with it, a line each, for the instructor and the student.
        stamp: when it came, as `timestamp.txt` says; "" where that says nothing.
    """

    student: str
    folder: Path
    cells: tuple[dict[str, Any], ...]
    answers: Path | None
    sources: dict[str, str]
    problems: tuple[str, ...]
    stamp: str = ""


def students_of(course: Path, slug: str) -> list[str]:
    """Everybody who handed something in for a lesson, in order."""
    # A link that leads nowhere is there as well.
    return [student.name for student in _students(course) if os.path.lexists(student / slug)]


def near_names(course: Path, slug: str) -> dict[str, str]:
    """Who handed in nothing for a lesson, but a folder that is called nearly as it: student → why it is not graded."""
    wanted, found = _letters(slug), dict[str, str]()
    for student in _students(course):
        if os.path.lexists(student / slug):
            continue
        with contextlib.suppress(OSError):
            near = [each.name for each in student.iterdir() if _letters(each.name).startswith(wanted)]
            if near:
                found[student.name] = f"there is a folder {named(min(near))}: rename it to {slug}"
    return found


def _students(course: Path) -> list[Path]:
    submitted = course / "submitted"
    return sorted(path for path in submitted.iterdir() if path.is_dir()) if submitted.is_dir() else []


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def unfit_name(student: str) -> str:
    """Why the name of a folder in `submitted` can be no student's id; "" where it can."""
    if len(os.fsencode(student)) > _MAX_NAME_BYTES:
        why = f"is longer than {_MAX_NAME_BYTES} bytes"
    elif not student.isprintable() or _NO_NAME.search(student):
        why = "holds a sign that nbgrader takes for another"
    else:
        return ""
    return f"the name of this folder in submitted {why}: rename it to the student's id"


def read_submission(course: Path, student: str, lesson: Lesson) -> Submission:
    """One student's submission; whatever is in the folder, this returns."""
    folder = course / "submitted" / student / lesson.slug
    problems: list[str] = []
    found: dict[str, Any] = {"cells": [], "answers": None, "sources": {}, "stamp": "", "problems": []}
    if folder.is_symlink() or folder.parent.is_symlink():  # it could lead to another student's work
        problems.append("the folder is a link: not read")
    elif not folder.is_dir():
        problems.append(f"{lesson.slug} is no folder: not read")
    else:
        try:
            found = apart_or_by_text(read_folder, str(folder), lesson.id)
        except ApartError as why:
            problems.append(f"what was handed in could not be read: that {why}")
    problems += found["problems"]
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS - 1 :] = [f"and {len(problems) - _MAX_PROBLEMS + 1} more like these"]
    return Submission(
        student=student,
        folder=folder,
        cells=tuple(found["cells"]),
        answers=Path(found["answers"]) if found["answers"] else None,
        sources=found["sources"],
        stamp=found["stamp"],
        problems=tuple(one_line(problem) for problem in problems),
    )


_sources: ContextVar[Mapping[str, str] | None] = ContextVar("sources", default=None)


@contextlib.contextmanager
def as_read(sources: Mapping[str, str]) -> Iterator[None]:
    """Have nbgrader grade one submission by these cells of its exercises, which were checked before. It is not read a
    second time: what is found then alone would be checked in this process, without limits, and told to nobody."""
    token = _sources.set(sources)
    try:
        yield
    finally:
        _sources.reset(token)


def sources_at_hand() -> Mapping[str, str] | None:
    """Exercise id → source of the submission that is graded now; None where nobody has read it before."""
    return _sources.get()


def stage(submission: Submission, release: Path, staged: Path, lesson: Lesson) -> None:
    """Write the copy that nbgrader grades: `staged/STUDENT/SLUG`, made anew.

    Args:
        release: the release notebook, which stands in for one that cannot be read: graded cells and no work.
    """
    target = staged / submission.student / lesson.slug
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if submission.cells:
        cells = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(submission.cells)]
        notebook = new_notebook(cells=[nbformat.from_dict(cell) for cell in cells])
    else:
        notebook = nbformat.read(release, as_version=4)
    if submission.problems:
        # As code: a file may be called what Markdown takes for a link.
        lines = "\n".join(f"    {line}" for line in submission.problems)
        about = new_markdown_cell(f"**About this submission**\n\n{lines}", metadata=OURS)
        notebook.cells.insert(0, about)
    nbformat.write(notebook, target / f"{lesson.slug}.ipynb")
    if submission.answers:
        shutil.copyfile(submission.answers, target / f"{lesson.slug}_answers.json")
    if submission.stamp:
        (target / "timestamp.txt").write_text(submission.stamp, encoding="utf-8")
    with contextlib.suppress(OSError):
        secret = submission.folder / _SECRET
        if secret.is_file() and not secret.is_symlink() and secret.stat().st_size <= _MAX_SECRET_BYTES:
            shutil.copyfile(secret, target / _SECRET)
