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
            "nothing changed": ("with nothing changed", "{}", "{}  # as it is"),
            "a small part of the bill": (
                "touch a small part of the bill",
                "{}",
                '{"save_every_steps": 6}',
            ),
            "the changes alone": (
                "a setting is missing",
                "settings | {}",
                '{"learning_rate": 1e-3, "padding": "buckets"}',
            ),
            "a setting that there is not": ("a setting is missing, misspelt or new", "{}", '{"lr": 1e-3}'),
            "a padding that there is not": ("that the run cannot use", "{}", '{"padding": "none"}'),
            "a machine that there is not": ("that the run cannot use", "{}", '{"machine": "tiny"}'),
            "more rows than a step may have": ("that the run cannot use", "{}", '{"micro_batch_size": 257}'),
            "half a row": ("that the run cannot use", "{}", '{"micro_batch_size": 16.5}'),
            "an evaluation at no step": ("that the run cannot use", "{}", '{"evaluate_every_steps": 0}'),
            "a learning rate of 0": ("that the run cannot use", "{}", '{"learning_rate": 0.0}'),
            "settings changed in place, and none returned": (
                "nothing is returned",
                "return settings | {}",
                'settings.update(learning_rate=1e-3, padding="buckets")',
            ),
            "a learning rate that crawls": (
                "a learning rate at which the run diverges, or crawls",
                "{}",
                '{"learning_rate": 1e-7, "padding": "buckets"}',
            ),
            "an experiment in the function": (
                "the experiments are in the function",
                "    return settings | {}\n",
                "    import torch\n\n    layer = torch.nn.Linear(4, 1)\n"
                "    optimizer = torch.optim.SGD(layer.parameters(), lr=settings['learning_rate'])\n"
                "    for _ in range(3):\n        layer(torch.ones(2, 4)).sum().backward()\n"
                "        optimizer.step()\n"
                '    return settings | {"learning_rate": 1e-3, "padding": "buckets"}\n',
            ),
            "everything changed at once": (
                "everything changed at once",
                "{}",
                '{"learning_rate": 1e-3, "padding": "buckets", "save_every_steps": 50}',
            ),
        },
    )
}
