"""Lesson 04: checkpointing and early stopping."""

from autograder.course import Clock, Exercise, Lesson

FILE_CALLS = (
    "open os.open os.close os.fdopen os.write os.fsync os.fdatasync os.sync os.replace os.rename os.remove os.unlink "
    "os.O_RDONLY os.O_WRONLY os.O_RDWR os.O_CREAT os.O_TRUNC os.O_EXCL os.O_SYNC os.O_DSYNC os.O_DIRECTORY"
).split()

LESSON = Lesson(
    id="04",
    slug="04_checkpointing_and_early_stopping",
    title="Checkpointing and early stopping",
    exercises=(
        Exercise(
            id="4.1",
            title="Save and load everything",
            entry="RunCheckpoint",
            check="checks.resume.check_checkpoint",
        ),
        Exercise(
            id="4.2",
            title="A save that survives kill -9",
            entry="save_atomically",
            check="checks.atomic.check_save_atomically",
            allows=tuple(FILE_CALLS),
        ),
        Exercise(
            id="4.3",
            title="Early stopping, resumable",
            entry="EarlyStopping",
            check="checks.stopping.check_early_stopping",
        ),
        Exercise(
            id="4.4",
            title="Stop early, keep the best",
            entry="train_with_early_stopping",
            kinds=("property", "count"),
            check="checks.budget.check_stop_early",
        ),
        Exercise(
            id="4.5",
            title="How often to save",
            entry="Cadence",
            kinds=("property", "count"),
            check="checks.cadence.check_cadence",
            clock=Clock(
                bar=1.0,
                baseline="baselines.CADENCE",
                reference="references.CADENCE",
                slow="mutants.cadence.SLOW_CADENCE",
                points=4,
            ),
        ),
    ),
)
