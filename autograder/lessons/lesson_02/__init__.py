"""Lesson 02: mixed precision."""

from pathlib import Path

from autograder.course.lessons import LOW_PRECISION, Exercise, Lesson, harness_source
from autograder.lessons.lesson_02 import references
from autograder.lessons.lesson_02.checks import epochs, mixed, policy, steps

LESSON = Lesson(
    id="02",
    slug="02_mixed_precision",
    title="Mixed precision",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="2.1",
            title="Resolve a precision, with the reason",
            entry="resolve_precision",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=policy.check_resolve_precision,
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.2",
            title="An fp16 step in the right order",
            entry="Fp16Trainer",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=steps.check_fp16_trainer,
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.3",
            title="Autocast around forward and loss, and nothing else",
            entry="mixed_step",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=mixed.check_mixed_step,
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.4",
            title="An epoch in bf16, faster where the hardware has it",
            entry="train_epoch",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=epochs.check_train_epoch,
            reference=references.TRAIN_EPOCH,
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.5",
            title="Find and repair the operation that breaks",
            entry="SturdyClassifier",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=epochs.check_sturdy_classifier,
            allows=LOW_PRECISION,
        ),
    ),
)
