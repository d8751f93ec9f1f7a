"""The start page: one easy exercise."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson
from autograder.lessons.lesson_00 import checks

LESSON = Lesson(
    id="00",
    slug="00_start_here",
    title="Start here",
    harness=Path(__file__).with_name("harness.py").read_text(encoding="utf-8"),
    exercises=(
        Exercise(
            id="0.1",
            title="Speedup",
            entry="speedup",
            max_score=1,
            clock_free_score=1,
            kinds=("property",),
            check=checks.check_speedup,
        ),
    ),
)
