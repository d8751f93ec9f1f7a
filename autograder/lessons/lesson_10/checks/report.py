"""The check of exercise 10.4: the report."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_report

Found = tuple[dict[str, Any], dict[str, Any], dict[str, float]]
"""A run, what is said of it, and what is right."""
NUM_ODD_RUNS = 120
PLAIN_ARITHMETIC = 1e-6
"""Relative: sums of a few hundred numbers of 64 or 32 bits differ by less, a constant of another unit by more."""


def check_summarise(job: Job) -> None:
    """10.4: accuracy and macro F1 over samples, all the time, the cost of it with its unit, the share that was used."""
    large: list[Found] = []
    for number, num_rows in enumerate((200, 20, 1, 55, 400, 90)):
        run = _run(job, num_rows, has_waited=number % 2 == 0)
        large.append((run, job.learner().call("summarised", run=run), _expected(run)))
        _require_all_right(job, large)
    runs = [_odd_run(job.rng) for _ in range(NUM_ODD_RUNS)]
    answers = job.learner().call("summarised_each", runs=runs)
    _require_all_right(job, [(run, one, _expected(run)) for run, one in zip(runs, answers, strict=True)])


def _require_all_right(job: Job, found: list[Found]) -> None:
    for one in found:
        _require_right(job, *one, found)


def _require_right(
    job: Job, run: dict[str, Any], answer: dict[str, Any], expected: dict[str, float], found: list[Found]
) -> None:
    wrong = [name for name in expected if not _is_close(answer.get(name, math.nan), expected[name])]
    likely = dict.fromkeys(expected, "another formula") | {name: _likely(name, found) for name in wrong}
    require_report(job, answer, expected, likely, rel_tol=PLAIN_ARITHMETIC)
    for name in ("total_seconds", "cost"):  # also where they are small
        job.require(
            math.isclose(answer[name], expected[name], rel_tol=PLAIN_ARITHMETIC),
            expected=f"{name} = {expected[name]:.6g}",
            got=f"{answer[name]:.6g}",
            likely=likely[name],
            look="a report may round where it is shown; a number that is handed on is kept whole",
        )
    job.require(
        answer["cost_unit"] == run["currency"],
        expected=f"cost_unit = {run['currency']!r}",
        got=f"{answer['cost_unit']!r}",
        likely="a price without unit: nobody can compare it",
        look="hand the currency on, as it is",
    )
    job.require(
        answer["is_kept"],
        expected="labels, predictions and `seconds` as they were handed in",
        got="others: the next report of them is another one",
        likely="something is taken out of them or put into them, such as `seconds.pop` does",
        look="read `seconds`; what is changed is to be a copy",
    )


def _run(job: Job, num_rows: int, *, has_waited: bool) -> dict[str, Any]:
    """A run with two labels that nobody says, and one that is only said."""
    rng = job.rng
    names = [f"class {letter}" for letter in rng.permutation(list("ABCDEFG"))]
    labels = rng.choice(names[:4], size=num_rows, p=[0.6, 0.2, 0.15, 0.05])
    right = rng.random(num_rows) < rng.uniform(0.4, 0.9)
    predictions = np.where(right, labels, rng.choice([*names[:3], names[4]], size=num_rows))
    few = num_rows // 10
    labels[:few], labels[few : 2 * few] = names[5], names[6]
    predictions[: 2 * few] = names[0]
    seconds = {"training": rng.uniform(200, 900), "tuning": rng.uniform(900, 4000)}
    seconds |= {name: rng.uniform(100, 4000) for name in ["loading", "waiting"][: 1 + has_waited]}
    return {
        "labels": labels.tolist(),
        "predictions": predictions.tolist(),
        "seconds": {str(name): float(seconds[name]) for name in rng.permutation(list(seconds))},
        "price_per_hour": float(rng.uniform(0.4, 4.0)),
        "currency": str(rng.choice(["EUR", "USD", "CHF"])),
    }


LONG = "a name of many words, as a person gives it, "
ODD_LABELS = ("", " ", "a", "A", "a ", "ab", "1", "01", "11", "class", "other", f"{LONG}1", f"{LONG}2")
ALIKE = (("a", "A", "a "), (f"{LONG}1", f"{LONG}2", LONG))
ODD_TIMES = ("training", "tuning", "idle", "waiting for data", "Waiting", "loading")


def _odd_run(rng: np.random.Generator) -> dict[str, Any]:
    """A small run of any kind: labels that resemble each other, no hits or nothing but hits, times and prices from
    next to nothing to very much, no waiting or nothing else."""
    names = rng.permutation(ODD_LABELS if rng.random() < 0.5 else ALIKE[int(rng.integers(2))]).tolist()[
        : int(rng.integers(1, 7))
    ]
    own = names[: int(rng.integers(1, len(names) + 1))]
    labels = [own[int(place)] for place in rng.integers(len(own), size=int(rng.integers(1, 13)))]
    share = float(rng.choice([0.0, 0.5, 0.8, 1.0]))
    said = [label if rng.random() < share else names[int(rng.integers(len(names)))] for label in labels]
    scale = 10.0 ** int(rng.integers(-3, 7))
    times = rng.permutation(ODD_TIMES).tolist()[: int(rng.integers(0, 4))]
    seconds: dict[str, float] = {name: scale * float(rng.uniform(0.1, 1.0)) for name in times}
    if not times or rng.random() < 0.6:
        waited = scale * float(rng.choice([0.0, 0.3, 1.0])) if times else scale
        seconds = {"waiting": waited} | seconds if rng.random() < 0.5 else seconds | {"waiting": waited}
    if scale > 10 and rng.random() < 0.3:
        seconds = {name: math.ceil(value) for name, value in seconds.items()}
    return {
        "labels": labels,
        "predictions": said,
        "seconds": seconds,
        "price_per_hour": float(rng.choice([0.0, 1e-4, 0.5, 3.0, 250.0])),
        "currency": str(rng.choice(["EUR", "eur", "US$", "€", "kr", "GBP a year"])),
    }


def _f1(labels: np.ndarray, predictions: np.ndarray, name: str) -> float:
    hits = int(((labels == name) & (predictions == name)).sum())
    total = int((labels == name).sum() + (predictions == name).sum())
    return 2 * hits / total


def _scores(labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    return {
        "accuracy": float((labels == predictions).mean()),
        "macro_f1": float(np.mean([_f1(labels, predictions, name) for name in np.unique(labels)])),
    }


def _expected(run: dict[str, Any]) -> dict[str, float]:
    total = sum(run["seconds"].values())
    return _scores(np.array(run["labels"]), np.array(run["predictions"])) | {
        "total_seconds": total,
        "cost": total / 3600 * run["price_per_hour"],
        "utilisation": 1 - run["seconds"].get("waiting", 0.0) / total,
    }


ROUNDED = "rounded: a report may be shown with few digits, but a small number is kept whole"
DAY = 86_400  # seconds
NEVER_HIT = "labels that were never hit are left out: their F1 is 0, and it counts"
CHANGED = 'labels are changed before they are compared, as by `lower`, `strip` or a cut: "a" and "A" are two'
ONE_NAME = 'more than what is called "waiting" is taken for it: each name is a time of its own'


def _scores_changed(run: dict[str, Any]) -> list[dict[str, float]]:
    """What comes of labels in lower case, without spaces around them, both, and cut short."""
    changes: list[Callable[[str], str]] = [
        str.lower,
        str.strip,
        lambda label: label.strip().lower(),
        lambda label: label[: len(LONG)],
    ]
    sides = ("labels", "predictions")
    return [
        _scores(*(np.array([change(label) for label in run[side]]) for side in sides)) for change in changes
    ]


def _like_waiting(seconds: dict[str, float]) -> list[float]:
    """What is waiting to one who looks for a part of the name, in any case, or for idleness too."""
    rules: list[Callable[[str], bool]] = [
        lambda name: "waiting" in name,
        lambda name: name.lower() == "waiting",
        lambda name: "waiting" in name.lower(),
        lambda name: name in ("waiting", "idle"),
    ]
    return [sum(value for name, value in seconds.items() if rule(name)) for rule in rules]


def _is_close(got: float, right: float) -> bool:
    return math.isclose(got, right, rel_tol=PLAIN_ARITHMETIC)


def _likely(name: str, found: list[Found]) -> str:
    """The first known mistake that explains all that is wrong under this name."""
    wrong = [
        (answer.get(name, math.nan), run, expected)
        for run, answer, expected in found
        if not _is_close(answer.get(name, math.nan), expected[name])
    ]
    explains: list[list[str]] = []
    for got, run, expected in wrong:
        known = [text for key, value, text in _known(run, expected) if key == name and _is_close(got, value)]
        is_rounded = any(got == round(expected[name], digits) for digits in range(10))
        explains.append(known + [ROUNDED] * is_rounded)
    of_all = [text for text in explains[0] if all(text in texts for texts in explains)]
    return next(iter(of_all + explains[0]), "another formula")


def _known(run: dict[str, Any], expected: dict[str, float]) -> list[tuple[str, float, str]]:
    """What comes of known mistakes: (name in the report, value, what the mistake is)."""
    training, waiting = run["seconds"].get("training", 0.0), run["seconds"].get("waiting", 0.0)
    total = expected["total_seconds"]
    labels, predictions = np.array(run["labels"]), np.array(run["predictions"])
    f1 = {str(label): _f1(labels, predictions, label) for label in np.unique([*labels, *predictions])}
    sizes = [run["labels"].count(label) for label in f1]
    hit = [value for value in f1.values() if value > 0]
    said = [f1[label] for label in dict.fromkeys(run["predictions"]) if label in run["labels"]]
    is_label = np.isin(predictions, labels)
    ways = [[int((side == label).sum()) for label in np.unique(labels)] for side in (predictions, labels)]
    hits = [int(((labels == label) & (predictions == label)).sum()) for label in np.unique(labels)]
    precision, recall = (
        float(np.mean([n / max(1, m) for n, m in zip(hits, way, strict=True)])) for way in ways
    )
    return [
        (
            "macro_f1",
            2 * precision * recall / max(1e-9, precision + recall),
            "one F1 is made of the mean precision and the mean recall: it is the mean of one F1 for each label",
        ),
        (
            "accuracy",
            float((labels == predictions)[is_label].mean()) if is_label.any() else math.nan,
            "samples whose prediction is no label of `labels` are left out: they are errors",
        ),
        ("macro_f1", expected["accuracy"], "micro F1, which is the accuracy: large classes hide small ones"),
        (
            "macro_f1",
            float(np.average(list(f1.values()), weights=sizes)),
            "labels weigh as much as they have samples: macro F1 counts each label once",
        ),
        *(("macro_f1", float(np.mean(some)) if some else 0.0, NEVER_HIT) for some in (hit, said)),
        (
            "macro_f1",
            float(np.mean(list(f1.values()))),
            "a label that was only said, and is nobody's, counts as well",
        ),
        ("accuracy", 100 * expected["accuracy"], "a number of percent: 0 to 1 is asked for"),
        ("accuracy", float((labels == predictions).sum()), "a number of hits, not their share"),
        ("total_seconds", training, "only the last training: the tuning before it was paid for as well"),
        ("total_seconds", total - waiting, "the waiting left out: it was paid for"),
        ("total_seconds", total / 3600, "hours where seconds are asked for"),
        ("cost", total * run["price_per_hour"], "seconds times a price per hour"),
        ("cost", total / 60 * run["price_per_hour"], "minutes times a price per hour"),
        (
            "cost",
            total % DAY / 3600 * run["price_per_hour"],
            "whole days are left out, as by `timedelta.seconds`",
        ),
        ("cost", training / 3600 * run["price_per_hour"], "only the last training is paid for"),
        ("cost", (total - waiting) / 3600 * run["price_per_hour"], "the waiting left out: it was paid for"),
        *((key, value, CHANGED) for scores in _scores_changed(run) for key, value in scores.items()),
        *(("utilisation", 1 - some / total, ONE_NAME) for some in _like_waiting(run["seconds"])),
        ("utilisation", waiting / total, "the share that was wasted, not the used one"),
        ("utilisation", training / total, "only the training counts: what is not waiting is used"),
    ]
