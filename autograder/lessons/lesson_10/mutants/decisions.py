"""Wrong solutions of 10.3 and 10.4."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, edited

_CHOOSE = """
from statistics import fmean

@exercise("10.3")
def choose(trials):
    seeds = {trial["seed"] for trial in trials}
    scores, configs = {}, {}
    for trial in trials:
        if trial["status"] == "completed":
            key = tuple(sorted(trial["config"].items()))
            configs[key] = trial["config"]
            scores.setdefault(key, []).append(trial["validation"])
    scores = {key: values for key, values in scores.items() if len(values) == len(seeds)}
    best = max(scores, key=lambda key: fmean(scores[key]))
    return {
        "config": configs[best],
        "mean": fmean(scores[best]),
        "num_seeds": len(scores[best]),
        "num_steps": sum(trial["steps"] for trial in trials),
    }
"""

_SUMMARISE = """
@exercise("10.4")
def summarise(labels, predictions, seconds, price_per_hour, currency):
    f1 = []
    for name in set(labels):
        hits = sum(a == b == name for a, b in zip(labels, predictions))
        total = labels.count(name) + predictions.count(name)
        f1.append(2 * hits / total)
    right = sum(a == b for a, b in zip(labels, predictions)) / len(labels)
    total = sum(seconds.values())
    return {
        "accuracy": right,
        "macro_f1": sum(f1) / len(f1),
        "total_seconds": total,
        "cost": total / 3600 * price_per_hour,
        "cost_unit": currency,
        "utilisation": (total - seconds["waiting"]) / total,
    }
"""

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "10.3": (
        Mutant(
            name="picked on test",
            source=edited(_CHOOSE, ('append(trial["validation"])', 'append(trial["test"])')),
            says="picked on test",
        ),
        Mutant(
            name="best of noise",
            source=edited(
                _CHOOSE, ("key=lambda key: fmean(scores[key])", "key=lambda key: max(scores[key])")
            ),
            says="best of noise",
        ),
        Mutant(
            name="fewer seeds than the others",
            source=edited(_CHOOSE, ("if len(values) == len(seeds)", "if values")),
            says="fewer seeds",
        ),
        Mutant(
            name="pruned trials counted as free",
            source=edited(
                _CHOOSE,
                ("for trial in trials),", 'for trial in trials if trial["status"] == "completed"),'),
            ),
            says="counted as free",
        ),
    ),
    "10.4": (
        Mutant(
            name="micro F1",
            source=edited(_SUMMARISE, ("sum(f1) / len(f1)", "right")),
            says="micro F1",
        ),
        Mutant(
            name="a price per second",
            source=edited(_SUMMARISE, ("total / 3600 * price_per_hour", "total * price_per_hour")),
            says="seconds times a price per hour",
        ),
        Mutant(
            name="the tuning was free",
            source=edited(_SUMMARISE, ('"total_seconds": total', '"total_seconds": seconds["training"]')),
            says="only the last training",
        ),
        Mutant(
            name="price without unit",
            source=edited(_SUMMARISE, ('"cost_unit": currency', '"cost_unit": "per hour"')),
            says="a price without unit",
        ),
        Mutant(
            name="the wasted share",
            source=edited(_SUMMARISE, ('(total - seconds["waiting"]) / total', 'seconds["waiting"] / total')),
            says="the share that was wasted",
        ),
    ),
}
