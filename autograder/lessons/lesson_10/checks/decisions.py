"""The checks of exercises 10.3 and 10.4: the winner of the trials, and the report."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_close, require_report

NUM_SEEDS = 3


def check_choose(job: Job) -> None:
    """10.3: the best mean over all seeds on validation data, and every step that was spent."""
    for _ in range(6):
        trials = _trials(job)
        scores = _scores(trials)
        winner = max(scores, key=lambda key: float(np.mean(scores[key])))
        answer = job.learner().call("chosen", trials=trials)
        got = (answer["config"].get("learning_rate"), answer["config"].get("max_length"))
        job.require(
            got == winner,
            expected=f"learning_rate {winner[0]:g}, max_length {winner[1]:g}: the best mean of {NUM_SEEDS} seeds",
            got=f"learning_rate {got[0]}, max_length {got[1]}",
            likely=_why(trials, got),
            look="group the completed trials by config, and compare the means of those with all seeds",
        )
        mean = float(np.mean(scores[winner]))
        require_close(job, "mean", answer["mean"], mean, likely="the best seed's score, or the test score")
        require_close(
            job, "num_seeds", answer["num_seeds"], NUM_SEEDS, likely="trials counted, not seeds of the winner"
        )
        spent = sum(trial["steps"] for trial in trials)
        completed = sum(trial["steps"] for trial in trials if trial["status"] == "completed")
        require_close(
            job,
            "num_steps",
            answer["num_steps"],
            spent,
            likely="pruned and failed trials counted as free"
            if math.isclose(answer["num_steps"], completed)
            else "not the sum over all trials",
            look="a pruned trial has used its steps all the same",
        )


def _trials(job: Job) -> list[dict[str, Any]]:
    """Trials over 7 configs, made so that each known mistake picks another one than the right winner."""
    rng = job.rng
    configs = [
        {"learning_rate": float(rate), "max_length": int(length)}
        for rate, length in zip(
            rng.permutation([1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2]), [32, 64] * 4, strict=False
        )
    ]
    order = rng.permutation(len(configs))
    # mean on validation, spread over seeds, mean on test, seeds that were completed
    plans = [
        (0.80, 0.010, 0.70, NUM_SEEDS),  # the winner
        (0.74, 0.090, 0.72, NUM_SEEDS),  # the best single seed
        (0.76, 0.010, 0.90, NUM_SEEDS),  # the best on test
        (0.86, 0.010, 0.75, 1),  # one seed of three, the others pruned
        (0.60, 0.020, 0.60, NUM_SEEDS),
        (0.66, 0.020, 0.66, 2),
        (0.50, 0.020, 0.50, NUM_SEEDS),
    ]
    trials = []
    for (mean, spread, test, completed), index in zip(plans, order, strict=True):
        shifts = rng.permutation([-1.0, 0.0, 1.0]) * spread + rng.normal(0.0, 0.001, NUM_SEEDS)
        for seed in range(NUM_SEEDS):
            is_complete = seed < completed
            trials.append(
                {
                    "config": configs[index],
                    "seed": seed,
                    "status": "completed" if is_complete else str(rng.choice(["pruned", "failed"])),
                    # What a pruned trial reached when it was stopped.
                    "validation": float(mean + shifts[seed]) if is_complete else float(mean - 0.3),
                    "test": float(test + rng.normal(0.0, 0.002)),
                    "steps": 120 if is_complete else int(rng.integers(10, 60)),
                }
            )
    return [trials[int(index)] for index in rng.permutation(len(trials))]


def _key(trial: dict[str, Any]) -> tuple[float, float]:
    return trial["config"]["learning_rate"], trial["config"]["max_length"]


def _scores(trials: list[dict[str, Any]]) -> dict[tuple[float, float], list[float]]:
    """Validation scores of the configs that completed every seed."""
    found = defaultdict(list)
    for trial in trials:
        if trial["status"] == "completed":
            found[_key(trial)].append(trial["validation"])
    return {key: values for key, values in found.items() if len(values) == NUM_SEEDS}


def _why(trials: list[dict[str, Any]], got: tuple[Any, Any]) -> str:
    if got == _key(max(trials, key=lambda t: t["test"])):
        return "picked on test: that score is for the last report, and choosing by it uses it up"
    completed = [trial for trial in trials if trial["status"] == "completed"]
    full = [trial for trial in completed if _key(trial) in _scores(trials)]
    if got == _key(max(full, key=lambda t: t["validation"])):
        return "best of noise: the best single seed won, not the best mean"
    if got == _key(max(completed, key=lambda t: t["validation"])):
        return "a config with fewer seeds than the others won: its luck was not averaged away"
    return "another rule"


def check_summarise(job: Job) -> None:
    """10.4: accuracy and macro F1 over samples, all the time, the cost of it with its unit, the share that was used."""
    for _ in range(5):
        run = _run(job)
        answer = job.learner().call("summarised", run=run)
        names = ("accuracy", "macro_f1", "total_seconds", "cost", "utilisation")
        expected = _expected(run)
        likely = {name: _likely(name, answer.get(name, math.nan), run, expected) for name in names}
        require_report(job, answer, expected, likely)
        job.require(
            answer["cost_unit"] == run["currency"],
            expected=f"cost_unit = {run['currency']!r}",
            got=f"{answer['cost_unit']!r}",
            likely="a price without unit: nobody can compare it",
            look="hand the currency on",
        )


def _run(job: Job) -> dict[str, Any]:
    rng = job.rng
    names = ["news", "sport", "letters", "code"]
    labels = rng.choice(names, size=200, p=[0.6, 0.2, 0.15, 0.05])
    predictions = np.where(rng.random(200) < 0.7, labels, rng.choice(names[:3], size=200))
    seconds = {
        "tuning": rng.uniform(900, 4000),
        "training": rng.uniform(200, 900),
        "waiting": rng.uniform(100, 900),
    }
    return {
        "labels": labels.tolist(),
        "predictions": predictions.tolist(),
        "seconds": {name: float(value) for name, value in seconds.items()},
        "price_per_hour": float(rng.uniform(0.4, 4.0)),
        "currency": str(rng.choice(["EUR", "USD", "CHF"])),
    }


def _f1(labels: np.ndarray, predictions: np.ndarray, name: str) -> float:
    hits = int(((labels == name) & (predictions == name)).sum())
    total = int((labels == name).sum() + (predictions == name).sum())
    return 2 * hits / total if total else 0.0


def _expected(run: dict[str, Any]) -> dict[str, float]:
    labels, predictions = np.array(run["labels"]), np.array(run["predictions"])
    total = sum(run["seconds"].values())
    return {
        "accuracy": float((labels == predictions).mean()),
        "macro_f1": float(np.mean([_f1(labels, predictions, name) for name in np.unique(labels)])),
        "total_seconds": total,
        "cost": total / 3600 * run["price_per_hour"],
        "utilisation": (total - run["seconds"]["waiting"]) / total,
    }


def _likely(name: str, got: float, run: dict[str, Any], expected: dict[str, float]) -> str:
    training, waiting = run["seconds"]["training"], run["seconds"]["waiting"]
    total = expected["total_seconds"]
    known = {
        ("macro_f1", expected["accuracy"]): "micro F1, which is the accuracy: large classes hide small ones",
        ("total_seconds", training): "only the last training: the tuning before it was paid for as well",
        ("total_seconds", total - waiting): "the waiting left out: it was paid for",
        ("cost", total * run["price_per_hour"]): "seconds times a price per hour",
        ("cost", training / 3600 * run["price_per_hour"]): "only the last training is paid for",
        ("utilisation", waiting / total): "the share that was wasted, not the used one",
    }
    for (key, value), text in known.items():
        if key == name and math.isclose(got, value, rel_tol=1e-6):
            return text
    return "another formula"
