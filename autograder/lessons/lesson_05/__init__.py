"""Lesson 05: hyperparameter tuning."""

from autograder.course import Exercise, Lesson

LESSON = Lesson(
    id="05",
    slug="05_hyperparameter_tuning",
    title="Hyperparameter tuning",
    exercises=(
        Exercise(
            id="5.1",
            title="Draw from a search space",
            entry="sample",
            check="checks.samples.check_sampler",
        ),
        Exercise(
            id="5.2",
            title="The same chance for every trial",
            entry="run_trials",
            check="checks.trials.check_run_trials",
        ),
        Exercise(
            id="5.3",
            title="Successive halving with an honest bill",
            entry="successive_halving",
            kinds=("property", "count"),
            check="checks.halving.check_successive_halving",
        ),
        Exercise(
            id="5.4",
            title="A winner that is no accident",
            entry="choose_winner",
            check="checks.decisions.check_choose_winner",
        ),
        Exercise(
            id="5.5",
            title="Challenge: the grid's quality for half its steps",
            entry="search",
            kinds=("count",),
            check="checks.budget.check_search",
        ),
    ),
)
