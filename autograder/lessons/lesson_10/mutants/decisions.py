"""Wrong solutions of 10.3 and 10.4."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

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
    "10.3": wrong(
        _CHOOSE,
        {
            "picked on test": ("picked on test", 'append(trial["validation"])', 'append(trial["test"])'),
            "best of noise": (
                "best of noise",
                "key=lambda key: fmean(scores[key])",
                "key=lambda key: max(scores[key])",
            ),
            "fewer seeds than the others": ("fewer seeds", "if len(values) == len(seeds)", "if values"),
            "pruned trials counted as free": (
                "counted as free",
                "for trial in trials),",
                'for trial in trials if trial["status"] == "completed"),',
            ),
        },
    ),
    "10.4": wrong(
        _SUMMARISE,
        {
            "micro F1": ("micro F1", "sum(f1) / len(f1)", "right"),
            "a price per second": (
                "seconds times a price per hour",
                "total / 3600 * price_per_hour",
                "total * price_per_hour",
            ),
            "the tuning was free": (
                "only the last training",
                '"total_seconds": total',
                '"total_seconds": seconds["training"]',
            ),
            "price without unit": (
                "a price without unit",
                '"cost_unit": currency',
                '"cost_unit": "per hour"',
            ),
            "the wasted share": (
                "the share that was wasted",
                '(total - seconds["waiting"]) / total',
                'seconds["waiting"] / total',
            ),
        },
    ),
}
