"""Lesson 03: batch size and gradient accumulation."""

from pathlib import Path

from autograder.course.lessons import LOW_PRECISION, Exercise, Lesson, harness_source
from autograder.lessons.lesson_03 import references
from autograder.lessons.lesson_03.checks import accumulation, budget, memory, scaling

LESSON = Lesson(
    id="03",
    slug="03_batch_size_and_accumulation",
    title="Batch size and gradient accumulation",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="3.1",
            title="Many small batches, one large gradient",
            entry="train_accumulated",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=accumulation.check_train_accumulated,
        ),
        Exercise(
            id="3.2",
            title="The largest micro-batch that fits",
            entry="largest_micro_batch_size",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=memory.check_largest_micro_batch_size,
        ),
        Exercise(
            id="3.3",
            title="Everything in its place",
            entry="train_accumulated_mixed",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=accumulation.check_train_accumulated_mixed,
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="3.4",
            title="Eight times the batch, as good a model",
            entry="plan_large_batch",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=scaling.check_plan_large_batch,
        ),
        Exercise(
            id="3.5",
            title="Compute again instead of keeping",
            entry="checkpoint_blocks",
            max_score=10,
            clock_free_score=7,
            kinds=("property", "count", "speed"),
            check=memory.check_checkpoint_blocks,
            reference=references.CHECKPOINT_BLOCKS,
        ),
        Exercise(
            id="3.6",
            title="Challenge: a fixed budget, the best throughput",
            entry="train_in_budget",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=budget.check_train_in_budget,
            reference=references.TRAIN_IN_BUDGET,
        ),
    ),
)
