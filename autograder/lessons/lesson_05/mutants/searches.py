"""Wrong solutions of 5.3 and 5.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_HALVING = """
import math

@exercise("5.3")
def successive_halving(configs, train, min_steps, reduction_factor, max_total_steps):
    if len(configs) * min_steps > max_total_steps:
        raise ValueError("the budget is too small for the first round")
    spent = [0] * len(configs)
    lowest = [math.inf] * len(configs)
    alive, steps = list(range(len(configs))), min_steps
    while True:
        losses = {}
        for place in alive:
            loss = train(configs[place], steps - spent[place])
            losses[place] = loss if math.isfinite(loss) else math.inf
            lowest[place] = min(lowest[place], losses[place])
            spent[place] = steps
        alive = sorted(alive, key=losses.get)
        kept = alive[: max(1, len(alive) // reduction_factor)]
        cost = sum(steps * reduction_factor - spent[place] for place in kept)
        if len(alive) == 1 or sum(spent) + cost > max_total_steps:
            break
        alive, steps = kept, steps * reduction_factor
    best = alive[0]
    return {"best": best, "value": losses[best], "total_steps": sum(spent), "num_steps": spent}
"""

_SEARCH = """
import math
import numpy as np

def draw(space, rng):
    return {
        name: math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))
        for name, part in space.items()
    }

@exercise("5.5")
def search(train, space, full_steps, max_total_steps, seed):
    rng = np.random.default_rng(seed)
    alive = [draw(space, rng) for _ in range(24)]
    steps, before = full_steps // 9, 0
    while True:
        losses = [train(config, steps - before) for config in alive]
        order = np.argsort([loss if math.isfinite(loss) else math.inf for loss in losses])
        if steps >= full_steps:
            return alive[order[0]]
        alive = [alive[place] for place in order[: max(1, len(alive) // 3)]]
        steps, before = 3 * steps, steps
"""

_GRID = """
import numpy as np

@exercise("5.5")
def search(train, space, full_steps, max_total_steps, seed):
    rates = np.geomspace(space["learning_rate"]["low"], space["learning_rate"]["high"], 4)
    decays = np.geomspace(space["weight_decay"]["low"], space["weight_decay"]["high"], 3)
    points = [{"learning_rate": float(rate), "weight_decay": float(decay)} for rate in rates for decay in decays]
    losses = [train(point, full_steps) for point in points]
    return points[int(np.nanargmin(losses))]
"""

_UNIFORM = 'rng.uniform(part["low"], part["high"])'
_LOG_UNIFORM = 'math.exp(rng.uniform(math.log(part["low"]), math.log(part["high"])))'

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "5.3": wrong(
        _HALVING,
        {
            "pruned trials left out of the bill": (
                "pruned trials are counted as free",
                '"total_steps": sum(spent)',
                '"total_steps": sum(spent[place] for place in alive)',
            ),
            "pruned trials free for the budget": (
                "pruned trials are counted as free",
                "sum(spent) + cost > max_total_steps",
                "sum(spent[p] for p in kept) + cost > max_total_steps",
            ),
            "every round from the beginning": (
                "pays for its whole length again",
                ("train(configs[place], steps - spent[place])", "train(configs[place], steps)"),
                ("spent[place] = steps\n", "spent[place] += steps\n"),
            ),
            "different budgets compared": (
                "losses after different budgets are compared",
                ("best = alive[0]", "best = lowest.index(min(lowest))"),
                ('"value": losses[best]', '"value": lowest[best]'),
            ),
            "NaN goes on": (
                "one whose loss is NaN",
                "loss if math.isfinite(loss) else math.inf",
                "loss if loss == loss else 0.0",
            ),
            "the worst go on": (
                "others go on than should",
                "sorted(alive, key=losses.get)",
                "sorted(alive, key=losses.get, reverse=True)",
            ),
        },
    ),
    "5.5": (
        Mutant(name="the whole grid", source=_GRID, says="every trial gets its full length"),
        *wrong(
            _SEARCH,
            {
                "pruned trials counted as free": (
                    "pruned trials are counted as free",
                    "range(24)",
                    "range(60)",
                ),
                "uniform learning rate": (
                    "a uniform learning rate",
                    (_LOG_UNIFORM, _UNIFORM),
                    ("range(24)", "range(9)"),
                ),
                "picked after a few steps": (
                    "picked after a few steps",
                    ("range(24)", "range(120)"),
                    ("full_steps // 9, 0", "1, 0"),
                    ("if steps >= full_steps", "if steps >= 3"),
                ),
                "the first that comes": ("hardly anything was tried", "range(24)", "range(1)"),
            },
        ),
    ),
}
