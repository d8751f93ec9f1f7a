"""The registry of lessons: what each exercise is called, what it is worth and how it is checked."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autograder.engine.job import Job

Kind = Literal["property", "count", "speed"]
LOW_PRECISION = ("autocast", "torch.bfloat16", "torch.half", "torch.set_autocast_enabled")
"""What an exercise `allows` that asks for 16-bit numbers."""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One graded exercise.

    Attributes:
        id: for instance "1.1"; the part before the dot is the lesson's number.
        entry: name of the function or class that the cell defines.
        max_score: points for a pass.
        clock_free_score: points that rest on properties and counts; what an inconclusive timing still earns.
        check: returns when the solution is right, raises what `autograder.engine.job` defines when it is not.
        reference: a right and fast solution made of `course_lib`, which `workbook calibrate` measures; "" for none.
        allows: means such as "os.fsync" that it asks for: elsewhere a cell that uses them is looked at by a person.
    """

    id: str
    title: str
    entry: str
    max_score: int
    clock_free_score: int
    kinds: tuple[Kind, ...]
    check: Callable[[Job], None]
    reference: str = ""
    allows: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson's exercises in order, and the harness that runs around a solution in the sandbox."""

    id: str
    slug: str
    title: str
    harness: str
    exercises: tuple[Exercise, ...]


def lesson_ids() -> list[str]:
    """The lessons that exist, in order: "00", "01", …"""
    folder = Path(__file__).parents[1] / "lessons"
    return sorted(path.name.removeprefix("lesson_") for path in folder.glob("lesson_*") if path.is_dir())


def harness_source(folder: Path) -> str:
    """The harness of a lesson as the one source that a worker gets: what all lessons share, `shared.py`, the others.

    What they import from each other is for people and editors: a worker cannot import this package, and in one
    source the names are there.
    """
    files = sorted(folder.glob("[!_]*.py"), key=lambda path: (path.stem != "shared", path.stem))
    files.insert(0, Path(__file__).parents[1] / "lessons" / "checking" / "harness_shared.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r"^from (__future__|autograder\.\S+) import (\([^)]*\)|.*)\n", "", text, flags=re.MULTILINE)


@functools.cache
def load_lesson(lesson_id: str) -> Lesson:
    """The lesson with this id. Raises `KeyError` with the known ids."""
    if lesson_id not in lesson_ids():
        raise KeyError(f"no lesson {lesson_id!r}; there are: {', '.join(lesson_ids())}")
    lesson = importlib.import_module(f"autograder.lessons.lesson_{lesson_id}").LESSON
    assert isinstance(lesson, Lesson)
    return lesson


def find_exercise(exercise_id: str) -> tuple[Lesson, Exercise]:
    """The exercise with this id and its lesson. Raises `KeyError` with the ids of that lesson."""
    number = exercise_id.partition(".")[0]
    lesson = load_lesson(number.zfill(2))
    for exercise in lesson.exercises:
        if exercise.id == exercise_id:
            return lesson, exercise
    known = ", ".join(exercise.id for exercise in lesson.exercises)
    raise KeyError(f"lesson {lesson.id} has no exercise {exercise_id!r}; it has: {known}")
