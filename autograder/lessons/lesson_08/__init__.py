"""Lesson 08: reproducibility with seeds and configs."""

from autograder.course import Exercise, Lesson

FILES_BY_OS = (
    "close fdopen fsdecode fsync listdir makedirs mkdir open remove rename replace scandir stat uname "
    "unlink walk write"
)

LESSON = Lesson(
    id="08",
    slug="08_reproducibility",
    exercises=(
        Exercise(
            id="8.1",
            entry="seed_everything",
            is_seeded=True,
            check="checks.seeding.check_seed_everything",
            without_library=True,
            # What it asks for: another generator in the worker's copy of the data set.
            allows=(
                "num_workers",
                "get_worker_info().dataset.rng",
                "data.get_worker_info().dataset.rng",
                "torch.utils.data.get_worker_info().dataset.rng",
            ),
        ),
        Exercise(
            id="8.2",
            entry="RunConfig",
            check="checks.configs.check_run_config",
            # What dataclasses are written with: assigning in `__post_init__`, and going over one's own fields.
            allows=("object.__setattr__", "super().__setattr__"),
        ),
        Exercise(
            id="8.3",
            entry="record_run",
            check="checks.records.check_record_run",
            # Files written and gone through, versions, and the text of an error.
            allows=(
                "open",
                *(f"os.{name}" for name in FILES_BY_OS.split()),
                *("importlib.metadata", "importlib.metadata.version"),
                *("traceback", "traceback.format_exc", "traceback.format_exception_only"),
            ),
        ),
        Exercise(
            id="8.4",
            entry="Run",
            is_seeded=True,
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
            # The switch that it asks for, under a name of one's own for where it stands.
            allows=("cudnn.benchmark", "backends.cudnn.benchmark"),
        ),
    ),
)
