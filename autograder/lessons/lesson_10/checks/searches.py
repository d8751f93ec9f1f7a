"""Many small searches of 10.3, of all kinds: what the learner says of each is compared with the rule itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.engine import Job, failure

NUM_SEARCHES = 80
SCALES = (1.0, 1.0, 1e-9, 1e7)
"""Of the scores: who rounds them, or compares them with a number of his own, is right at the first alone."""
NAMES = ("learning_rate", "weight_decay", "dropout", "max_length", "log_scale")
VALUES = (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 1e-9, 64, 128)
SEEDS = (0, 1, 2, 3, 7, 42, 1000, 2**31 - 1)
STEPS = (0, 20, 100, 100, 300)
"""Used by trials of a search whose scores are coarse: equal ones are no fewer for that."""

NO_CONFIG = {"": 0.0}
"""Stands for the config where there is none, as the harness has it; {} is a config."""
NEAR = 1e-8
"""Of the scale: the distance of means that are near."""

Trials = list[dict[str, Any]]


def require_each_search(job: Job) -> None:
    """Fail at the first of many searches of which the learner says something else than the rule."""
    scales = [SCALES[int(place)] for place in job.rng.integers(len(SCALES), size=NUM_SEARCHES)]
    asked = [(_search(job.rng, scale), scale) for scale in scales]
    answers = job.learner().call("chosen_each", searches=[trials for trials, _ in asked])
    for (trials, scale), answer in zip(asked, answers, strict=True):
        right = winner_of(trials)
        wrong = [name for name in right if not _is_same(answer[name], right[name], scale)]
        for name in wrong[:1]:
            raise failure(
                expected=f"{name} = {right[name]} where the trials are those of {_shown(trials)}",
                got=answer["trouble"] or f"{answer[name]}",
                likely=_likely(asked, answers),
                look="make a list of trials by hand: few configs, with settings and scores of all kinds",
            )
        job.require(
            answer["is_kept"],
            expected="the trials as they were handed in",
            got="others, or in another order",
            likely="trials are sorted or changed in place, as by `trials.sort` or `trial.pop`",
            look="read them; what is changed is to be a copy",
        )


def _mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)


def _by_items(config: dict[str, float]) -> Any:
    return tuple(sorted(config.items()))


def winner_of(
    trials: Trials,
    *,
    key: Callable[[dict[str, float]], Any] = _by_items,
    mean: Callable[[list[float]], float] = _mean,
    digits: int | None = None,
    is_counted: bool = False,
    rather: dict[str, float] | None = None,
) -> dict[str, Any]:
    """The right answer; or that of one who has another `key` of a config, another `mean`, means rounded to so many
    `digits` before they are compared, or who counts completed trials. Of configs that such a one finds equally good,
    that with the key of `rather`."""
    groups: dict[Any, Trials] = {}
    for trial in trials:
        groups.setdefault(key(trial["config"]), []).append(trial)
    complete = [own for own in groups.values() if all(t["status"] == "completed" for t in own)]
    if is_counted:
        num_seeds = len({trial["seed"] for trial in trials})
        completed = [[t for t in own if t["status"] == "completed"] for own in groups.values()]
        complete = [own for own in completed if len(own) == num_seeds]
    num_steps = sum(trial["steps"] for trial in trials)
    if not complete:
        return {"config": NO_CONFIG, "mean": math.nan, "num_seeds": 0, "num_steps": num_steps}
    means = [mean([trial["validation"] for trial in own]) for own in complete]
    decides = means if digits is None else [round(value, digits) for value in means]
    is_preferred = [rather is not None and key(own[0]["config"]) == key(rather) for own in complete]
    is_best = [math.isclose(value, max(decides), rel_tol=1e-12) for value in decides]  # sums in another order
    best = max(range(len(complete)), key=lambda at: (is_best[at], is_preferred[at], decides[at]))
    return {
        "config": complete[best][0]["config"],
        "mean": means[best],
        "num_seeds": len(complete[best]),
        "num_steps": num_steps,
    }


def _is_same(got: Any, right: Any, scale: float) -> bool:
    if isinstance(right, dict) or not isinstance(right, float):
        return bool(got == right)
    return math.isclose(got, right, rel_tol=1e-6, abs_tol=1e-6 * scale)


def _search(rng: np.random.Generator, scale: float) -> Trials:
    """A search whose winner is clear, of 1 to 7 configs that resemble each other and 1 to 8 seeds."""
    while True:
        trials = _draw(rng, scale)
        means = sorted(
            _mean([t["validation"] for t in trials if t["config"] == config])
            for config in {_by_items(t["config"]): t["config"] for t in trials}.values()
            if all(t["status"] == "completed" for t in trials if t["config"] == config)
        )
        if means and (len(means) == 1 or means[-1] - means[-2] > 1e-3 * scale):
            if rng.random() < 0.3:
                _bring_near(trials, means, scale)
            return trials


def _bring_near(trials: Trials, means: list[float], scale: float) -> None:
    """Raise the scores of each config that completed, but the winner's, until their mean is just below the best."""
    complete = {
        _by_items(t["config"]): [other for other in trials if other["config"] == t["config"]] for t in trials
    }
    for own in complete.values():
        mean = _mean([t["validation"] for t in own])
        if mean in means[:-1] and all(t["status"] == "completed" for t in own):
            for trial in own:
                trial["validation"] += means[-1] - mean - NEAR * scale


def _draw(rng: np.random.Generator, scale: float) -> Trials:
    num_seeds = int(rng.integers(1, len(SEEDS) + 1))
    seeds = rng.choice(SEEDS, size=num_seeds, replace=False).tolist()
    is_coarse = rng.random() < 0.4  # so that seeds have equal scores, and some of them 0
    level = scale * float(rng.choice([-3.0, 0.0, 0.0, 3.0]))
    is_mixed = rng.random() < 0.3  # whole numbers as 1 in some trials, as 1.0 in others
    trials = []
    for config in _configs(rng, int(rng.integers(1, 8))):
        mean, spread = rng.normal() + 1.5 * (not config), rng.choice([0.1, 0.5])
        scores = mean + spread * rng.standard_t(2, size=num_seeds)
        num_stopped = int(rng.integers(1, num_seeds + 1)) if rng.random() < 0.4 else 0
        statuses = rng.permutation(
            ["completed"] * (num_seeds - num_stopped) + rng.choice(["pruned", "failed"], num_stopped).tolist()
        )
        for seed, score, status in zip(seeds, scores.tolist(), statuses.tolist(), strict=True):
            score = float(round(score)) if is_coarse else score
            score = level + scale * (score if status == "completed" else score + 2.0)
            is_broken = status == "failed" and rng.random() < 0.4
            trials.append(
                {
                    "config": {
                        str(name): _written(rng, config[name]) if is_mixed else config[name]
                        for name in rng.permutation(list(config))
                    },
                    "seed": int(seed),
                    "status": str(status),
                    "validation": math.nan if is_broken else score,
                    "test": level + scale * float(rng.normal()),
                    "steps": int(rng.choice(STEPS) if is_coarse else rng.integers(0, 300)),
                }
            )
    return [trials[int(place)] for place in rng.permutation(len(trials))]


def _written(rng: np.random.Generator, value: float) -> float:
    return int(value) if value == int(value) and rng.random() < 0.5 else float(value)


def _configs(rng: np.random.Generator, number: int) -> list[dict[str, float]]:
    """Different configs, each like one before it: another value, two exchanged, another name, one setting more. Often
    one of them has no setting."""

    def value() -> float:
        return VALUES[int(rng.integers(len(VALUES)))]

    first = {str(name): value() for name in rng.permutation(NAMES)[: int(rng.integers(1, 4))]}
    configs = [first]
    while len(configs) < number:
        config = dict(configs[int(rng.integers(len(configs)))])
        names = rng.permutation(list(config)).tolist()
        others = [name for name in NAMES if name not in config]
        change = int(rng.integers(5))
        if change == 0:
            config[names[0]] = value()
        elif change == 1:
            config[names[0]] = -1.0 if config[names[0]] == -2.0 else -2.0
        elif change == 2:
            config[names[0]], config[names[-1]] = config[names[-1]], config[names[0]]
        elif change == 3 and others:
            config[others[0]] = config.pop(names[0])
        elif others and len(config) < 3:
            config[others[-1]] = value() if rng.random() < 0.5 else float(rng.integers(-1, 2))
        if config not in configs:
            configs.append(config)
    if rng.random() < 0.4:
        configs[int(rng.integers(number))] = {}
    return configs


def _shown(trials: Trials) -> str:
    configs = list({_by_items(t["config"]): t["config"] for t in trials}.values())
    return f"{len(configs)} configs, such as {configs[0]} and {configs[-1]}"


def _likely(asked: list[tuple[Trials, float]], answers: list[dict[str, Any]]) -> str:
    """The first known mistake that gives all these answers; or what those searches share that were answered wrong."""

    def explains(**mistake: Any) -> bool:
        key = mistake.get("key", _by_items)
        for (trials, scale), answer in zip(asked, answers, strict=True):
            found = winner_of(trials, rather=answer["config"], **mistake)
            if key(found["config"]) != key(answer["config"]) or not (
                answer["trouble"] or _is_same(answer["mean"], found["mean"], scale)
            ):
                return False
        return True

    if explains():
        return "something else than the winner's seeds, or than all steps, is counted"
    if explains(mean=lambda scores: _mean(list(set(scores)))):
        return "equal scores count once: two seeds with one score are two scores"
    for likely, keys in WRONG_KEYS.items():
        if any(explains(key=key, is_counted=way) for key in keys for way in (False, True)):
            return likely
    wrong = [
        (trials, scale)
        for (trials, scale), answer in zip(asked, answers, strict=True)
        if answer["config"] != winner_of(trials)["config"]
    ]
    if wrong and all(winner_of(trials)["config"] == {} for trials, _ in wrong):
        return "{}, a config that leaves all settings as they are, is taken for no config: `if config` is False for it"
    if any(explains(digits=digits) for digits in range(12)) or all(scale < 1 for _, scale in wrong):
        return ROUNDED
    if all(scale > 1 for _, scale in wrong):
        return "scores are compared with a number of your own: they may be as low as minus a loss of millions"
    if all(any(math.isnan(trial["validation"]) for trial in trials) for trials, _ in wrong):
        return "the score of a failed trial is looked at, which may be NaN"
    if all(_is_near(trials, scale) for trials, scale in wrong):
        return ROUNDED
    return "another rule"


ROUNDED = (
    "means are rounded before they are compared, as by numbers of 32 bits, or have to differ by more than a number "
    "of your own"
)


def _is_near(trials: Trials, scale: float) -> bool:
    """Whether another config that completed is as good as the winner but for next to nothing."""
    right = winner_of(trials)
    others = [trial for trial in trials if trial["config"] != right["config"]]
    return bool(right["mean"] - winner_of(others)["mean"] < 2 * NEAR * scale)


WRONG_KEYS: dict[str, tuple[Callable[[dict[str, float]], Any], ...]] = {
    "two configs are taken for one: values without their names, or a hash, do not tell them apart": (
        lambda config: tuple(sorted(config.values())),
        lambda config: tuple(config[name] for name in sorted(config)),
        lambda config: hash(_by_items(config)),
    ),
    "a setting that a config does not have is taken for one of 0, or of 1: those are two configs": (
        lambda config: tuple(config.get(name, 0) for name in NAMES),
        lambda config: tuple(config.get(name) or 0 for name in NAMES),
        lambda config: tuple(config.get(name, 1) for name in NAMES),
    ),
    "configs are told apart as they are written, as in JSON: 1 and 1.0 are one number, and two texts": (
        lambda config: str(_by_items(config)),
    ),
    "names without their values tell configs apart: two values are two configs": (
        lambda config: tuple(sorted(config)),
        len,
    ),
}
