"""The start page: one easy exercise."""

from autograder.course import Exercise, Lesson

LESSON = Lesson(
    id="00",
    slug="00_start_here",
    exercises=(
        Exercise(
            id="0.1",
            entry="speedup",
            max_score=1,
            check="checks.ratio.check_speedup",
        ),
    ),
)
