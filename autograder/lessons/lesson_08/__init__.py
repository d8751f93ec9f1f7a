"""Lesson 08: reproducibility with seeds and configs."""

from autograder.course import Exercise, Lesson

LESSON = Lesson(
    id="08",
    slug="08_reproducibility",
    exercises=(
        Exercise(
            id="8.1",
            entry="seed_everything",
            check="checks.seeding.check_seed_everything",
        ),
        Exercise(
            id="8.2",
            entry="RunConfig",
            check="checks.configs.check_run_config",
        ),
        Exercise(
            id="8.3",
            entry="record_run",
            check="checks.records.check_record_run",
        ),
        Exercise(
            id="8.4",
            entry="Run",
            check="checks.runs.check_run",
        ),
        Exercise(
            id="8.5",
            entry="did_it_help",
            check="checks.decisions.check_did_it_help",
        ),
        Exercise(
            id="8.6",
            entry="cost_of_determinism",
            # Graded on its method, on made-up clocks; the number that it gives on this machine earns nothing.
            check="checks.costs.check_cost_of_determinism",
        ),
    ),
)
