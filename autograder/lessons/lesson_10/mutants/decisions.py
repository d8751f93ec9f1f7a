"""Wrong solutions of 10.3 and 10.4."""

from __future__ import annotations

from autograder.lessons.checking import Mutant, wrong

_CHOOSE = """
import numpy as np
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
        "utilisation": (total - seconds.get("waiting", 0.0)) / total,
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
            "the status ignored": (
                "the status is ignored",
                'if trial["status"] == "completed":',
                "if True:",
            ),
            "a pruned trial taken as complete": (
                "a pruned trial is taken",
                'if trial["status"] == "completed":',
                'if trial["status"] != "failed":',
            ),
            "a failed trial taken as complete": (
                "a failed trial is taken",
                'if trial["status"] == "completed":',
                'if trial["status"] != "pruned":',
            ),
            "the median decides": (
                "the median decides",
                ("from statistics import fmean", "from statistics import fmean, median"),
                ("key=lambda key: fmean(scores[key])", "key=lambda key: median(scores[key])"),
            ),
            "the lowest wins": ("another rule", "best = max(", "best = min("),
            "nothing is better than 0": (
                "also where all scores are below 0",
                "key=lambda key: fmean(scores[key])",
                "key=lambda key: max(0.0, fmean(scores[key]))",
            ),
            "settings rounded to six places": (
                "settings are rounded",
                'tuple(sorted(trial["config"].items()))',
                'tuple(sorted((name, round(value, 6)) for name, value in trial["config"].items()))',
            ),
            "settings as they are printed": (
                "settings are rounded",
                'tuple(sorted(trial["config"].items()))',
                'tuple(sorted(f"{name} {value:g}" for name, value in trial["config"].items()))',
            ),
            "the trials sorted in place": (
                "changed in place",
                "    scores, configs = {}, {}\n",
                '    scores, configs = {}, {}\n    trials.sort(key=lambda trial: -trial["validation"])\n',
            ),
            "the status of the last trial": (
                "fewer seeds",
                "    scores = {key: values for key, values in scores.items() if len(values) == len(seeds)}\n",
                '    last = {tuple(sorted(t["config"].items())): t["status"] for t in trials}\n'
                '    scores = {key: values for key, values in scores.items() if last[key] == "completed"}\n',
            ),
            "the status of the first trial": (
                "fewer seeds",
                "    scores = {key: values for key, values in scores.items() if len(values) == len(seeds)}\n",
                '    first = {tuple(sorted(t["config"].items())): t["status"] for t in trials[::-1]}\n'
                '    scores = {key: values for key, values in scores.items() if first[key] == "completed"}\n',
            ),
            "the search begins at 0": (
                "also where all scores are below 0",
                "max(scores, key",
                "max((key for key in scores if fmean(scores[key]) > 0), key",
            ),
            "the order of a config's settings matters": (
                "stand in another order",
                ('tuple(sorted(trial["config"].items()))', 'tuple(trial["config"].items())'),
                ("if len(values) == len(seeds)}", "if len(values) > len(seeds) // 2}"),
            ),
            "a score of 0 left out": (
                "exactly 0",
                "key=lambda key: fmean(scores[key])",
                "key=lambda key: fmean([score for score in scores[key] if score] or [0.0])",
            ),
            "no trial with a score of 0": (
                "exactly 0",
                'trial["status"] == "completed"',
                'trial["status"] == "completed" and trial["validation"]',
            ),
            "configs told apart by their JSON": (
                "1 and 1.0 are one number",
                ("import numpy as np\n", "import json\n\nimport numpy as np\n"),
                ('tuple(sorted(trial["config"].items()))', 'json.dumps(trial["config"], sort_keys=True)'),
            ),
            "an empty config taken for none": (
                "is taken for no config",
                "    best = max(scores, key=lambda key: fmean(scores[key]))\n",
                "    best = ()\n    for key in scores:\n"
                "        if not best or fmean(scores[key]) > fmean(scores[best]):\n            best = key\n",
            ),
            "settings without their names": (
                "values without their names",
                'tuple(sorted(trial["config"].items()))',
                'tuple(value for _, value in sorted(trial["config"].items()))',
            ),
            "a setting that is not there taken for 0": (
                "is taken for one of 0",
                'tuple(sorted(trial["config"].items()))',
                'tuple(sorted(item for item in trial["config"].items() if item[1]))',
            ),
            "equal scores count once": (
                "equal scores count once",
                ('"mean": fmean(scores[best])', '"mean": fmean(set(scores[best]))'),
                ("key=lambda key: fmean(scores[key])", "key=lambda key: fmean(set(scores[key]))"),
            ),
            "means rounded before they are compared": (
                "rounded before they are compared",
                "key=lambda key: fmean(scores[key])",
                "key=lambda key: round(fmean(scores[key]), 6)",
            ),
            "means in 32 bits": (
                "by numbers of 32 bits",
                "key=lambda key: fmean(scores[key])",
                "key=lambda key: np.float32(fmean(scores[key]))",
            ),
            "better by a part in a million": (
                "rounded before they are compared",
                "    best = max(scores, key=lambda key: fmean(scores[key]))\n",
                "    best = None\n    for key in scores:\n        mean = fmean(scores[key])\n"
                "        if best is None or mean - fmean(scores[best]) > 1e-6 * abs(mean):\n            best = key\n",
            ),
            "settings in 32 bits": (
                "rounded or cut",
                'tuple(sorted(trial["config"].items()))',
                'tuple(sorted((name, float(np.float32(value))) for name, value in trial["config"].items()))',
            ),
            "equal numbers of steps count once": (
                "not the sum over all trials",
                'sum(trial["steps"] for trial in trials)',
                'sum({(t["seed"], t["status"], t["steps"]): t["steps"] for t in trials}.values())',
            ),
            "rounded means": (
                "rounded",
                '"mean": fmean(scores[best])',
                '"mean": round(fmean(scores[best]), 3)',
            ),
            "the best seed's score as mean": (
                "the best seed's score",
                '"mean": fmean(scores[best])',
                '"mean": max(scores[best])',
            ),
            "all trials counted as seeds": (
                "trials counted, not seeds",
                '"num_seeds": len(scores[best])',
                '"num_seeds": len(trials)',
            ),
            "the winner's steps alone": (
                "the winner's own steps",
                "for trial in trials),",
                'for trial in trials if trial["config"] == configs[best]),',
            ),
            "always three seeds": ("ValueError", "len(values) == len(seeds)", "len(values) == 3"),
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
            "labels never hit left out": (
                "never hit are left out",
                "        f1.append(2 * hits / total)\n",
                "        if hits:\n            f1.append(2 * hits / total)\n    f1 = f1 or [0.0]\n",
            ),
            "labels that are only said count": (
                "only said",
                "for name in set(labels):",
                "for name in set(labels) | set(predictions):",
            ),
            "weighted F1": ("as they have samples", "for name in set(labels):", "for name in labels:"),
            "percent": ("a number of percent", '"accuracy": right', '"accuracy": 100 * right'),
            "the waiting was free": (
                "the waiting left out",
                '"cost": total / 3600',
                '"cost": (total - seconds.get("waiting", 0.0)) / 3600',
            ),
            "only the training is used": (
                "only the training counts",
                '(total - seconds.get("waiting", 0.0)) / total',
                'seconds["training"] / total',
            ),
            "whatever has waiting in its name": (
                "each name is a time of its own",
                'seconds.get("waiting", 0.0)',
                'sum(value for name, value in seconds.items() if "waiting" in name)',
            ),
            "long labels cut": (
                "labels are changed",
                "    f1 = []\n",
                "    labels, predictions = ([x[:40] for x in side] for side in (labels, predictions))\n    f1 = []\n",
            ),
            "labels in lower case": (
                "labels are changed before they are compared",
                "    f1 = []\n",
                "    labels, predictions = ([x.lower() for x in s] for s in (labels, predictions))\n    f1 = []\n",
            ),
            "labels without spaces around them": (
                "labels are changed before they are compared",
                "    f1 = []\n",
                "    labels, predictions = ([x.strip() for x in s] for s in (labels, predictions))\n    f1 = []\n",
            ),
            "waiting is always there": ("KeyError", 'seconds.get("waiting", 0.0)', 'seconds["waiting"]'),
            "waiting taken out of the times": (
                "taken out of them",
                'seconds.get("waiting", 0.0)) / total',
                'seconds.pop("waiting", 0.0)) / total',
            ),
            "F1 of mean precision and recall": (
                "made of the mean precision and the mean recall",
                "    right =",
                "    names, said = sorted(set(labels)), predictions\n"
                "    hits = [sum(a == b == name for a, b in zip(labels, said)) for name in names]\n"
                "    p = sum(n / max(1, said.count(name)) for n, name in zip(hits, names)) / len(names)\n"
                "    r = sum(n / labels.count(name) for n, name in zip(hits, names)) / len(names)\n"
                "    f1 = [2 * p * r / (p + r) if p + r else 0.0]\n    right =",
            ),
            "micro F1": ("micro F1", "sum(f1) / len(f1)", "right"),
            "predictions that are no label left out": (
                "left out: they are errors",
                "    f1 = []\n",
                "    pairs = [(a, b) for a, b in zip(labels, predictions) if b in labels]\n"
                "    labels, predictions = [a for a, _ in pairs], [b for _, b in pairs]\n    f1 = []\n",
            ),
            "cents": ("rounded", "total / 3600 * price_per_hour", "round(total / 3600 * price_per_hour, 2)"),
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
                '(total - seconds.get("waiting", 0.0)) / total',
                'seconds.get("waiting", 0.0) / total',
            ),
        },
    ),
}
