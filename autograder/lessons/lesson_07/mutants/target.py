"""Wrong solutions of 7.6, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant


def _changes(text: str) -> str:
    return f'@exercise("7.6")\ndef two_changes(settings):\n    return settings | {text}\n'


MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "7.6": (
        Mutant(
            name="optimising epoch time",
            source=_changes('{"micro_batch_size": 128}'),
            says="optimising epoch time",
        ),
        Mutant(
            name="time taken for cost",
            source=_changes('{"machine": "large", "save_every_steps": 25}'),
            says="time taken for cost",
        ),
        Mutant(
            name="no evaluation",
            source=_changes('{"evaluate_every_steps": 100_000, "padding": "buckets"}'),
            says="no evaluation",
        ),
        Mutant(
            name="a learning rate that diverges",
            source=_changes('{"learning_rate": 1.0, "padding": "buckets"}'),
            says="a learning rate at which the run diverges",
        ),
        Mutant(
            name="everything changed at once",
            source=_changes('{"learning_rate": 1e-3, "padding": "buckets", "save_every_steps": 50}'),
            says="everything changed at once",
        ),
    ),
}
