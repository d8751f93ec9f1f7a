"""The check of 5.5: as good as the 12-point grid for at most half its steps, over secret problems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_05.checks.billing import Bill, Config, converse
from autograder.lessons.lesson_05.problem import FULL_STEPS, SPACE, Problem, Trials, grid

GRID_STEPS = len(grid()) * FULL_STEPS
MAX_TOTAL_STEPS = GRID_STEPS // 2
NUM_JUDGES = 2
CLIP = 0.4
"""No single problem counts for more than this, as ln(loss / the grid's loss): one unlucky draw is no verdict."""
LOOKS = ((16, 0.05, 0.12), (32, 0.07, 0.07))
"""(problems, pass up to, fail above), as the mean of that logarithm; between the two, more problems are looked at.

Simulated over 200 problems: halving over 18 to 24 trials fails in fewer than one check of 10,000; six random trials in
full, which are a little worse than the grid, in one of 300; uniform learning rates pass in one of 200."""


DIVERGES = 1.0
"""Of the losses that are only made up, those of higher learning rates are NaN."""
_SAYS = "pruned trials are counted as free, or every trial gets its full length; all steps are billed"


def check_search(job: Job) -> None:
    """5.5: on each secret problem a configuration for at most half the steps; on average as good as the grid's."""
    _require_repeatable_search(job)
    ratios: list[float] = []
    bills: list[Bill] = []
    for num_problems, enough, too_much in LOOKS:
        while len(ratios) < num_problems:
            job.progress("Searching on secret problems", len(ratios) / LOOKS[-1][0])
            ratio, bill = _one_search(job, job.seed())
            ratios.append(min(CLIP, max(-CLIP, ratio)))
            bills.append(bill)
        mean = float(np.mean(ratios))
        if not enough < mean <= too_much:
            break
    paid = max(bill.total for bill in bills)
    job.counts["steps_of_the_grid"], job.counts["steps_paid"] = GRID_STEPS, paid
    job.counts["loss_over_grid"] = round(math.exp(mean), 3)
    job.require(
        mean <= enough,
        expected=f"on average over {len(ratios)} secret problems a loss on unseen samples as low as that of the grid's "
        f"winner (up to {math.exp(enough):.2f} times as high)",
        got=f"{math.exp(mean):.2f} times as high, for {paid} of {GRID_STEPS} steps",
        likely=_why(bills),
        look="print every trial of one search: its values, its steps, its loss",
    )


def _require_repeatable_search(job: Job) -> None:
    """The same seed asks for the same trials again: losses that cost nothing to compute are enough for that."""
    seed, asked = job.seed() % 1000, []
    for _ in range(2):
        configs: list[Config] = []

        def train(config: Config, num_steps: int, configs: list[Config] = configs) -> float:
            configs.append(config)
            if config["learning_rate"] > DIVERGES:
                return math.nan
            return sum(abs(math.log(value) + 5) for value in config.values()) + 1 / num_steps

        bill = Bill(train, most_steps=MAX_TOTAL_STEPS, says=_SAYS)
        answer = _answer(job, bill, seed)
        asked.append((configs, answer))
        _require_sound_winner(job, configs, answer)
    job.require(
        asked[0] == asked[1],
        expected="the same trials and the same configuration for the same seed",
        got="others",
        likely="numbers come from a generator that does not begin with `seed`: the search cannot be repeated",
        look="`np.random.default_rng(seed)`, and nothing beside it",
    )


def _require_sound_winner(job: Job, configs: list[Config], answer: Any) -> None:
    found_sound = any(config["learning_rate"] <= DIVERGES for config in configs)
    is_config = isinstance(answer, dict) and not check_config(answer)
    job.require(
        not found_sound or not is_config or answer["learning_rate"] <= DIVERGES,
        expected="a configuration that does not diverge, as some of those that were tried",
        got=f"{str(answer)[:100]}, which ends in NaN",
        likely="a configuration that diverges is returned: NaN is neither smaller nor larger than anything",
        look="write `math.inf` in its place before anything is compared",
    )


def _answer(job: Job, bill: Bill, seed: int) -> Any:
    return converse(
        job,
        lambda config, num_steps: check_config(config) or bill.pay(config, num_steps),
        space=SPACE,
        full_steps=FULL_STEPS,
        max_total_steps=MAX_TOTAL_STEPS,
        seed=seed,
    )


def _one_search(job: Job, seed: int) -> tuple[float, Bill]:
    """ln of the loss over that of the grid, and the bill, of the learner's search on one secret problem."""
    problem = Problem(seed)
    trainer = _Trainer(problem, seed + 1)
    bill = Bill(trainer.train, most_steps=MAX_TOTAL_STEPS, says=_SAYS)
    answer = _answer(job, bill, seed % 1000)
    job.require(
        isinstance(answer, dict) and not check_config(answer),
        expected="a configuration: each key of the space, with a value inside its range",
        got=f"{str(answer)[:100]}",
        likely="a loss or a list is returned, or the search space is left",
        look="return the dict that you would train with",
    )
    return _log_ratio(problem, answer, seed), bill


def check_config(config: Config) -> dict[str, Any]:
    """What is wrong with a configuration, as a reply to `train`; {} when nothing is."""
    if config.keys() != SPACE.keys():
        return {
            "error": f"a configuration has the keys {', '.join(SPACE)}; got {', '.join(map(str, config))}"
        }
    for name, part in SPACE.items():
        value, low, high = config[name], part["low"], part["high"]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
            return {"error": f"{name} must be a number in {low:g} … {high:g}; got {value!r}"}
    return {}


class _Trainer:
    """The trials of one search, each a network that goes on where it stopped; the same seed for all."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.trials: list[tuple[Config, Trials]] = []

    def train(self, config: Config, num_steps: int) -> float:
        found = [trials for known, trials in self.trials if known == config]
        if not found:
            found = [Trials(self.problem, [config], self.seed)]
            self.trials.append((config, found[0]))
        found[0].train(num_steps)
        return float(found[0].loss("validation")[0])


def _log_ratio(problem: Problem, config: Config, seed: int) -> float:
    """ln of the loss of this configuration over that of the grid's winner, both judged on the test split."""
    points = grid()
    validation = problem.losses(points, split="validation", seed=seed + 1)
    winner = points[int(np.nanargmin(validation))]
    judged = [problem.losses([config, winner], split="test", seed=seed + 2 + k) for k in range(NUM_JUDGES)]
    own, theirs = np.mean(judged, axis=0)
    return float(np.log(own / theirs)) if np.isfinite(own) else math.inf


def _why(bills: list[Bill]) -> str:
    """The likeliest mistake, by what was tried."""
    trials = [dict(key) | {"steps": steps} for bill in bills for key, steps in bill.steps.items()]
    per_search = len(trials) / len(bills)
    top = np.mean([trial["learning_rate"] > SPACE["learning_rate"]["high"] / 10 for trial in trials] or [0.0])
    if per_search < 4:
        return f"hardly anything was tried: {per_search:.0f} trials a search"
    if top > 0.6:
        return "a uniform learning rate: nearly all trials are in the top decade, where most of them diverge"
    if max(trial["steps"] for trial in trials) < FULL_STEPS / 3:
        return "picked after a few steps: what learns fastest at first is not what ends best"
    return (
        "losses after different numbers of steps are compared, or few trials are tried and each for too long"
    )
