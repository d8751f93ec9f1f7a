"""Lesson 04: checkpointing and early stopping."""

from autograder.course import Clock, Exercise, Lesson

_OS_CALLS = (
    "open close dup fdopen read pread write fsync fdatasync sync replace rename remove unlink "
    "name fspath PathLike stat fstat chmod fchmod umask urandom mkdir rmdir makedirs "
    "access fsdecode fsencode ftruncate truncate link listdir lseek posix_fallocate pwrite scandir utime writev "
    "pwritev lstat SEEK_SET SEEK_CUR SEEK_END "
    "O_RDONLY O_WRONLY O_RDWR O_CREAT O_TRUNC O_EXCL O_SYNC O_DSYNC O_DIRECTORY O_CLOEXEC O_BINARY "
    "O_APPEND O_DIRECT O_LARGEFILE O_NOCTTY O_NOATIME O_NOFOLLOW O_NONBLOCK O_PATH O_TMPFILE"
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
            # A dtype of torch by its name, and what a NumPy array is read by.
            allows=(
                *FILE_CALLS,
                "getattr(torch, …)",
                "torch.bfloat16",
                "torch.float16",
                "torch.half",
                "__reduce__",
            ),
        ),
        Exercise(
            id="4.2",
            short_title="A save that survives kill -9",
            entry="save_atomically",
            check="checks.atomic.check_save_atomically",
            without_library=True,
            allows=FILE_CALLS,
        ),
        Exercise(
            id="4.3",
            short_title="Early stopping, resumable",
            entry="EarlyStopping",
            check="checks.stopping.check_early_stopping",
            without_library=True,
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
            allows=("clock",),
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
