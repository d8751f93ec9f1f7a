"""The check of 5.2: whether every trial had the same chance."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_each_once
from autograder.lessons.lesson_05.checks.trials_odd import require_odd_searches
from autograder.lessons.lesson_05.checks.trials_values import (
    BREAKING,
    CALM,
    DIVERGING,
    DROPPING,
    GENTLE,
    KNOWING,
    TOWERING,
    require_right_training,
    require_table,
    require_values,
    run_all,
)

LONG = (204, 225)
"""Steps of a trial that is long, from … to below."""


def check_run_trials(job: Job) -> None:
    """5.2: a fresh model and optimizer for each trial, equal steps, one seed policy, judged on validation."""
    rounds = _secret_rounds(job)
    answers, right = run_all(job, rounds)
    job.counts["trials"] = len(rounds[0]["configs"]) * len(rounds[0]["seeds"])
    job.counts["steps_per_trial"] = rounds[0]["num_steps"]
    for one, answer in zip(rounds, answers, strict=True):
        lives, shape = answer["lives"], (len(one["configs"]), len(one["seeds"]))
        _require_split(job, answer)
        _require_fresh(job, answer, math.prod(shape))
        _require_budget(job, lives, one["num_steps"])
        _require_seed_policy(job, lives, *shape)
        _require_modes(job, lives)
    require_right_training(job, rounds, answers, right)
    for place, answer in enumerate(answers):
        require_table(job, rounds[place], answer)
        require_values(job, place, answer)
    require_odd_searches(job)
    for one, answer in zip(rounds, answers, strict=True):
        _require_own_dropout(job, answer["lives"], len(one["seeds"]))


def _secret_rounds(job: Job) -> list[dict[str, Any]]:
    """Several searches, one after the other: of many trials, of a long one, of some that are short.

    The later ones have seeds and configurations of the first, and are other trials all the same. After a few steps
    the batches of two seeds may be the same: the short ones have one seed.
    """
    rng = job.rng
    seeds = [0, *(1 + rng.choice(10_000, size=2, replace=False)).tolist()]
    many = [CALM, DROPPING, BREAKING, KNOWING, DIVERGING]
    rounds = [
        {
            "configs": many,
            "seeds": rng.permutation(seeds).tolist(),
            "num_steps": int(rng.integers(12, 15)),
        },
        {"configs": [CALM], "seeds": seeds[1:2], "num_steps": int(rng.integers(25, 31))},
        {"configs": [DROPPING, CALM, TOWERING], "seeds": seeds[2:], "num_steps": int(rng.integers(1, 4))},
        # What happens every so many steps shows.
        {"configs": [DROPPING, GENTLE], "seeds": seeds[:1], "num_steps": int(rng.integers(*LONG))},
    ]
    for one in rounds:
        one["seed"] = job.seed() % 10_000
        one["configs"] = [one["configs"][i] for i in rng.permutation(len(one["configs"]))]
    return rounds


def _require_split(job: Job, answer: dict[str, Any]) -> None:
    job.require(
        answer["asked"]["test"] == 0,
        expected="test texts that no trial has seen",
        got=f"`test_batches` asked for {answer['asked']['test']} times",
        likely="picked on test: what chooses among trials is used up as a judge of the winner",
        look="which texts may choose, and which may only judge once at the end?",
    )
    job.require(
        answer["asked"]["validation"] > 0 or not answer["made"],
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
        likely="a reused model: every trial goes on where the one before stopped, and the last looks best"
        if made
        else "results are kept from a search before, which had another task or other steps",
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
        likely="trials that train another model than their own, or none at all: these are different budgets",
        look="count `optimizer.step()` for each model",
    )
    job.require(
        all(life["is_own_config"] for life in lives),
        expected="each optimizer made with the configuration of its trial",
        got="one made with another configuration",
        likely="all trials train with the learning rate of one: the table compares nothing",
        look="what is handed to `task.make_optimizer`?",
    )


def _require_budget(job: Job, lives: list[dict[str, Any]], num_steps: int) -> None:
    steps = [life["num_steps"] for life in lives]
    job.require(
        min(steps) == max(steps),
        expected=f"{num_steps} steps for every trial",
        got=f"between {min(steps)} and {max(steps)}",
        likely="different budgets: a trial that is stopped, leaves a step out or runs out of batches is compared "
        "with whole ones",
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
        likely="seeded after the model is built, once for all trials of a seed and not for each, or not at all: the "
        "weights are drawn when it is built",
        look="what runs between the seeding and `task.make_model`?",
    )
    job.require(
        not any(np.array_equal(by_seed[0][0], one[0]) for one in by_seed[1:]),
        expected="other first weights at another seed",
        got="the same at every seed",
        likely="a fixed seed: the spread between seeds then shows the order of the data alone",
        look="seed with the trial's own seed",
    )


def _require_own_dropout(job: Job, lives: list[dict[str, Any]], num_seeds: int) -> None:
    """What the model drops comes of torch's generator: of the trial's seed, and at every step anew."""
    states = {life["seed"]: life["states"] for life in lives}
    job.require(
        len({states[seed][0] for seed in range(num_seeds)}) == num_seeds,
        expected="torch's generator in another state at another seed, when a trial's training begins",
        got="the same state at several seeds",
        likely="torch is seeded once more, with a number that is no seed of the trial: dropout is the same at "
        "every seed",
        look="`torch.manual_seed(seed)` once, before the model",
    )
    dropping = [life["states"] for life in lives if life["drops"]]
    job.require(
        all(len(set(one)) == len(one) for one in dropping),
        expected="torch's generator in another state at every step of a model with dropout",
        got="a state that comes again",
        likely="torch is seeded at every step: dropout takes out the same places again and again",
        look="`torch.manual_seed(seed)` once, before the model",
    )


def _require_modes(job: Job, lives: list[dict[str, Any]]) -> None:
    job.require(
        all(life["trains_in_train_mode"] for life in lives),
        expected="training mode while a trial trains, in whichever mode its model was made",
        got="evaluation mode: the configuration's dropout does nothing",
        likely="`model.train()` is missing, or the model is still in the mode of an evaluation before",
        look="`model.train()` before the first step",
    )
    job.require(
        not any(life["judged_in_train_mode"] for life in lives),
        expected="evaluation mode while a trial is judged",
        got="training mode: dropout was on",
        likely="forgot `model.eval()`: configurations with much dropout look worse than they are",
        look="lesson 01, exercise 1.4",
    )
