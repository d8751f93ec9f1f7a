"""The right solutions: the references, read from the lessons' own text, and others; and a machine without a clock."""

from __future__ import annotations

import functools
from pathlib import Path

import jupytext

from autograder.course import lesson_ids, load_lesson
from autograder.engine.calibration import Reached
from autograder.engine.source.notebook import exercise_sources

LESSONS = Path(__file__).resolve().parents[2] / "notebooks" / "lessons"


@functools.cache
def reference_sources(lesson_id: str) -> dict[str, str]:
    """Exercise id -> source of the reference's cell."""
    (path,) = LESSONS.glob(f"{lesson_id}_*.py")
    return exercise_sources(jupytext.read(path))


# Right solutions by people who had not seen the reference; a lesson's are written as its notebook's cells are.
ALTERNATIVE_TEXTS = sorted(Path(__file__).with_name("alternatives").glob("lesson_*.py"))


@functools.cache
def alternative_sources(lesson_id: str) -> dict[str, dict[str, str]]:
    """Name of a text of alternatives -> exercise id -> source of the cell."""
    return {
        path.stem: exercise_sources(jupytext.read(path))
        for path in ALTERNATIVE_TEXTS
        if path.stem.split("_")[1] == lesson_id
    }


def out_of_reach() -> dict[str, Reached]:
    """The calibration of a machine on which no reference reaches its bar: properties and counts decide alone."""
    entry = {"low": 0.9, "high": 1.1, "blocks": 8, "spread": 0.02, "of": "", "measured": "2026-11-22"}
    return {
        exercise.id: Reached(speedup=1.0, bar=exercise.clock.bar, **entry)  # type: ignore[arg-type]
        for lesson_id in lesson_ids()
        for exercise in load_lesson(lesson_id).exercises
        if exercise.clock
    }
