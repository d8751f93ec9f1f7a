"""Lesson 08: reproducibility with seeds and configs."""

from autograder.course import Exercise, Lesson

LESSON = Lesson(
    id="08",
    slug="08_reproducibility",
    title="Reproducibility with seeds and configs",
    exercises=(
        Exercise(
            id="8.1",
            title="One seed for everything",
            entry="seed_everything",
            check="checks.seeding.check_seed_everything",
        ),
        Exercise(
            id="8.2",
            title="A config that refuses to guess",
            entry="RunConfig",
            check="checks.configs.check_run_config",
        ),
        Exercise(
            id="8.3",
            title="A record that answers later questions",
            entry="record_run",
            check="checks.records.check_record_run",
        ),
        Exercise(
            id="8.4",
            title="Equal to the bit, also after an interruption",
            entry="Run",
            check="checks.runs.check_run",
        ),
        Exercise(
            id="8.5",
            title="Did the change help?",
            entry="did_it_help",
            check="checks.decisions.check_did_it_help",
        ),
        Exercise(
            id="8.6",
            title="What determinism costs here",
            entry="cost_of_determinism",
            # Graded on its method, on made-up clocks; the number that it gives on this machine earns nothing.
            check="checks.costs.check_cost_of_determinism",
        ),
    ),
)
