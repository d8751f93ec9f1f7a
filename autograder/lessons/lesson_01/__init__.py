"""Lesson 01: efficient training loops."""

from autograder.course import Clock, Exercise, Lesson

LESSON = Lesson(
    id="01",
    slug="01_efficient_training_loops",
    exercises=(
        Exercise(
            id="1.1",
            short_title="Pad no more than you must",
            entry="collate",
            kinds=("property", "count"),
            check="checks.batches.check_collate",
            without_library=True,
            allows=("torch.nested", ".nested_tensor", ".to_padded_tensor"),
            clock=Clock(
                bar=1.5,
                baseline="baselines.PAD_TO_MAXIMUM",
                reference="references.COLLATE",
                slow="mutants.batches.SLOW_COLLATE",
                points=4,
            ),
        ),
        Exercise(
            id="1.2",
            short_title="Like lengths together",
            entry="BucketBatchSampler",
            kinds=("property", "count"),
            check="checks.batches.check_bucket_sampler",
            without_library=True,
            clock=Clock(
                bar=1.3,
                baseline="baselines.RANDOM_BATCHES",
                reference="references.BUCKET_BATCH_SAMPLER",
                slow="mutants.samplers.SLOW_SAMPLER",
                points=4,
            ),
        ),
        Exercise(
            id="1.3",
            short_title="An epoch that never waits for a number",
            entry="train_one_epoch",
            kinds=("property", "count"),
            check="checks.loops.check_train_one_epoch",
        ),
        Exercise(
            id="1.4",
            entry="evaluate",
            check="checks.evaluation.check_evaluate",
        ),
        Exercise(
            id="1.5",
            entry="make_loader",
            check="checks.loading.check_loader",
            allows=("multiprocessing",),  # other processes may wait as well as threads
            clock=Clock(
                bar=2.0,
                baseline="baselines.ONE_AFTER_THE_OTHER",
                reference="references.MAKE_LOADER",
                slow="mutants.loading.SLOW_LOADER",
                points=6,
            ),
        ),
        Exercise(
            id="1.6",
            short_title="Challenge: the whole loop",
            entry="fast_epoch",
            kinds=("property", "count"),
            check="checks.epochs.check_fast_epoch",
            clock=Clock(
                bar=3.0,
                baseline="baselines.NAIVE_EPOCH",
                reference="references.FAST_EPOCH",
                slow="mutants.epochs.SLOW_EPOCH",
                points=4,
            ),
        ),
    ),
)
