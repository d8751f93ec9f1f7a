"""Wrong solutions of 5.3 that train other trials than they should, each with the mistake that its check must name."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

HALVING = """
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

MUTANTS: tuple[Mutant, ...] = wrong(
    HALVING,
    {
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
        "diverged trials left out of n": (
            "trials that diverged are left out of n",
            "        kept = alive[: max(1, len(alive) // reduction_factor)]",
            "        sound = [place for place in alive if losses[place] < math.inf] or alive\n"
            "        kept = sound[: max(1, len(sound) // reduction_factor)]",
        ),
        "a diverged trial never goes on": (
            "whatever their losses",
            "len(alive) // reduction_factor)]\n",
            "len(alive) // reduction_factor)]\n        kept = [p for p in kept if losses[p] < math.inf] or kept[:1]\n",
        ),
        "an end where all have diverged": (
            "too few go on where most trials have diverged",
            "if len(alive) == 1 or",
            "if len(alive) == 1 or all(losses[p] == math.inf for p in alive) or",
        ),
        "ties broken by the configuration": (
            "configurations have no order",
            "sorted(alive, key=losses.get)",
            "[p for *_, p in sorted((losses[p], configs[p], p) for p in alive)]",
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
                "            key = (*configs[place].items(), steps)\n"
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
        "what was low once goes on": (
            "by the lowest loss that it ever had",
            ("        kept = alive", "        alive.sort(key=lowest.__getitem__)\n        kept = alive"),
            ("    best = alive[0]", "    best = min(alive, key=losses.get)"),
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
    },
)
