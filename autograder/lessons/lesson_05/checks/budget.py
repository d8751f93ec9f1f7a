"""The check of 5.5: as good as the 12-point grid for at most half its steps, over secret problems."""

from __future__ import annotations

import math

import numpy as np

from autograder.engine import Job
from autograder.lessons.lesson_05.checks.billing import Bill, Config, converse
from autograder.lessons.lesson_05.checks.rehearsal import SAYS, require_config, require_sound_search
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


def check_search(job: Job) -> None:
    """5.5: on each secret problem a configuration for at most half the steps; on average as good as the grid's."""
    require_sound_search(job)
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


def _one_search(job: Job, seed: int) -> tuple[float, Bill]:
    """ln of the loss over that of the grid, and the bill, of the learner's search on one secret problem."""
    problem = Problem(seed)
    trainer = _Trainer(problem, seed + 1)
    bill = Bill(trainer.train, most_steps=MAX_TOTAL_STEPS, says=SAYS)

    def pay(config: Config, num_steps: int) -> dict[str, object]:
        require_config(config, SPACE, [*(known for known, _ in trainer.trials), config])
        return bill.pay(config, num_steps)

    answer = converse(
        job, pay, space=SPACE, full_steps=FULL_STEPS, max_total_steps=MAX_TOTAL_STEPS, seed=seed % 1000
    )
    require_config(answer, SPACE, [known for known, _ in trainer.trials] or [answer])
    return _log_ratio(problem, answer, seed), bill


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
