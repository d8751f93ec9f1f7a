"""The mini project: a classifier under a budget, on a table of one's own."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_10 import references
from autograder.lessons.lesson_10.checks import decisions, tables, training

LESSON = Lesson(
    id="10",
    slug="10_mini_project",
    title="Mini project",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="10.1",
            title="From a table to two sets of samples",
            entry="prepare",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=tables.check_prepare,
            allows=("open",),  # the exercise reads a file
        ),
        Exercise(
            id="10.2",
            title="The training, whole",
            entry="train_classifier",
            max_score=20,
            clock_free_score=12,
            kinds=("property", "speed"),
            check=training.check_train_classifier,
            reference=references.TRAIN_CLASSIFIER,
        ),
        Exercise(
            id="10.3",
            title="The winner of the trials",
            entry="choose",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=decisions.check_choose,
        ),
        Exercise(
            id="10.4",
            title="The report",
            entry="summarise",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=decisions.check_summarise,
        ),
    ),
)
