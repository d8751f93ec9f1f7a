"""Wrong solutions of 5.5, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    lengths, before = [full_steps // 9, full_steps // 3, full_steps], 0
    for steps in lengths:
        losses = [train(config, steps - before) for config in alive]
        order = np.argsort([loss if math.isfinite(loss) else math.inf for loss in losses])
        if steps == lengths[-1]:
            return alive[order[0]]
        alive = [alive[place] for place in order[: max(1, len(alive) // 3)]]
        before = steps
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

MUTANTS: tuple[Mutant, ...] = (
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
                ("range(24)", "range(4)"),
            ),
            "picked after a few steps": (
                "picked after a few steps",
                ("range(24)", "range(120)"),
                ("[full_steps // 9, full_steps // 3, full_steps]", "[1, 3]"),
            ),
            "seed 0 taken for none": (
                "does not begin with `seed`",
                "default_rng(seed)",
                "default_rng(seed or None)",
            ),
            "logarithms in the caller's space": (
                "the ranges of the caller are written over",
                "    rng = np.random.default_rng(seed)\n",
                "    rng = np.random.default_rng(seed)\n    given = space\n"
                "    space = {name: dict(part) for name, part in given.items()}\n"
                "    for part in given.values():\n"
                '        part["low"], part["high"] = math.log(part["low"]), math.log(part["high"])\n',
            ),
            "NaN left in the last sort": (
                "a configuration that diverges is returned",
                "np.argsort([loss if math.isfinite(loss) else math.inf for loss in losses])",
                "sorted(range(len(losses)), key=[x if x == x or steps == full_steps else math.inf"
                " for x in losses].__getitem__)",
            ),
            "nothing to choose from": (
                "nothing to choose from",
                "        order = np.argsort",
                "        np.nanargmin(losses)\n        order = np.argsort",
            ),
            "none where all end in NaN": (
                "nothing to choose from",
                "            return alive[order[0]]\n",
                "            best, lowest = None, math.inf\n            for config, loss in zip(alive, losses):\n"
                "                if loss < lowest:\n                    best, lowest = config, loss\n"
                "            return best\n",
            ),
            "a thousand for NaN": (
                "a number stands for NaN",
                "loss if math.isfinite(loss) else math.inf",
                "loss if math.isfinite(loss) else 1e3",
            ),
            "no seed": ("does not begin with `seed`", "default_rng(seed)", "default_rng()"),
            "a step too many": (
                "all steps are billed",
                "if steps == lengths[-1]:\n",
                "if steps == lengths[-1]:\n            while len(losses) < max_total_steps:\n"
                "                losses.append(train(alive[0], 1))\n",
            ),
            "a loss for a configuration": (
                "a loss or a list is returned",
                "return alive[order[0]]",
                "return losses[order[0]]",
            ),
            "out of its range": (
                "not kept inside the range",
                "return alive[order[0]]",
                'return alive[order[0]] | {"learning_rate": 2 * space["learning_rate"]["high"]}',
            ),
            "values beside the best outside its range": (
                "not kept inside the range",
                "            return alive[order[0]]\n",
                "            best, left = alive[order[0]], max_total_steps - 24 * lengths[0]\n"
                "            left -= 8 * (lengths[1] - lengths[0]) + 2 * (full_steps - lengths[1])\n"
                "            for _ in range(10):\n"
                "                beside = {name: value * math.exp(rng.normal()) for name, value in best.items()}\n"
                "                train(beside, left // 10)\n"
                "            return best\n",
            ),
            "a space by places": (
                "taken by their place",
                "        for name, part in space.items()",
                '        for name, part in zip(["learning_rate", "weight_decay"], space.values())',
            ),
            "ranges known by heart": (
                "fixed values are taken",
                "    return {\n        name: math",
                '    space = {"learning_rate": {"low": 1e-4, "high": 10.0}, '
                '"weight_decay": {"low": 1e-5, "high": 0.1}}\n'
                "    return {\n        name: math",
            ),
            "lengths rounded up": (
                "rounds whose lengths are rounded",
                ("range(24)", "range(26)"),
                ("full_steps // 9, full_steps // 3,", "-(-full_steps // 9), -(-full_steps // 3),"),
            ),
            "lengths rounded to the nearest": (
                "rounds whose lengths are rounded",
                ("range(24)", "range(18)"),
                ("full_steps // 9, full_steps // 3,", "round(full_steps / 9), round(full_steps / 3),"),
                ("max(1, len(alive) // 3)]]", "4 if len(alive) == 6 else 6]]"),
            ),
            "its lowest loss in any round": (
                "the lowest loss that it ever had",
                (
                    "        losses = [train(config, steps - before) for config in alive]\n",
                    "        for config in alive:\n"
                    "            loss = train(config, steps - before)\n"
                    "            key = tuple(config.values())\n"
                    "            lowest[key] = min(lowest.get(key, math.inf), loss)\n"
                    "        losses = [lowest[tuple(config.values())] for config in alive]\n",
                ),
                ("full_steps], 0\n", "full_steps], 0\n    lowest = {}\n"),
            ),
            "lengths known by heart": (
                "all steps are billed",
                "[full_steps // 9, full_steps // 3, full_steps]",
                "[9 * 5, 27 * 5, 81 * 5]",
            ),
            "names in the order of a set": (
                "the order of a `set`",
                "for name, part in space.items()",
                "for name, part in ((name, space[name]) for name in set(space))",
            ),
            "a key left out": (
                "or a key is left out",
                "return alive[order[0]]",
                'return {"learning_rate": alive[order[0]]["learning_rate"]}',
            ),
            "each round from the beginning": ("all steps are billed", "steps - before", "steps"),
            "NaN wins": (
                "a configuration that diverges is returned",
                "loss if math.isfinite(loss) else math.inf",
                "loss if math.isfinite(loss) else -math.inf",
            ),
            "NaN left in the sort": (
                "a configuration that diverges is returned",
                "np.argsort([loss if math.isfinite(loss) else math.inf for loss in losses])",
                "sorted(range(len(losses)), key=losses.__getitem__)",
            ),
            "the first that comes": ("hardly anything was tried", "range(24)", "range(1)"),
        },
    ),
)
