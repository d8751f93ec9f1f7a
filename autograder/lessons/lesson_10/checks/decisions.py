"""The check of exercise 10.3: the winner of the trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_close
from autograder.lessons.lesson_10.checks.searches import require_each_search

#: Seeds a config, and what is added to every score: those of a loss with its sign changed are below 0, others around
#: it. The first draws have enough seeds to tell all mistakes apart.
NEIGHBOURS = ((2e-7, 3e-7), (1.234567e-3, 1.234568e-3), (0.0123456788, 0.0123456789))
"""Learning rates of the winner and of a config that is otherwise the same: equal numbers where they are rounded."""
DRAWS = ((3, 0.0), (5, 0.0), (6, 0.0), (4, -3.0), (3, -0.8), (1, 0.0), (2, 0.0))


def check_choose(job: Job) -> None:
    """10.3: the best mean over all seeds on validation data, and every step that was spent."""
    for number, (num_seeds, level) in enumerate(DRAWS):
        trials, reasons = _trials(job.rng, num_seeds, level, NEIGHBOURS[number % 3])
        (winner,) = (key for key, reason in reasons.items() if not reason)
        own = [trial for trial in trials if _key(trial) == winner]
        answer = job.learner().call("chosen", trials=trials)
        job.require(
            not answer["trouble"],
            expected="a winner where all scores are below 0, as minus a loss is",
            got=answer["trouble"],
            likely=BELOW_0,
            look="what is the first score compared with?",
        )
        got = _key(answer)
        job.require(
            got == winner,
            expected=f"the config {_shown(winner)}: the best mean of {num_seeds} seeds",
            got=_shown(got),
            likely=_why_this_config(job, trials, own, reasons.get(got, OTHER)),
            look="group the trials by config; compare the validation means of those whose seeds were all completed",
        )
        values, tests = ([trial[score] for trial in own] for score in ("validation", "test"))
        right = float(np.mean(values))
        likely = _why_this_mean(job, answer["mean"], trials, values, tests)
        require_close(job, "mean", answer["mean"], right, likely=likely, rel_tol=1e-6)
        require_close(
            job, "num_seeds", answer["num_seeds"], num_seeds, likely="trials counted, not seeds of the winner"
        )
        completed = [trial for trial in trials if trial["status"] == "completed"]
        spent, without_stopped, alone = (
            sum(trial["steps"] for trial in some) for some in (trials, completed, own)
        )
        require_close(
            job,
            "num_steps",
            answer["num_steps"],
            spent,
            likely={
                without_stopped: "pruned and failed trials counted as free",
                alone: "the winner's own steps: those of the others were spent to find it",
            }.get(answer["num_steps"], "not the sum over all trials"),
            look="a pruned trial has used its steps all the same",
        )
        job.require(
            answer["is_kept"],
            expected="the trials as they were handed in",
            got="others, or in another order: who reports on them finds them changed",
            likely="trials are sorted or changed in place, as by `trials.sort` or `trial.pop`",
            look="read them; what is changed is to be a copy",
        )
    require_each_search(job)


OTHER = "another rule"
BELOW_0 = "higher is better, also where all scores are below 0"


def _why_this_config(job: Job, trials: list[dict[str, Any]], own: list[dict[str, Any]], reason: str) -> str:
    if _key(_chosen_in_order(job, trials)) == _key(own[0]):
        return ORDER
    if _is_right_apart(job, trials, own):
        return ROUNDED
    if any(trial["validation"] == 0 for trial in own):
        return "a score of exactly 0 is taken for none: it is a score like any other"
    if all(trial["validation"] < 0 for trial in trials):
        return BELOW_0
    return reason


def _chosen_in_order(job: Job, trials: list[dict[str, Any]]) -> dict[str, Any]:
    """What the learner chooses where equal configs hold their settings in the same order."""
    in_order = [trial | {"config": dict(sorted(trial["config"].items()))} for trial in trials]
    answer: dict[str, Any] = job.learner().call("chosen", trials=in_order)
    return answer


ROUNDED = "settings are rounded or cut before they are compared, so that two configs are taken for one"


def _is_right_apart(job: Job, trials: list[dict[str, Any]], own: list[dict[str, Any]]) -> bool:
    """Whether the learner finds the winner where all learning rates are far from each other."""
    rates = {key: float(number) for number, key in enumerate(dict.fromkeys(map(_key, trials)), start=1)}
    apart = [trial | {"config": trial["config"] | {"learning_rate": rates[_key(trial)]}} for trial in trials]
    found: dict[str, float] = job.learner().call("chosen", trials=apart)["config"]
    return found.get("learning_rate") == rates[_key(own[0])]


ORDER = "equal configs whose settings stand in another order are taken for two"


@dataclass(frozen=True)
class _Plan:
    """A config, by its scores, and the mistake that would choose it."""

    mean: float
    test: float
    reason: str = OTHER
    spread: float = 0.01
    """Half the distance of its best seed from its worst."""
    outlier: float = 0.0
    """How far below the others one seed is."""
    stopped: tuple[str, ...] = ()
    """Statuses of the seeds that were not completed; the last one goes for all further ones."""
    num_stopped: int = 0
    reached: float = 0.0
    """What those had scored."""
    has_zero: bool = False
    """Whether its worst seed scored exactly 0."""
    completed_at: str = ""
    """Where its completed trial stands among its own, "first" or "last": who keeps one status for all is misled."""


def _plans(num_seeds: int, level: float) -> list[_Plan]:
    plans = [
        _Plan(0.80, 0.70, reason=""),
        _Plan(0.40, 0.60),
        _Plan(0.76, 0.90, "picked on test: that score is for the last report, and choosing by it uses it up"),
    ]
    for status, reached in (("pruned", 0.95), ("failed", 0.96)):
        reason = f"a {status} trial is taken for a complete one: what it had reached is no result of it"
        plans.append(_Plan(0.9, 0.75, reason, stopped=(status,), num_stopped=num_seeds, reached=reached))
    if num_seeds > 1:
        luck = "best of noise: the best single seed won, not the best mean"
        few = "a config with fewer seeds than the others won: its luck was not averaged away"
        ignored = "the status is ignored: what a stopped trial had reached is no result of it"
        both = ("pruned", "failed")
        plans += [
            _Plan(0.74, 0.72, luck, spread=0.12),
            *(
                _Plan(
                    mean,
                    0.75,
                    few,
                    stopped=(status,),
                    num_stopped=num_seeds - 1,
                    reached=0.4,
                    completed_at=at,
                )
                for mean, status, at in ((0.88, "pruned", "last"), (0.87, "failed", "first"))
            ),
            _Plan(0.90, 0.76, ignored, stopped=both, num_stopped=num_seeds, reached=0.99),
        ]
    if num_seeds > 2:
        median = "the median decides, not the mean: it hides the one bad seed of a config"
        zero = "a score of exactly 0 is left out of the mean: it is a score like any other"
        plans.append(_Plan(0.83, 0.71, median, outlier=0.06 * num_seeds))
        plans += [_Plan(0.82, 0.73, zero, has_zero=True)] * (not level)
    return plans


def _trials(
    rng: np.random.Generator, num_seeds: int, level: float, neighbours: tuple[float, float]
) -> tuple[list[dict[str, Any]], dict[Key, str]]:
    """Trials of which each mistake picks another config, and why each config would win; "" for the one that does.

    Names of settings and seeds are drawn; a config holds its settings in one order or the other. Where all scores seem
    equal, neither the first trial nor the last is the winner's.
    """
    names = ["max_length", "dropout", "weight_decay"][: int(rng.integers(1, 4))]
    rates = rng.permutation([0.0, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3, 1e-2, 2e-2])
    seeds = rng.permutation(20)[:num_seeds].tolist()
    trials, reasons, completed_at = [], {}, {}
    rates[:2] = rng.permutation(neighbours)
    of_winner = {name: float(rng.integers(1, 4)) for name in names}
    for place, (plan, rate) in enumerate(zip(_plans(num_seeds, level), rates, strict=False)):
        settings = of_winner if place < 2 else {name: float(rng.integers(1, 4)) for name in names}
        config = settings | {"learning_rate": float(rate)}
        shifts = np.linspace(-plan.spread, plan.spread, num_seeds) if num_seeds > 1 else np.zeros(1)
        shifts[0] -= plan.outlier
        scores = plan.mean + rng.permutation(shifts) + rng.normal(0.0, 0.001, num_seeds)
        if plan.has_zero:
            scores[int(scores.argmin())] = 0.0
        elif not plan.reason and -1 < level < 0:
            scores[int(scores.argmax())] = -level
        statuses = [*plan.stopped, *plan.stopped[-1:] * num_seeds][: plan.num_stopped]
        statuses += ["completed"] * (num_seeds - plan.num_stopped)
        for seed, score, status in zip(seeds, scores, rng.permutation(statuses).tolist(), strict=True):
            is_complete = status == "completed"
            in_order = sorted(config, reverse=seed == seeds[-1])
            trials.append(
                {
                    "config": {name: config[name] for name in in_order},
                    "seed": seed,
                    "status": status,
                    "validation": level + (float(score) if is_complete else plan.reached),
                    "test": level + float(plan.test + rng.normal(0.0, 0.002)),
                    "steps": 120 if is_complete else int(rng.integers(10, 60)),
                }
            )
        reasons[_key(trials[-1])], completed_at[_key(trials[-1])] = plan.reason, plan.completed_at
    first, *others = (trials[int(index)] for index in [num_seeds, *rng.permutation(len(trials))])
    others.remove(first)
    last = others.index(trials[-1])
    ordered = [first, *others[:last], *others[last + 1 :], trials[-1]]
    for key, at in completed_at.items():
        places = [place for place, trial in enumerate(ordered) if at and _key(trial) == key]
        own = sorted(
            (ordered[i] for i in places), key=lambda t: (t["status"] == "completed") == (at == "last")
        )
        for place, trial in zip(places, own, strict=True):
            ordered[place] = trial
    return ordered, reasons


Key = tuple[tuple[str, float], ...]


def _key(trial: dict[str, Any]) -> Key:
    return tuple(sorted(trial["config"].items()))


def _shown(key: Key) -> str:
    return ", ".join(f"{name} {value:.8g}" for name, value in key) or "with nothing in it"


def _why_this_mean(
    job: Job, got: float, trials: list[dict[str, Any]], values: list[float], tests: list[float]
) -> str:
    known: dict[str, float] = {
        "the best seed's score": max(values),
        "the mean of the test scores": float(np.mean(tests)),
        "the median, not the mean": float(np.median(values)),
        "a score of exactly 0 is left out of the mean: it is a score like any other": sum(values)
        / max(1, int(np.count_nonzero(values))),
    }
    right = float(np.mean(values))
    for text, value in known.items():
        if math.isclose(got, value, rel_tol=1e-6) and not math.isclose(value, right, rel_tol=1e-6):
            return text
    if any(got == round(right, digits) for digits in range(5)):
        return "rounded: of two configs that differ by less, the first wins, and not the better"
    if math.isclose(_chosen_in_order(job, trials)["mean"], right, rel_tol=1e-6):
        return ORDER
    return "another number"
