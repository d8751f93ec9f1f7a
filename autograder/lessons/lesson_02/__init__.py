"""Lesson 02: mixed precision."""

from autograder.course import LOW_PRECISION, Clock, Exercise, Lesson

LESSON = Lesson(
    id="02",
    slug="02_mixed_precision",
    exercises=(
        Exercise(
            id="2.1",
            entry="resolve_precision",
            check="checks.policy.check_resolve_precision",
            without_library=True,
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.2",
            entry="Fp16Trainer",
            check="checks.steps.check_fp16_trainer",
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.3",
            entry="mixed_step",
            kinds=("property", "count"),
            check="checks.mixed.check_mixed_step",
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.4",
            entry="train_epoch",
            kinds=("property", "count"),
            check="checks.epochs.check_train_epoch",
            clock=Clock(
                bar=1.3,
                baseline="baselines.FP32_EPOCH",
                reference="references.TRAIN_EPOCH",
                slow="mutants.epochs.SLOW_EPOCH",
                points=4,
            ),
            allows=LOW_PRECISION,
        ),
        Exercise(
            id="2.5",
            entry="SturdyClassifier",
            kinds=("property", "count"),
            check="checks.sturdy.check_sturdy_classifier",
            allows=(
                *LOW_PRECISION,
                "autograder.lessons.lesson_02.fragile.FragileClassifier",
                # Ways around the colleague's `forward`.
                *("torch.overrides.TorchFunctionMode", "__torch_function__", "__class__"),
            ),
        ),
    ),
)
