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
            "no look at the budget": (
                "does not look at its budget",
                " or sum(spent) + cost > max_total_steps",
                "",
            ),
            "one step over": (
                "one step more than the budget",
                "sum(spent) + cost > max_total_steps",
                "sum(spent) + cost > max_total_steps + 1",
            ),
            "an exact fit left out": (
                "a round that fits exactly is left out",
                "sum(spent) + cost > max_total_steps",
                "sum(spent) + cost >= max_total_steps",
            ),
            "part of a round": (
                "part of a round is trained",
                "        if len(alive) == 1 or sum",
                "        room = (max_total_steps - sum(spent)) // (steps * (reduction_factor - 1))\n"
                "        if len(alive) > 1 and 0 < room < len(kept):\n"
                "            for place in kept[:room]:\n"
                "                losses[place] = train(configs[place], steps * (reduction_factor - 1))\n"
                "                spent[place] *= reduction_factor\n"
                "            break\n"
                "        if len(alive) == 1 or sum",
            ),
            "never alone": (
                "as soon as one trial is left",
                "if len(alive) == 1 or",
                "if len(kept) == 1 or",
            ),
            "fewer than the factor are left": (
                "fewer trials than reduction_factor are left",
                "if len(alive) == 1 or",
                "if len(alive) < reduction_factor or",
            ),
            "alone for ever": ("a trial that is alone goes on", "if len(alive) == 1 or", "if"),
            "every round from the beginning": (
                "pays for its whole length again",
                ("train(configs[place], steps - spent[place])", "train(configs[place], steps)"),
                ("spent[place] = steps\n", "spent[place] += steps\n"),
            ),
            "rounds of equal length": (
                "rounds of other lengths",
                ("steps * reduction_factor - spent[place]", "steps + min_steps - spent[place]"),
                ("kept, steps * reduction_factor", "kept, steps + min_steps"),
            ),
            "a first round for half of them": (
                "before all of them have had the same steps",
                "list(range(len(configs))), min_steps",
                "list(range((len(configs) + 1) // 2)), min_steps",
            ),
            "a first round of half the steps": (
                "before all of them have had the same steps",
                "list(range(len(configs))), min_steps",
                "list(range(len(configs))), (min_steps + 1) // 2",
            ),
            "trials known by their learning rate": (
                "pruned trials are left out",
                '"num_steps": spent}',
                '"num_steps": list({c["learning_rate"]: n for c, n in zip(configs, spent)}.values())}',
            ),
            "different budgets compared": (
                "losses after different budgets are compared",
                ("best = alive[0]", "best = lowest.index(min(lowest))"),
                ('"value": losses[best]', '"value": lowest[best]'),
            ),
            "the finalist that was lowest in any round": (
                "losses after different budgets are compared",
                "best = alive[0]",
                "best = min(alive, key=lowest.__getitem__)",
            ),
            "its lowest loss": (
                "the loss of an earlier round",
                '"value": losses[best]',
                '"value": lowest[best]',
            ),
            "the loss of its first round": (
                "the loss of an earlier round",
                ("    while True:", "    first = {}\n    while True:"),
                (
                    "            spent[place] = steps",
                    "            first.setdefault(place, losses[place])\n            spent[place] = steps",
                ),
                ('"value": losses[best]', '"value": first[best]'),
            ),
            "best of the round before": (
                "the best of an earlier round",
                (
                    "        alive = sorted(alive, key=losses.get)\n        kept = alive[:",
                    "        before, alive = alive, sorted(alive, key=losses.get)\n        kept = alive[:",
                ),
                ("best = alive[0]", "best = before[0]"),
            ),
            "place among the last": (
                "the place counts the survivors alone",
                '{"best": best,',
                '{"best": sorted(alive).index(best),',
            ),
            "NaN goes on": (
                "one whose loss is NaN",
                "loss if math.isfinite(loss) else math.inf",
                "loss if loss == loss else -math.inf",
            ),
            "NaN left in the sort": (
                "NaN is neither smaller nor larger",
                "loss if math.isfinite(loss) else math.inf",
                "loss",
            ),
            "NaN left in the last minimum": (
                "NaN is taken for the lowest",
                ("losses[place] = loss if", "raw[place] = loss\n            losses[place] = loss if"),
                ("        losses = {}", "        losses, raw = {}, {}"),
                (
                    "        alive = sorted(alive, key=losses.get)\n        kept = alive[:",
                    "        before, alive = alive, sorted(alive, key=losses.get)\n        kept = alive[:",
                ),
                ("best = alive[0]", "best = min(before, key=raw.get)"),
            ),
            "diverged trials left out of n": (
                "trials that diverged are left out of n",
                "        kept = alive[: max(1, len(alive) // reduction_factor)]",
                "        sound = [place for place in alive if losses[place] < math.inf] or alive\n"
                "        kept = sound[: max(1, len(sound) // reduction_factor)]",
            ),
            "ties broken by the configuration": (
                "configurations have no order",
                "sorted(alive, key=losses.get)",
                "[p for *_, p in sorted((losses[p], configs[p], p) for p in alive)]",
            ),
            "nothing to choose from": (
                "where the whole last round diverged",
                "best = alive[0]",
                "best = min((p for p in alive if losses[p] < math.inf), key=losses.get)",
            ),
            "no trial where all diverged": (
                "no trial of the last round is returned",
                ("best = alive[0]", "best = next((p for p in alive if losses[p] < math.inf), None)"),
                ('"value": losses[best]', '"value": losses.get(best, math.inf)'),
            ),
            "all that are equal go on": (
                "too many or too few go on where losses are equal",
                "        kept = alive[: max(1, len(alive) // reduction_factor)]",
                "        bar = losses[alive[max(1, len(alive) // reduction_factor) - 1]]\n"
                "        kept = [place for place in alive if losses[place] <= bar]",
            ),
            "losses kept from the search before": (
                "what an earlier search has trained is kept",
                ("import math\n", "import math\nknown = {}\n"),
                (
                    "            loss = train(configs[place], steps - spent[place])",
                    "            key = (*configs[place].values(), steps)\n"
                    "            if key not in known:\n"
                    "                known[key] = train(configs[place], steps - spent[place])\n"
                    "            loss = known[key]",
                ),
            ),
            "a million for NaN": (
                "one whose loss is NaN goes on",
                "loss if math.isfinite(loss) else math.inf",
                "loss if math.isfinite(loss) else 1e6",
            ),
            "a loss of zero is none": (
                "than that of the lowest loss",
                "loss if math.isfinite(loss) else math.inf",
                "loss if loss and math.isfinite(loss) else math.inf",
            ),
            "the worst go on": (
                "others go on than should: the worst ones",
                "sorted(alive, key=losses.get)",
                "sorted(alive, key=losses.get, reverse=True)",
            ),
            "the first go on": (
                "others go on than should: the first of the list",
                "kept = alive[: max(1, len(alive) // reduction_factor)]",
                "kept = sorted(alive)[: max(1, len(alive) // reduction_factor)]",
            ),
            "rounded up": (
                "rounded up",
                "len(alive) // reduction_factor",
                "-(-len(alive) // reduction_factor)",
            ),
            "rounded to the nearest": (
                "too many go on: n / reduction_factor is rounded",
                "len(alive) // reduction_factor",
                "round(len(alive) / reduction_factor)",
            ),
            "none goes on": (
                "fewer trials than reduction_factor are left",
                ("max(1, len(alive) // reduction_factor)", "len(alive) // reduction_factor"),
                ("if len(alive) == 1 or", "if not kept or"),
            ),
            "steps in the order of the ranking": (
                "in another order",
                '"num_steps": spent}',
                '"num_steps": sorted(spent, reverse=True)}',
            ),
            "steps by place": (
                "no list of ints",
                '"num_steps": spent}',
                '"num_steps": dict(enumerate(spent))}',
            ),
            "steps that are no ints": (
                "no list of ints",
                '"num_steps": spent}',
                '"num_steps": [float(n) for n in spent]}',
            ),
            "the budget for the bill": (
                "the budget instead of the bill",
                '"total_steps": sum(spent)',
                '"total_steps": max_total_steps',
            ),
            "refuses nothing": (
                "passed over in silence",
                "len(configs) * min_steps > max_total_steps",
                "not configs",
            ),
            "refuses after a trial": (
                "found out only after training",
                ("    if len(configs) * min_steps > max_total_steps:\n", ""),
                (
                    '        raise ValueError("the budget is too small for the first round")\n',
                    "",
                ),
                (
                    "            loss = train(",
                    "            if sum(spent) + steps - spent[place] > max_total_steps:\n"
                    '                raise ValueError("the budget is used up")\n'
                    "            loss = train(",
                ),
            ),
            "refuses an exact fit": (
                "fits into exactly is refused",
                "len(configs) * min_steps > max_total_steps",
                "len(configs) * min_steps >= max_total_steps",
            ),
            "refuses by another error": (
                "passed over in silence",
                "raise ValueError(",
                "raise RuntimeError(",
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
                    ("range(24)", "range(4)"),
                ),
                "picked after a few steps": (
                    "picked after a few steps",
                    ("range(24)", "range(120)"),
                    ("[full_steps // 9, full_steps // 3, full_steps]", "[1, 3]"),
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
                    "rounds whose lengths are rounded up",
                    ("range(24)", "range(26)"),
                    ("full_steps // 9, full_steps // 3,", "-(-full_steps // 9), -(-full_steps // 3),"),
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
    ),
}
