"""The check of 5.2: whether every trial had the same chance."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import TOLERANCES, require_each_once

# Learning rate, dropout; the last diverges at once.
SETTINGS = ((3e-1, 0.0), (1e-3, 0.1), (3e-2, 0.3), (1e30, 0.0))


def check_run_trials(job: Job) -> None:
    """5.2: a fresh model and optimizer for each trial, equal steps, one seed policy, judged on validation."""
    rng = job.rng
    configs = [{"learning_rate": rate, "dropout": dropout} for rate, dropout in SETTINGS]
    configs = [configs[i] for i in rng.permutation(len(configs))]
    seeds = rng.choice(10_000, size=3, replace=False).tolist()
    num_steps = int(rng.integers(14, 20))
    answer = job.learner().call(
        "run_all", seed=job.seed() % 10_000, configs=configs, seeds=seeds, num_steps=num_steps
    )
    lives, num_trials = answer["lives"], len(configs) * len(seeds)
    job.counts["trials"] = num_trials
    job.counts["steps_per_trial"] = num_steps
    _require_split(job, answer)
    _require_fresh(job, answer, num_trials)
    _require_budget(job, lives, num_steps)
    _require_seed_policy(job, lives, len(configs), len(seeds))
    _require_modes(job, lives)
    _require_values(job, answer["losses"], lives, (len(configs), len(seeds)))


def _require_split(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        answer["asked"]["test"] == 0,
        expected="test texts that no trial has seen",
        got=f"`test_batches` asked for {answer['asked']['test']} times",
        likely="picked on test: what chooses among trials is used up as a judge of the winner",
        look="which texts may choose, and which may only judge once at the end?",
    )
    job.require(
        answer["asked"]["validation"] > 0,
        expected="each trial judged on the validation texts",
        got="`validation_batches` never asked for",
        likely="picked on train: the loss of texts that were learnt says who learns by heart best",
        look="judge a trial, after its last step, on texts that it has not trained on",
    )


def _require_fresh(job: Job, answer: dict[str, Any], num_trials: int) -> None:
    made, optimizers, lives = answer["made"], answer["optimizers"], answer["lives"]
    job.require(
        made >= num_trials,
        expected=f"{num_trials} models for {num_trials} trials",
        got=f"{made}",
        likely="a reused model: every trial goes on where the one before stopped, and the last looks best",
        look="where is `task.make_model` called: once, or once for each trial?",
    )
    job.require(
        optimizers >= num_trials and not any(life["old_state"] for life in lives),
        expected=f"{num_trials} optimizers for {num_trials} trials, without a history",
        got=f"{optimizers} optimizers",
        likely="a reused optimizer: it steps the first trial's weights, with the first trial's momentum",
        look="an optimizer holds the parameters that it was made with",
    )
    job.require(
        len(lives) == num_trials,
        expected=f"{num_trials} models that are trained",
        got=f"{len(lives)}",
        likely="trials that train another model than their own, or none at all",
        look="count `optimizer.step()` for each model",
    )


def _require_budget(job: Job, lives: list[dict[str, Any]], num_steps: int) -> None:
    steps = [life["num_steps"] for life in lives]
    job.require(
        min(steps) == max(steps),
        expected=f"{num_steps} steps for every trial",
        got=f"between {min(steps)} and {max(steps)}",
        likely="different budgets: a trial that is stopped or runs out of batches is compared with whole ones",
        look="count the steps of each trial; batches that are used up, and early exits, end one too soon",
    )
    job.require(
        steps[0] == num_steps and all(life["num_batches"] == num_steps for life in lives),
        expected=f"{num_steps} steps of one batch each",
        got=f"{steps[0]} steps, {lives[0]['num_batches']} batches",
        likely="another budget than was asked for",
        look="`num_steps` counts optimizer steps",
    )


def _require_seed_policy(job: Job, lives: list[dict[str, Any]], num_configs: int, num_seeds: int) -> None:
    job.require(
        all(life["seed"] >= 0 for life in lives),
        expected="each trial on the first batches of `train_batches(seed)`, in that order",
        got="other batches",
        likely="one stream of batches shared by several trials, or configurations compared at different seeds: "
        "their luck then counts as their merit",
        look="ask `task.train_batches(seed)` anew for each trial, with the same seeds for every configuration",
    )
    require_each_once(
        job,
        [(life["config"], life["seed"]) for life in lives],
        itertools.product(range(num_configs), range(num_seeds)),
        expected="every configuration once with every seed",
        likely="a seed that is used twice, or a configuration that is changed on the way",
        look="two loops, one in the other",
    )
    found = {(life["config"], life["seed"]): life["first_weights"] for life in lives}
    by_seed = [[found[config, seed] for config in range(num_configs)] for seed in range(num_seeds)]
    job.require(
        all(np.array_equal(one[0], other) for one in by_seed for other in one),
        expected="the same first weights for every configuration at the same seed",
        got="different ones",
        likely="seeded after the model is built, or not at all: the weights are drawn when it is built",
        look="what runs between the seeding and `task.make_model`?",
    )
    job.require(
        not any(np.array_equal(by_seed[0][0], one[0]) for one in by_seed[1:]),
        expected="other first weights at another seed",
        got="the same at every seed",
        likely="a fixed seed: the spread between seeds then shows the order of the data alone",
        look="seed with the trial's own seed",
    )


def _require_modes(job: Job, lives: list[dict[str, Any]]) -> None:
    job.require(
        all(life["trains_in_train_mode"] for life in lives),
        expected="training mode while a trial trains",
        got="evaluation mode: the configuration's dropout does nothing",
        likely="the model is still in the mode of an evaluation before",
        look="`model.train()` before the first step",
    )
    job.require(
        not any(life["judged_in_train_mode"] for life in lives),
        expected="evaluation mode while a trial is judged",
        got="training mode: dropout was on",
        likely="forgot `model.eval()`: configurations with much dropout look worse than they are",
        look="lesson 01, exercise 1.4",
    )


def _require_values(
    job: Job, losses: np.ndarray, lives: list[dict[str, Any]], shape: tuple[int, int]
) -> None:
    job.require(
        losses.shape == shape,
        expected=f"losses of shape {list(shape)}: a row for each configuration, a column for each seed",
        got=f"shape {list(losses.shape)}",
        likely="one number for each configuration, or rows and columns exchanged",
        look="keep every value: the spread over seeds is what the next decision needs",
    )
    for life in lives:
        got = float(losses[life["config"], life["seed"]])
        expected = life["validation"]
        if not math.isfinite(expected):
            job.require(
                math.isinf(got) and got > 0,
                expected="inf for a trial whose loss is not a finite number",
                got=f"{got}",
                likely="NaN is neither smaller nor larger than anything: in a sort or a minimum it ends up anywhere",
                look="`math.isfinite`",
            )
            continue
        likely = "a mean of batch means, the loss of another moment, or rows and columns exchanged"
        if math.isclose(got, life["train"], rel_tol=1e-3):
            likely = "picked on train: the loss of texts that were learnt"
        job.require(
            math.isclose(got, expected, rel_tol=TOLERANCES["float32"]),
            expected=f"{expected:.6g}, the mean over validation samples after the last step",
            got=f"{got:.6g}",
            likely=likely,
            look="evaluate one model by hand, sample by sample",
        )
