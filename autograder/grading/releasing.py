"""`workbook release`: a lesson into the folder that students get, and into nbgrader's gradebook.

nbgrader makes the release as ever, but in a folder of ours. It takes its place in `release` whole, and a graded one
only after `leaks.scan` has looked through it. What it needs besides stands in `source`, so that nbgrader's own
`generate_assignment`, and the button in formgrader, make the same again: the quiz's points and its keyless questions.

    COURSE/.workbook/releasing/SLUG   where a release is made
    COURSE/.workbook/withheld/SLUG    one that gave something away, for a look
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course import Lesson
from autograder.grading.gradebook import last_error, nbgrader_api
from autograder.grading.keys import keep, keys_path, own_bank
from autograder.grading.leaks import Leak, scan
from autograder.grading.marking import known_lesson
from autograder.grading.nbgrader import withhold_answers
from autograder.grading.units import FOLDER
from autograder.quizzes import Bank, has_quiz, keyless_name, load_bank
from course_lib.base import UserError, atomic_write_text

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
        leaks: what gives something away; then nothing is left in `release`.
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


def release(lesson_id: str, course: Path, *, graded: bool = False, bank: Path | None = None) -> Release:
    """Make a lesson's release, in place of the one that is there.

    Args:
        graded: with the instructor's own questions, and no key anywhere in it; else for practice, as the course comes.
        bank: the text of the questions, for a graded one; `banks/NN_quiz.toml` in the course by default.

    Raises:
        UserError: there is nothing to release, or the questions will not do; names the fix.
    """
    lesson = known_lesson(lesson_id)
    api = nbgrader_api(course)
    source = course / "source" / lesson.slug / f"{lesson.slug}.ipynb"
    if not source.is_file():
        raise UserError(
            f"there is no {source}; `workbook build {lesson.id}` makes it, in a checkout of the project"
        )
    if bank and not graded:
        raise UserError("--bank goes with --graded: a practice release asks the course's own questions")
    if bank and not has_quiz(lesson.id):
        raise UserError(f"lesson {lesson.id} has no quiz; release it without --bank")
    if not graded and (keys := keys_path(course, lesson.id)).exists():
        raise UserError(
            f"lesson {lesson.id} is released as graded; to release it for practice, move its keys away: {keys}"
        )
    own = own_bank(lesson, course, bank) if graded and has_quiz(lesson.id) else None
    notes = _prepare(source, lesson, own, course)
    made = course / FOLDER / "releasing" / lesson.slug
    shutil.rmtree(made, ignore_errors=True)
    api.coursedir.release_directory = f"{FOLDER}/releasing"
    outcome = api.generate_assignment(lesson.slug)
    if not outcome["success"]:
        why = last_error(outcome)
        fix = _CELLS_STAY if "Cannot add or remove cells" in why else ""
        raise UserError(f"{lesson.slug}: nbgrader could not make the release: {why}{fix}")
    withhold_answers(made.parent)
    leaks = scan(made, source, own) if graded else []
    target = course / FOLDER / "withheld" / lesson.slug if leaks else course / "release" / lesson.slug
    if own and not leaks:
        keep(own, course)
    if leaks:
        shutil.rmtree(course / "release" / lesson.slug, ignore_errors=True)
    _take_place(made, target)
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


def released_text(found: Release) -> str:
    """What `release` did, in lines."""
    if found.leaks:
        lines = [f"Not released, for it gives something away. What was made is in {found.folder}:"]
        return "\n".join([*lines, *(f"  {leak.file}: {leak.what}" for leak in found.leaks)])
    kind = "graded" if found.graded else "practice"
    quiz = f", of them {found.questions} for the quiz" if found.questions else ""
    lines = [f"Lesson {found.lesson}, {kind} release: {found.folder} ({found.points:g} points{quiz})"]
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
