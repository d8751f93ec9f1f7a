"""The registry of lessons: what each exercise is worth and how it is checked."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autograder.course.written import written

Kind = Literal["property", "count"]
LESSONS = Path(__file__).parents[1] / "lessons"
LOW_PRECISION = (
    *("autocast", "torch.bfloat16", "torch.float16", "torch.half", ".bfloat16", ".half"),
    # What `torch.autocast` does itself.
    *("torch.set_autocast_enabled", "torch.set_autocast_dtype", "torch.clear_autocast_cache"),
    *("torch.autocast_increment_nesting", "torch.autocast_decrement_nesting"),
)
"""What an exercise `allows` that asks for 16-bit numbers."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What a timed exercise asks of the clock. Each source is named by its place in the lesson's folder.

    Attributes:
        bar: the speedup asked for, baseline time / candidate time.
        baseline: the frozen solution that the learner's is timed against, under the learner's name.
        reference: a right and fast solution made of `course_lib`, which `workbook calibrate` measures.
        slow: a solution that is right and too slow: it must never pass.
        points: what the clock decides of the exercise's points; the rest is earned without it.
    """

    bar: float
    baseline: str
    reference: str
    slow: str
    points: int


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One graded exercise.

    Attributes:
        id: for instance "1.1"; the part before the dot is the lesson's number.
        entry: name of the function or class that the cell defines.
        check: place of the function that returns when the solution is right and raises what `engine.job` defines when
            it is not.
        kinds: what is graded beside the time.
        clock: None where nothing is timed.
        max_score: points for a pass.
        allows: means that it asks for: elsewhere a person is asked to look at a cell that uses them. Each is as the
            reader names it, such as "os.fsync"; ".half" stands for that attribute of whatever it is of, and so does a
            method of torch's under its full name, such as "torch.Tensor.half"; "open" for files in every way,
            "multiprocessing" for other processes, "num_workers" for those of a `DataLoader`, "clock" for whatever
            tells the time.
        draws: what each student has of their own: name → what it is drawn from (`drawn`). Its cell says whose values it
            is for, `STUDENT = "ada"`, and the check has them as `job.drawn`.
        is_seeded: whether its results follow from a seed, today and tomorrow.
        without_library: whether it asks to build what `course_lib` has: a solution that imports anything of it, where
            the same stands under several names, is refused by name. All else that is installed may be used.
        short_title: for cards and tables, where its heading in the text is too long.
    """

    id: str
    entry: str
    check: str
    kinds: tuple[Kind, ...] = ("property",)
    clock: Clock | None = None
    max_score: int = 10
    allows: tuple[str, ...] = ()
    draws: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    is_seeded: bool = False
    without_library: bool = False
    short_title: str = ""

    @property
    def means(self) -> tuple[str, ...]:
        """`allows`, and a clock, unless a cell could tell by it what is counted from what is timed, or give another
        result tomorrow."""
        is_counted = "count" in self.kinds and self.clock is not None
        return self.allows if is_counted or self.is_seeded else (*self.allows, "clock")

    @property
    def title(self) -> str:
        """As the lesson's text heads it, unless a shorter one is given."""
        said = written().get(self.lesson_id, {"exercises": {}})["exercises"].get(self.id, {"title": ""})
        return self.short_title or str(said["title"])

    @property
    def lesson_id(self) -> str:
        return self.id.partition(".")[0].zfill(2)

    @property
    def clock_free_score(self) -> int:
        """Points that rest on properties and counts; what an inconclusive timing still earns."""
        return self.max_score - (self.clock.points if self.clock else 0)

    def part(self, place: str) -> Any:
        """What stands at a place of the lesson's folder: `part("checks.batches.check_collate")`.

        Checks are named and not imported: who only asks for titles and points loads none of them.
        """
        module, _, name = place.rpartition(".")
        return getattr(importlib.import_module(f"autograder.lessons.lesson_{self.lesson_id}.{module}"), name)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson's exercises in order."""

    id: str
    slug: str
    exercises: tuple[Exercise, ...] = ()

    @functools.cached_property
    def harness(self) -> str:
        """What runs around a solution in the sandbox, as the one source that a worker gets."""
        return harness_source(LESSONS / f"lesson_{self.id}" / "harness") if self.exercises else ""


def lesson_ids() -> list[str]:
    """The lessons that exist, in order: "00", "01", …"""
    return sorted(path.name.removeprefix("lesson_") for path in LESSONS.glob("lesson_*") if path.is_dir())


def has_references() -> bool:
    """Whether the references are installed: what students install has none (docs/grading.md)."""
    return any(LESSONS.glob("lesson_*/references.py"))


def harness_source(folder: Path) -> str:
    """The harness of a lesson as the one source that a worker gets.

    What its files import from each other is for people and editors: a worker cannot import this package, and in one
    source the names are there.
    """
    text = "".join(path.read_text(encoding="utf-8") for path in harness_files(folder))
    return re.sub(r"^from (__future__|autograder\.\S+) import (\([^)]*\)|.*)\n", "", text, flags=re.MULTILINE)


def harness_files(folder: Path) -> list[Path]:
    """Of which files a lesson's harness is made: what it takes of `checking`, its `shared.py`, the others."""
    own = sorted(folder.glob("[!_]*.py"), key=lambda path: (path.stem != "shared", path.stem))
    text = "".join(path.read_text(encoding="utf-8") for path in own)
    taken = re.findall(r"^from autograder\.lessons\.checking\.(harness_\w+) ", text, re.MULTILINE)
    return [LESSONS / "checking" / f"{name}.py" for name in sorted({"harness_shared", *taken})] + own


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
