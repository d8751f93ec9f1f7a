"""Lesson 05: hyperparameter tuning."""

from autograder.course import Exercise, Lesson

LESSON = Lesson(
    id="05",
    slug="05_hyperparameter_tuning",
    exercises=(
        Exercise(
            id="5.1",
            entry="sample",
            is_seeded=True,
            check="checks.samples.check_sampler",
        ),
        Exercise(
            id="5.2",
            entry="run_trials",
            is_seeded=True,
            check="checks.trials.check_run_trials",
        ),
        Exercise(
            id="5.3",
            entry="successive_halving",
            kinds=("property", "count"),
            check="checks.halving.check_successive_halving",
        ),
        Exercise(
            id="5.4",
            entry="choose_winner",
            check="checks.decisions.check_choose_winner",
        ),
        Exercise(
            id="5.5",
            entry="search",
            kinds=("count",),
            check="checks.budget.check_search",
        ),
    ),
)
