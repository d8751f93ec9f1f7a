"""Lesson 01: efficient training loops."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_01 import references
from autograder.lessons.lesson_01.checks import batches, epochs, loops

LESSON = Lesson(
    id="01",
    slug="01_efficient_training_loops",
    title="Efficient training loops",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="1.1",
            title="Pad no more than you must",
            entry="collate",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=batches.check_collate,
            reference=references.COLLATE,
        ),
        Exercise(
            id="1.2",
            title="Like lengths together",
            entry="BucketBatchSampler",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=batches.check_bucket_sampler,
            reference=references.BUCKET_BATCH_SAMPLER,
        ),
        Exercise(
            id="1.3",
            title="An epoch that never waits for a number",
            entry="train_one_epoch",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=loops.check_train_one_epoch,
        ),
        Exercise(
            id="1.4",
            title="An evaluation that tells the truth",
            entry="evaluate",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=loops.check_evaluate,
        ),
        Exercise(
            id="1.5",
            title="A loader that hides the wait",
            entry="make_loader",
            max_score=10,
            clock_free_score=4,
            kinds=("property", "speed"),
            check=epochs.check_loader,
            reference=references.MAKE_LOADER,
        ),
        Exercise(
            id="1.6",
            title="Challenge: the whole loop",
            entry="fast_epoch",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=epochs.check_fast_epoch,
            reference=references.FAST_EPOCH,
        ),
    ),
)
