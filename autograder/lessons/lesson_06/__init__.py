"""Lesson 06: distributed training basics."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_06 import references
from autograder.lessons.lesson_06.checks import evaluation, gradients, scaling, scripts, shards

LESSON = Lesson(
    id="06",
    slug="06_distributed_training",
    title="Distributed training basics",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="6.1",
            title="Which samples are mine?",
            entry="ShardSampler",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=shards.check_shard_sampler,
        ),
        Exercise(
            id="6.2",
            title="DDP by hand",
            entry="PlainDDP",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=gradients.check_plain_ddp,
        ),
        Exercise(
            id="6.3",
            title="A script for torchrun",
            entry="main",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=scripts.check_script,
        ),
        Exercise(
            id="6.4",
            title="Accumulate, then exchange once",
            entry="accumulate_step",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=gradients.check_accumulate,
        ),
        Exercise(
            id="6.5",
            title="An evaluation that is exact on uneven shards",
            entry="evaluate_on_ranks",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=evaluation.check_evaluate,
        ),
        Exercise(
            id="6.6",
            title="Challenge: two processes, one model, more samples per second",
            entry="train_in_parallel",
            max_score=10,
            clock_free_score=6,
            kinds=("property", "count", "speed"),
            check=scaling.check_train_in_parallel,
            reference=references.TRAIN_IN_PARALLEL,
        ),
    ),
)
