"""Wrong solutions of 7.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_CHANGES = """@exercise("7.6")
def two_changes(settings):
    return settings | {}
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.6": wrong(
        _CHANGES,
        {
            "optimising epoch time": ("optimising epoch time", "{}", '{"micro_batch_size": 128}'),
            "time taken for cost": (
                "time taken for cost",
                "{}",
                '{"machine": "large", "save_every_steps": 25}',
            ),
            "no evaluation": (
                "no evaluation",
                "{}",
                '{"evaluate_every_steps": 100_000, "padding": "buckets"}',
            ),
            "a learning rate that diverges": (
                "a learning rate at which the run diverges",
                "{}",
                '{"learning_rate": 1.0, "padding": "buckets"}',
            ),
            "everything changed at once": (
                "everything changed at once",
                "{}",
                '{"learning_rate": 1e-3, "padding": "buckets", "save_every_steps": 50}',
            ),
        },
    )
}
