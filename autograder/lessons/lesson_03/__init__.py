"""Lesson 03: batch size and gradient accumulation."""

from autograder.course import LOW_PRECISION, Clock, Exercise, Lesson

_WRAPPERS = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
_WRAPPER_NAMES = (
    "",
    ".CheckpointImpl",
    ".CheckpointWrapper",
    ".apply_activation_checkpointing",
    ".checkpoint_wrapper",
)

LESSON = Lesson(
    id="03",
    slug="03_batch_size_and_accumulation",
    exercises=(
        Exercise(
            id="3.1",
            entry="train_accumulated",
            kinds=("property", "count"),
            check="checks.accumulation.check_train_accumulated",
        ),
        Exercise(
            id="3.2",
            entry="largest_micro_batch_size",
            kinds=("property", "count"),
            check="checks.search.check_largest_micro_batch_size",
            without_library=True,
        ),
        Exercise(
            id="3.3",
            entry="train_accumulated_mixed",
            check="checks.mixed.check_train_accumulated_mixed",
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="3.4",
            entry="plan_large_batch",
            check="checks.scaling.check_plan_large_batch",
        ),
        Exercise(
            id="3.5",
            entry="checkpoint_blocks",
            kinds=("property", "count"),
            check="checks.memory.check_checkpoint_blocks",
            # What is computed again is computed under the state of autocast that the first forward pass found; lower
            # precision shows in the gradients. torch's own wrapper lies in a private module.
            # And a block's `forward`, or its class, is what it says to change.
            allows=(
                "autocast",
                "setattr",
                ".forward",
                "__class__",
                *(f"{_WRAPPERS}{name}" for name in _WRAPPER_NAMES),
            ),
            clock=Clock(
                bar=1 / 1.6,
                baseline="baselines.NO_CHECKPOINTS",
                reference="references.CHECKPOINT_BLOCKS",
                slow="mutants.memory.SLOW_BLOCKS",
                points=3,
            ),
        ),
        Exercise(
            id="3.6",
            entry="train_in_budget",
            kinds=("property", "count"),
            check="checks.budget.check_train_in_budget",
            clock=Clock(
                bar=1.3,
                baseline="baselines.MICRO_BATCHES_OF_4",
                reference="references.TRAIN_IN_BUDGET",
                slow="mutants.budget.SLOW_BUDGET",
                points=4,
            ),
        ),
    ),
)
