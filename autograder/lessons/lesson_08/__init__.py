"""Lesson 08: reproducibility with seeds and configs."""

from pathlib import Path

from autograder.course.lessons import Exercise, Lesson, harness_source
from autograder.lessons.lesson_08.checks import configs, costs, decisions, records, runs, seeding

LESSON = Lesson(
    id="08",
    slug="08_reproducibility",
    title="Reproducibility with seeds and configs",
    harness=harness_source(Path(__file__).with_name("harness")),
    exercises=(
        Exercise(
            id="8.1",
            title="One seed for everything",
            entry="seed_everything",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=seeding.check_seed_everything,
        ),
        Exercise(
            id="8.2",
            title="A config that refuses to guess",
            entry="RunConfig",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=configs.check_run_config,
        ),
        Exercise(
            id="8.3",
            title="A record that answers later questions",
            entry="record_run",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=records.check_record_run,
        ),
        Exercise(
            id="8.4",
            title="Equal to the bit, also after an interruption",
            entry="Run",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=runs.check_run,
        ),
        Exercise(
            id="8.5",
            title="Did the change help?",
            entry="did_it_help",
            max_score=10,
            clock_free_score=10,
            kinds=("property",),
            check=decisions.check_did_it_help,
        ),
        Exercise(
            id="8.6",
            title="What determinism costs here",
            entry="cost_of_determinism",
            max_score=10,
            clock_free_score=10,
            # Graded on its method, on made-up clocks; the number that it gives on this machine earns nothing.
            kinds=("property",),
            check=costs.check_cost_of_determinism,
        ),
    ),
)
