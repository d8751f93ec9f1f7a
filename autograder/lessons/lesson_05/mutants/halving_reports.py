"""Wrong solutions of 5.3 that report or refuse otherwise than they should, each with the mistake that is named."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong
from autograder.lessons.lesson_05.mutants.halving import HALVING

MUTANTS: tuple[Mutant, ...] = wrong(
    HALVING,
    {
        "pruned trials left out of the bill": (
            "pruned trials are counted as free",
            '"total_steps": sum(spent)',
            '"total_steps": sum(spent[place] for place in alive)',
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
        "the first of all where all diverged": (
            "no trial of the last round is returned",
            ('"value": losses[best]', '"value": losses.get(best, math.inf)'),
            (
                "best = alive[0]",
                "best = min([(losses[p], p) for p in alive if losses[p] < math.inf] or [(0.0, 0)])[1]",
            ),
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
        "a value in few digits": (
            "another number than `train` gave",
            '"value": losses[best]',
            '"value": float(f"{losses[best]:.7g}")',
        ),
        "trials known by their values": (
            "told apart by their values alone",
            (
                "            loss = train(",
                "            first = [tuple(c.values()) for c in configs].index(tuple(configs[place].values()))\n"
                "            if first != place and spent[first]:\n"
                "                losses[place] = losses.get(first, math.inf)\n"
                "                continue\n"
                "            loss = train(",
            ),
        ),
        "trials known by a few digits": (
            "in another order",
            '"num_steps": spent}',
            '"num_steps": [{tuple(f"{v:.6g}" for v in c.values()): n for c, n in zip(configs, spent)}'
            '[tuple(f"{v:.6g}" for v in c.values())] for c in configs]}',
        ),
        "trials known by twelve digits": (
            "in another order",
            '"num_steps": spent}',
            '"num_steps": [{tuple(round(v, 12) for v in c.values()): n for c, n in zip(configs, spent)}'
            "[tuple(round(v, 12) for v in c.values())] for c in configs]}",
        ),
        "the lowest loss of one that is lost alone": (
            "the loss of an earlier round",
            '"value": losses[best]',
            '"value": losses[best] if losses[best] < math.inf or len(alive) > 1 else lowest[best]',
        ),
        "a budget of 0 for none": (
            "passed over in silence",
            "len(configs) * min_steps > max_total_steps",
            "max_total_steps and len(configs) * min_steps > max_total_steps",
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
)
