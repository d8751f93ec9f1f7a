"""`workbook release`: a lesson into the folder that students get, and into nbgrader's gradebook.

nbgrader makes the release as ever, but in a folder of ours. It takes its place in `release` whole, and a graded one
only after `leaks.scan` has looked through a draft, made without the gradebook: a refusal changes neither the release
that students have nor the gradebook nor `source`. What it needs besides stands in `source`, so that nbgrader's own
`generate_assignment`, and the button in formgrader, make the same again: the quiz's points and its keyless questions.

    COURSE/.workbook/releasing/SLUG   where a release is made
    COURSE/.workbook/withheld/SLUG    one that gave something away, for a look
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from autograder.common import in_points, one_line
from autograder.course import Lesson
from autograder.grading.gradebook import last_error, nbgrader_api
from autograder.grading.leaks import Leak, scan
from autograder.grading.marking import known_lesson
from autograder.grading.nbgrader import withhold_answers
from autograder.grading.terms import TABLE, keep, keys_path, own_bank
from autograder.grading.units import FOLDER
from autograder.quizzes import Bank, has_quiz, is_exam, keyless_name, load_bank, time_name
from course_lib.base import UserError, atomic_write_text

if TYPE_CHECKING:
    from nbgrader.apps.api import NbGraderAPI

_CELLS_STAY = "; keep the exercise, and set the points of its check to 0 instead"


@dataclass(frozen=True, kw_only=True)
class Release:
    """What `release` came to.

    Attributes:
        released: whether it may go to students.
        folder: where it is, or where it is withheld.
        questions: how many the quiz has.
        points: of exercises and quiz.
        keys: where they are kept; None where there are none.
        leaks: what gives something away; then `release` stays as it was.
        notes: lines that the instructor should read.
    """

    lesson: str
    graded: bool
    released: bool
    folder: str
    questions: int
    points: float
    keys: str | None
    leaks: tuple[Leak, ...]
    notes: tuple[str, ...]


def release(
    lesson_id: str,
    course: Path,
    *,
    graded: bool = False,
    bank: Path | None = None,
    minutes: float | None = None,
) -> Release:
    """Make a lesson's release, in place of the one that is there.

    Args:
        graded: with the instructor's own questions, and no key anywhere in it; else for practice, as the course comes.
        bank: the text of the questions, for a graded one; `banks/NN_quiz.toml` in the course by default.
        minutes: how long an attempt at an exam may take; by default no clock runs.

    Raises:
        UserError: there is nothing to release, or the questions will not do; names the fix. Then all is as it was.
    """
    lesson = known_lesson(lesson_id)
    nbgrader_api(course)  # says where there is no course
    source = course / "source" / lesson.slug / f"{lesson.slug}.ipynb"
    if not source.is_file():
        raise UserError(
            f"there is no {source}; `workbook build {lesson.id}` makes it, in a checkout of the project"
        )
    try:
        nbformat.read(source, as_version=4)
    except (ValueError, KeyError, AttributeError, nbformat.ValidationError) as error:
        what = one_line(str(error), 200)
        raise UserError(
            f"{source} is no notebook that can be read ({what}); put your copy of it back"
        ) from None
    if bank and not graded:
        raise UserError("--bank goes with --graded: a practice release asks the course's own questions")
    if bank and not has_quiz(lesson.id):
        raise UserError(f"lesson {lesson.id} has no quiz; release it without --bank")
    if not graded and (keys := keys_path(course, lesson.id)).exists():
        raise UserError(
            f"lesson {lesson.id} is released as graded; to release it for practice, move its keys away: {keys}"
        )
    if minutes is not None and not (0 < minutes < math.inf and has_quiz(lesson.id) and is_exam(lesson.id)):
        raise UserError("--minutes takes a number above 0, and goes with an exam, such as lesson 09")
    own = own_bank(lesson, course, bank) if graded and has_quiz(lesson.id) else None
    asked, clock = (source.with_name(name(lesson.id)) for name in (keyless_name, time_name))
    target, leaks = course / "release" / lesson.slug, list[Leak]()
    try:
        with _put_back_if_refused(source, asked, clock):
            notes = _prepare(source, lesson, own, course)
            clock.unlink(missing_ok=True)
            if minutes is not None:
                atomic_write_text(clock, json.dumps({"minutes": minutes}))
                clock.chmod(0o644)  # students read it
                notes.append(
                    f"A clock runs: {minutes:g} minutes an attempt, more for whom {TABLE} grants it."
                )
            if graded and (leaks := scan(draft := _made(course, lesson, is_draft=True), source, own)):
                _take_place(draft, target := course / FOLDER / "withheld" / lesson.slug)
                raise _Withheld
            made = _made(course, lesson)
            if own:
                keep(own, course)
            _take_place(made, target)
    except _Withheld:
        notes = ["The release that students have, the gradebook and the source are as they were."]
    return Release(
        lesson=lesson.id,
        graded=graded,
        released=not leaks,
        folder=str(target),
        questions=(own or load_bank(lesson.id)).num_questions if has_quiz(lesson.id) else 0,
        points=_points(target / f"{lesson.slug}.ipynb"),
        keys=str(keys_path(course, lesson.id)) if own and not leaks else None,
        leaks=tuple(leaks),
        notes=tuple(notes),
    )


class _Withheld(Exception):
    """It gives something away."""


@contextlib.contextmanager
def _put_back_if_refused(*paths: Path) -> Iterator[None]:
    """However the block fails, these files are then as they were."""
    before = {path: path.read_bytes() if path.exists() else None for path in paths}
    try:
        yield
    except BaseException:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != content:
                path.write_bytes(content)
        raise


def _made(course: Path, lesson: Lesson, *, is_draft: bool = False) -> Path:
    """The release, made by nbgrader in a folder of ours; a draft leaves the gradebook alone."""
    api: NbGraderAPI = nbgrader_api(course)
    api.coursedir.release_directory = f"{FOLDER}/releasing"
    if is_draft:
        api.config.GenerateAssignment.no_database = True
        api.config.SaveCells.enabled = False
    made = course / FOLDER / "releasing" / lesson.slug
    shutil.rmtree(made, ignore_errors=True)
    outcome = api.generate_assignment(lesson.slug)
    if not outcome["success"]:
        why = last_error(outcome)
        fix = _CELLS_STAY if "Cannot add or remove cells" in why else ""
        raise UserError(f"{lesson.slug}: nbgrader could not make the release: {why}{fix}")
    withhold_answers(made.parent)
    return made


def released_text(found: Release) -> str:
    """What `release` did, in lines."""
    if found.leaks:
        lines = [f"Not released, for it gives something away. What was made is in {found.folder}:"]
        return "\n".join([*lines, *(f"  {leak}" for leak in found.leaks), *found.notes])
    kind = "graded" if found.graded else "practice"
    quiz = f", of them {found.questions} for the quiz" if found.questions else ""
    lines = [f"Lesson {found.lesson}, {kind} release: {found.folder} ({in_points(found.points)}{quiz})"]
    if found.keys:
        lines += [
            f"The keys stay with you: {found.keys}. Students see their quiz points after grading.",
            "What the lesson itself says about its quiz was written for practice: read it, and change it in source.",
        ]
    elif found.questions:
        lines.append(
            "The keys of the quiz come with it, only lightly hidden. For grades that count: --graded"
        )
    return "\n".join([*lines, *found.notes])


def _prepare(source: Path, lesson: Lesson, own: Bank | None, course: Path) -> list[str]:
    """Write into `source` what this release asks; returns what the instructor should know."""
    if not has_quiz(lesson.id):
        return []
    notes, asked = [], source.with_name(keyless_name(lesson.id))
    if own is None:
        asked.unlink(missing_ok=True)
    else:
        questions = own.without_keys().to_dict()
        if (
            asked.exists()
            and any((course / "submitted").glob(f"*/{lesson.slug}"))
            and _changed(asked, questions)
        ):
            notes.append(
                "The questions changed after hand-in: check that the letters given still mean the same."
            )
        atomic_write_text(asked, json.dumps(questions, indent=1, ensure_ascii=False))
        asked.chmod(0o644)  # students read it
    notebook = nbformat.read(source, as_version=4)
    points = float((own or load_bank(lesson.id)).num_questions)
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("grade_id") == f"quiz-{lesson.id}" and mark.get("points") != points:
            mark["points"] = points
            atomic_write_text(source, nbformat.writes(notebook) + "\n")
    return notes


def _changed(path: Path, questions: object) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")) != questions)
    except (OSError, ValueError):
        return True


def _points(notebook: Path) -> float:
    cells = nbformat.read(notebook, as_version=4).cells
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    return float(sum(mark.get("points", 0) for mark in marks if mark.get("grade")))


def _take_place(made: Path, target: Path) -> None:
    """Move a folder to where another may be. Killed in the middle, it leaves none: release again."""
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    made.rename(target)
