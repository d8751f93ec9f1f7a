"""The mini project: a classifier under a budget, on a table of one's own."""

from autograder.course import Clock, Exercise, Lesson

LESSON = Lesson(
    id="10",
    slug="10_mini_project",
    exercises=(
        Exercise(
            id="10.1",
            entry="prepare",
            check="checks.tables.check_prepare",
            allows=("open",),  # the exercise reads a file
        ),
        Exercise(
            id="10.2",
            entry="train_classifier",
            max_score=20,
            allows=(".EmbeddingBag",),
            check="checks.training.check_train_classifier",
            clock=Clock(
                bar=1.5,
                baseline="baselines.NAIVE_TRAINING",
                reference="references.TRAIN_CLASSIFIER",
                slow="mutants.training.SLOW_TRAINING",
                points=8,
            ),
        ),
        Exercise(
            id="10.3",
            entry="choose",
            check="checks.decisions.check_choose",
        ),
        Exercise(
            id="10.4",
            entry="summarise",
            check="checks.report.check_summarise",
        ),
    ),
)
