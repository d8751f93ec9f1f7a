"""The mini project: a classifier under a budget, on a table of one's own."""

from autograder.course import Clock, Exercise, Lesson

LESSON = Lesson(
    id="10",
    slug="10_mini_project",
    title="Mini project",
    exercises=(
        Exercise(
            id="10.1",
            title="From a table to two sets of samples",
            entry="prepare",
            check="checks.tables.check_prepare",
            allows=("open",),  # the exercise reads a file
        ),
        Exercise(
            id="10.2",
            title="The training, whole",
            entry="train_classifier",
            max_score=20,
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
            title="The winner of the trials",
            entry="choose",
            check="checks.decisions.check_choose",
        ),
        Exercise(
            id="10.4",
            title="The report",
            entry="summarise",
            check="checks.decisions.check_summarise",
        ),
    ),
)
