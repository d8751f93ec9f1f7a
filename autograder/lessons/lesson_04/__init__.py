"""Lesson 04: checkpointing and early stopping."""

from autograder.course import Clock, Exercise, Lesson

_OS_CALLS = (
    "open close fdopen write fsync fdatasync sync replace rename remove unlink "
    "name fspath PathLike stat fstat chmod fchmod umask urandom mkdir rmdir "
    "O_RDONLY O_WRONLY O_RDWR O_CREAT O_TRUNC O_EXCL O_SYNC O_DSYNC O_DIRECTORY O_CLOEXEC O_BINARY"
)
FILE_CALLS = ("open", *(f"os.{name}" for name in _OS_CALLS.split()))

LESSON = Lesson(
    id="04",
    slug="04_checkpointing_and_early_stopping",
    exercises=(
        Exercise(
            id="4.1",
            entry="RunCheckpoint",
            check="checks.resume.check_checkpoint",
            # Such as a table of torch's dtypes by name, and what a NumPy array is read by.
            allows=(*FILE_CALLS, "vars", "getattr", "torch.bfloat16", "torch.half", "__reduce__"),
        ),
        Exercise(
            id="4.2",
            short_title="A save that survives kill -9",
            entry="save_atomically",
            check="checks.atomic.check_save_atomically",
            allows=FILE_CALLS,
        ),
        Exercise(
            id="4.3",
            short_title="Early stopping, resumable",
            entry="EarlyStopping",
            check="checks.stopping.check_early_stopping",
        ),
        Exercise(
            id="4.4",
            entry="train_with_early_stopping",
            kinds=("property", "count"),
            check="checks.budget.check_stop_early",
        ),
        Exercise(
            id="4.5",
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
