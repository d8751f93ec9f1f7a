"""Lesson 06: distributed training basics."""

from autograder.course import Clock, Exercise, Lesson

# A checkpoint that is there whole or not at all.
ATOMIC_SAVE = ("open", *(f"os.{name}" for name in ("replace", "rename", "fsync", "remove", "unlink")))

LESSON = Lesson(
    id="06",
    slug="06_distributed_training",
    exercises=(
        Exercise(
            id="6.1",
            entry="ShardSampler",
            is_seeded=True,
            check="checks.shards.check_shard_sampler",
        ),
        Exercise(
            id="6.2",
            entry="PlainDDP",
            check="checks.plain_ddp.check_plain_ddp",
        ),
        Exercise(
            id="6.3",
            entry="main",
            check="checks.scripts.check_script",
            allows=ATOMIC_SAVE,
        ),
        Exercise(
            id="6.4",
            entry="accumulate_step",
            kinds=("property", "count"),
            check="checks.accumulation.check_accumulate",
        ),
        Exercise(
            id="6.5",
            entry="evaluate_on_ranks",
            check="checks.evaluation.check_evaluate",
        ),
        Exercise(
            id="6.6",
            entry="train_in_parallel",
            kinds=("property", "count"),
            check="checks.scaling.check_train_in_parallel",
            clock=Clock(
                bar=1.3,
                baseline="baselines.ONE_PROCESS",
                reference="references.TRAIN_IN_PARALLEL",
                slow="mutants.scaling.SLOW_RANKS",
                points=4,
            ),
        ),
    ),
)
