"""The reference solutions, read from the lessons' own text: they stand there and nowhere else."""

from __future__ import annotations

import functools
from pathlib import Path

import jupytext

from autograder.engine.notebook_source import exercise_sources

LESSONS = Path(__file__).resolve().parents[2] / "notebooks" / "lessons"


@functools.cache
def reference_sources(lesson_id: str) -> dict[str, str]:
    """Exercise id -> source of the reference's cell."""
    (path,) = LESSONS.glob(f"{lesson_id}_*.py")
    return exercise_sources(jupytext.read(path))
