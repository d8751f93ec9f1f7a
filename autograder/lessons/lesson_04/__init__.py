"""Lesson 04: checkpointing and early stopping."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_04 import references
from autograder.lessons.lesson_04.checks import atomic, budget, cadence, resume, stopping

FILE_CALLS = (
    *(
        "open",
        "os.open",
        "os.close",
        "os.fdopen",
        "os.write",
        "os.fsync",
        "os.fdatasync",
        "os.sync",
        "os.replace",
        "os.rename",
    ),
    *(
        "os.remove",
        "os.unlink",
        "os.O_RDONLY",
        "os.O_WRONLY",
        "os.O_RDWR",
        "os.O_CREAT",
        "os.O_TRUNC",
        "os.O_EXCL",
        "os.O_SYNC",
        "os.O_DSYNC",
        "os.O_DIRECTORY",
    ),
)

LESSON = Lesson(
    id="04",
    slug="04_checkpointing_and_early_stopping",
    title="Checkpointing and early stopping",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="4.1",
            title="Save and load everything",
            entry="RunCheckpoint",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=resume.check_checkpoint,
        ),
        Exercise(
            id="4.2",
            title="A save that survives kill -9",
            entry="save_atomically",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=atomic.check_save_atomically,
            allows=FILE_CALLS,
        ),
        Exercise(
            id="4.3",
            title="Early stopping, resumable",
            entry="EarlyStopping",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=stopping.check_early_stopping,
        ),
        Exercise(
            id="4.4",
            title="Stop early, keep the best",
            entry="train_with_early_stopping",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=budget.check_stop_early,
        ),
        Exercise(
            id="4.5",
            title="How often to save",
            entry="Cadence",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=cadence.check_cadence,
            reference=references.CADENCE,
        ),
    ),
)
