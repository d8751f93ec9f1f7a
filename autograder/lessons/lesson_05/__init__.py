"""Lesson 05: hyperparameter tuning."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_05.checks import budget, decisions, halving, samples, trials

LESSON = Lesson(
    id="05",
    slug="05_hyperparameter_tuning",
    title="Hyperparameter tuning",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="5.1",
            title="Draw from a search space",
            entry="sample",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=samples.check_sampler,
        ),
        Exercise(
            id="5.2",
            title="The same chance for every trial",
            entry="run_trials",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=trials.check_run_trials,
        ),
        Exercise(
            id="5.3",
            title="Successive halving with an honest bill",
            entry="successive_halving",
            max_score=10,
            clock_free_score=10,
            kinds=("property", "count"),
            check=halving.check_successive_halving,
        ),
        Exercise(
            id="5.4",
            title="A winner that is no accident",
            entry="choose_winner",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=decisions.check_choose_winner,
        ),
        Exercise(
            id="5.5",
            title="Challenge: the grid's quality for half its steps",
            entry="search",
            max_score=10,
            clock_free_score=10,
            kinds=("count",),
            check=budget.check_search,
        ),
    ),
)
