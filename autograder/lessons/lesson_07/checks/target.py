"""The check of exercise 7.6: a lower bill for the same target, by at most two changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import put_told
from autograder.lessons.lesson_07 import baselines

BAR = 1.5
MAX_CHANGES = 2
NUM_SEEDS = (2, 6)  # at least; at most, where the first ones lie near the bar
CLEAR = 1.25  # times the bar, or a share of it
SECONDS = 120.0  # for one training, on a busy machine
CHOICES = {"machine": ("small", "large"), "padding": ("maximum", "longest", "buckets")}
RANGES = {
    "learning_rate": (1e-12, 1e12),
    "micro_batch_size": (1, 256),
    "evaluate_every_steps": (1, 10**12),
    "save_every_steps": (1, 10**12),
}
Settings = dict[str, Any]


def check_two_changes(job: Job) -> None:
    """7.6: at most two settings differ, and over secret seeds the target costs 1.5× less."""
    job.corpus()
    judge = job.worker("baseline", baselines.UNCHANGED)
    baseline: Settings = judge.call("baseline_settings")
    answer = job.learner().call("changed_settings", baseline=baseline)
    job.require(
        not answer["malformed"],
        expected="a dict of settings",
        got=answer["malformed"],
        likely="nothing is returned: `update` changes a dict and returns None",
        look="`settings | {...}`",
    )
    put_told(job, [answer], num_steps="num_optimizer_steps")
    job.require(
        not answer["num_steps"],
        expected="settings from a function that trains nothing",
        got=f"{answer['num_steps']} optimizer steps within it",
        likely="the experiments are in the function: whoever asks for the settings pays for them each time",
        look="experiment in the cells above, and return what you found",
    )
    settings: Settings = answer["settings"]
    changed = _require_settings(job, settings, baseline)
    ratios, of_epochs, of_seconds = [], [], []
    for number in range(NUM_SEEDS[1]):
        job.progress("Training both to the target", number / NUM_SEEDS[1])
        run = {"seconds": SECONDS, "seed": job.seed()}
        theirs = judge.call("run_to_target", settings=settings, **run)
        _require_reached(job, settings, baseline, theirs)
        ours = judge.call("run_to_target", settings=baseline, **run)
        ratios.append(ours["cost"] / theirs["cost"])
        of_seconds.append(ours["seconds"] / theirs["seconds"])
        of_epochs.append(ours["epoch_seconds"] / theirs["epoch_seconds"])
        away = abs(float(np.mean(np.log(ratios))) - math.log(BAR))
        if number + 1 >= NUM_SEEDS[0] and away > math.log(CLEAR):
            break
    gain, faster, epoch = (math.exp(np.mean(np.log(values))) for values in (ratios, of_seconds, of_epochs))
    job.counts |= {"changes": len(changed), "cost_ratio": round(gain, 2), "epoch_time_ratio": round(epoch, 2)}
    likely = "the changes touch a small part of the bill, or one undoes what the other gains"
    if faster >= BAR:
        likely = "time taken for cost: it is sooner at the target, on a machine whose hour costs more than it gains"
    elif epoch >= BAR:
        likely = "optimising epoch time: an epoch is shorter, and more of them are needed"
    job.require(
        gain >= BAR,
        expected=f"the target at {BAR:g} times less than the baseline's cost, over {len(ratios)} secret seeds",
        got=f"{gain:.2f} times less, with {', '.join(changed) or 'nothing'} changed",
        likely=likely,
        look="split the baseline's bill: training, padding, evaluations, saves. Which part is the largest?",
    )


def _require_settings(job: Job, settings: Settings, baseline: Settings) -> list[str]:
    job.require(
        settings.keys() == baseline.keys(),
        expected=f"the settings {', '.join(baseline)}",
        got=f"{', '.join(settings)}"[:200],
        likely="a setting is missing, misspelt or new",
        look="change the values of a copy: `settings | {...}`",
    )
    for name, value in settings.items():
        allowed = (
            f"one of {', '.join(CHOICES[name])}"
            if name in CHOICES
            else "from {:g} to {:g}".format(*RANGES[name])
        )
        is_good = value in CHOICES[name] if name in CHOICES else _is_between(value, *RANGES[name])
        whole = name == "learning_rate" or name in CHOICES or (is_good and float(value).is_integer())
        job.require(
            is_good and whole,
            expected=f"{name} {allowed}{'' if whole else ', a whole number'}",
            got=repr(value)[:60],
            likely="a value that the run cannot use",
            look="the table of settings",
        )
    changed = [name for name in baseline if settings[name] != baseline[name]]
    job.require(
        len(changed) <= MAX_CHANGES,
        expected=f"at most {MAX_CHANGES} changed settings",
        got=f"{len(changed)}: {', '.join(changed)}",
        likely="everything changed at once: then nobody knows what helped",
        look="measure each change alone, and keep the two that save most",
    )
    return changed


def _is_between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and low <= value <= high


def _require_reached(job: Job, settings: Settings, baseline: Settings, run: dict[str, Any]) -> None:
    likely = "a learning rate at which the run diverges, or crawls"
    if settings["micro_batch_size"] > baseline["micro_batch_size"]:
        likely = "optimising epoch time: an epoch is shorter, and its few updates do not reach the target"
    if settings["evaluate_every_steps"] > 50:
        likely = (
            "no evaluation, so nobody sees that the target is reached: the run goes on, and so does the bill"
        )
    job.require(
        run["is_reached"],
        expected="a run that is seen to reach the target, on each secret seed",
        got=f"an accuracy of {run['accuracy']:.0%} after {run['num_steps']} steps, seen by "
        f"{run['num_evaluations']} evaluations",
        likely=likely,
        look="`run_to_target` says `is_reached` and `accuracy`; try several seeds",
    )
