"""The check of exercise 3.4: a plan for a larger batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_keys
from autograder.lessons.lesson_03.checks.recipes import any_recipes, recipes

BASE_BATCH, BASE_RATE, GROWTH, UPDATES = 8, 0.02, 8, 60
# Of the small batch's loss. Scaled rates reached 1.00 of it, with a decay to zero 1.05 to 1.09, unscaled 1.26 or more.
TARGET_SLACK = 1.15
NUM_CLASSES, NUM_FEATURES = 5, 16
PEAK_SLACK = 0.01  # a schedule in whole updates may just miss its top
PEAK_ROUNDING = 1e-3
WARMUP_SHARE = 0.05
NUM_ANY = 150  # recipes of any kind, beside those that tell mistakes apart
RULES = {"sgd": ("linear", 1.0), "adamw": ("square-root", 0.5)}


def check_plan_large_batch(job: Job) -> None:
    """3.4: sizes that fit and reach the target, a rate scaled by rule and warmed up, and a loss that is reached."""
    for wishes in (recipes(job.rng, PEAK_SLACK), any_recipes(job.rng, NUM_ANY)):
        plans = job.learner().call("plans_all", wishes=wishes)
        _require_plans_apart(job, plans, [wish["max_steps"] for wish in wishes])
        for plan, wanted in zip(plans, wishes, strict=True):
            _require_plan(job, plan, wanted)
    _require_target_loss(job)


def _require_plans_apart(job: Job, plans: list[dict[str, Any]], lengths: list[int]) -> None:
    """Fail where all plans have become the last one, which is right."""
    rates = [plan.get("learning_rates", np.zeros(0)) for plan in plans]
    are_last = all(np.array_equal(one, rates[-1]) for one in rates)
    job.require(
        not are_last or len(rates[-1]) != lengths[-1] or len(set(lengths)) == 1,
        expected="a plan of its own for each call",
        got="earlier plans that became the last one",
        likely="one list or dict is made once and filled anew by each call: whoever holds an earlier plan has this one",
        look="make the dict and its list inside the function",
    )


def _require_plan(job: Job, plan: dict[str, Any], wanted: dict[str, Any]) -> None:
    _require_sizes(job, plan, wanted)
    job.require(
        "learning_rates" not in plan["odd"],
        expected="learning rates in a list of floats",
        got=f"a {plan['odd'].get('learning_rates')}",
        likely="an array, a tensor or a generator in place of a list: JSON cannot write it, `if rates` is an error or "
        "always true, and a generator is empty after it was read once",
        look="`[float(rate) for rate in rates]`",
    )
    _require_rates(job, plan, wanted)


def _require_sizes(job: Job, plan: dict[str, Any], wanted: dict[str, Any]) -> None:
    names = ("micro_batch_size", "grad_accum_steps", "global_batch_size", "learning_rates")
    job.require(
        plan["kind"] == "dict",
        expected=f"a dict with {', '.join(names)}",
        got=f"a {plan['kind']}",
        likely="a `return` is missing, or returns something else",
        look="the docstring lists what comes back",
    )
    require_keys(job, plan, names, what="a plan", likely="a key is missing or misspelt, or holds no number")
    micro, steps, total = (plan[name] for name in names[:3])
    job.require(
        all(plan[name] == int(plan[name]) and plan[name] >= 1 for name in names[:3]),
        expected="sizes that are whole numbers from 1 on",
        got=f"{micro:g} rows, {steps:g} steps, {total:g} in all",
        likely="a division that is not rounded: half a row cannot be computed",
        look="`math.ceil(a / b)` rounds up",
    )
    odd = {name: kind for name, kind in plan["odd"].items() if name in names[:3]}
    job.require(
        not odd,
        expected="sizes that are ints",
        got=", ".join(f"{name}: a {kind}" for name, kind in odd.items()),
        likely="a number that was rounded and is a float all the same, as of `np.ceil`: neither `range` nor a sampler "
        "takes it",
        look="`math.ceil(a / b)` and `-(-a // b)` give ints",
    )
    micro, steps, total = int(micro), int(steps), int(total)
    limit, world_size, target = (
        wanted[name] for name in ("max_micro_batch_size", "world_size", "target_batch_size")
    )
    job.require(
        1 <= micro <= limit,
        expected=f"a micro-batch of 1 to {limit} rows, the most that fit",
        got=f"{micro}",
        likely="the batch grows by rows that do not fit into memory",
        look="memory limits the micro-batch; accumulation makes up for it",
    )
    job.require(
        total == micro * steps * world_size,
        expected=f"global_batch_size = {micro} × {steps} × {world_size} = {micro * steps * world_size}",
        got=f"{total}",
        likely="effective batch = micro-batch × devices × accumulation steps: a factor is missing",
        look="each of the devices computes its own micro-batches",
    )
    job.require(
        total >= target,
        expected=f"an effective batch of at least {target}",
        got=f"{total}",
        likely="the number of accumulation steps is rounded down, or the micro-batch that they are made of",
        look="`-(-a // b)` or `math.ceil(a / b)` rounds up",
    )
    fewest = math.ceil(target / (limit * world_size))
    job.require(
        steps <= fewest,
        expected=f"{fewest} accumulation steps: the fewest that reach {target}, {limit} rows on {world_size} devices",
        got=f"{steps}",
        likely=_why_more_steps(micro, steps, total, wanted),
        look="fill the memory first, then accumulate",
    )


def _why_more_steps(micro: int, steps: int, total: int, wanted: dict[str, Any]) -> str:
    limit, world_size, target = (
        wanted[name] for name in ("max_micro_batch_size", "world_size", "target_batch_size")
    )
    fewest = math.ceil(target / (limit * world_size))
    if steps == math.ceil(target / limit):
        return "the devices are forgotten: all of them take part in each step"
    if micro > 1 and total < math.ceil(target / (fewest * world_size)) * fewest * world_size:
        return "steps are added until the target is hit exactly: a batch that exceeds it in fewer steps is asked for"
    return (
        "micro-batches smaller than memory allows, as where rows are rounded down or a divisor of the target is looked "
        "for; or the devices are forgotten: throughput is given away"
    )


def _require_rates(job: Job, plan: dict[str, Any], wanted: dict[str, Any]) -> None:
    rates, max_steps, base = plan["learning_rates"], wanted["max_steps"], wanted["base_learning_rate"]
    job.require(
        rates.shape == (max_steps,) and bool(np.isfinite(rates).all()) and bool((rates >= 0).all()),
        expected=f"{max_steps} learning rates, one for each update, none negative",
        got=f"{rates.size}",
        likely="rates per micro-batch or per epoch, or a schedule that ends early",
        look="`max_steps` counts updates",
    )
    peak, (rule, power) = float(rates.max()), RULES[wanted["optimizer"]]
    growth, of_target = (
        size / wanted["base_batch_size"] for size in (plan["global_batch_size"], wanted["target_batch_size"])
    )
    right = base * growth**power
    # What other rules make of it, the likeliest first.
    others = {
        f"the learning rate is unchanged at {growth:.1f} times the batch: as many epochs, far fewer steps": base,
        "the other optimizer's rule: linear is for SGD, the square root for Adam": base
        * growth ** (1.5 - power),
        "the rate is scaled to the batch that was wished for, not to the one that came of it": base
        * of_target**power,
        "the rate is scaled to the rows of one device": base * (growth / wanted["world_size"]) ** power,
        "the rate is scaled by the accumulation steps alone": base * plan["grad_accum_steps"] ** power,
        "the rate is scaled by another factor than the batch grew by: one rounded to a whole number": base
        * math.floor(growth) ** power,
    }
    is_one_short = np.isclose(rates + (rates[1] - rates[0]), right, rtol=PEAK_ROUNDING).any()
    likely = next(
        (text for text, rate in others.items() if math.isclose(peak, rate, rel_tol=PEAK_ROUNDING)),
        "the base rate is scaled by another factor than the batch grew by, or the warmup ends after the run",
    )
    if peak < right and is_one_short:
        likely = "no update has the peak rate: the warmup ends a step below it, or what follows begins to fall at once"
    job.require(
        math.isclose(peak, right, rel_tol=PEAK_ROUNDING),
        expected=f"a peak rate of {right:.4g}: {rule} scaling of {base:.4g} for {wanted['optimizer']}, from a batch of "
        f"{wanted['base_batch_size']} to one of {plan['global_batch_size']:g}",
        got=f"{peak:.4g}",
        likely=likely,
        look="how many times as large is the batch, and what does the rule make of that factor?",
    )
    _require_warmup(job, rates, peak, base)


def _require_warmup(job: Job, rates: np.ndarray, peak: float, base: float) -> None:
    max_steps, top = len(rates), int((rates >= (1 - PEAK_SLACK) * peak).argmax())
    before = rates[: top + 1]
    likely = "the warmup is too short, as where its share of the updates is rounded down"
    if top == 0 and max_steps < 1 / WARMUP_SHARE:
        likely = "no warmup where the updates are few: a share of them that is rounded to none, or to one that has "
        "the peak"
    elif top == 0:
        likely = "no warmup: the scaled rate meets weights that have not settled"
    elif rates[0] > 0.5 * peak:
        likely = "the warmup begins too high"
        if math.isclose(rates[0], base, rel_tol=PEAK_SLACK):
            likely += ": at the recipe's rate, which is above half the peak where the batch grows little"
    elif (np.diff(before) < -1e-6 * peak).any():
        likely = "the rates fall on their way to the peak"
    job.require(
        rates[0] <= (0.5 + 1e-6) * peak
        and top + 1 >= WARMUP_SHARE * max_steps
        and bool((np.diff(before) >= -1e-6 * peak).all()),
        expected="a warmup: rates that rise from at most half the peak over "
        f"{math.ceil(WARMUP_SHARE * max_steps)} of {max_steps} updates or more",
        got=f"a first rate of {rates[0] / peak:.0%} of the peak, which comes at update {top + 1}",
        likely=likely,
        look="`(step + 1) / warmup_steps` for the first updates",
    )
    levels = len(np.unique(np.round(before / peak, 4)))
    job.require(
        top < 4 or levels > 2,
        expected="rates that rise to the peak",
        got=f"one rate for {top} updates, then the peak",
        likely="a jump in place of a warmup",
        look="plot your rates",
    )


def _require_target_loss(job: Job) -> None:
    """A small model of ours follows the plan: SGD, 8 times the batch, an eighth of the updates."""
    target = GROWTH * BASE_BATCH
    wanted: dict[str, Any] = {
        "target_batch_size": target,
        "max_micro_batch_size": 2 * BASE_BATCH,
        "world_size": 1,
        "base_batch_size": BASE_BATCH,
        "base_learning_rate": BASE_RATE,
        "max_steps": UPDATES,
        "optimizer": "sgd",
    }
    plan = job.learner().call("plan_once", **wanted)
    _require_plan(job, plan, wanted)
    seed = job.seed()
    small = _loss_after(seed, np.full(GROWTH * UPDATES, BASE_RATE), BASE_BATCH)
    reached = _loss_after(seed, plan["learning_rates"], int(plan["global_batch_size"]))
    job.counts["loss_small_batch"], job.counts["loss_large_batch"] = round(small, 4), round(reached, 4)
    job.require(
        reached <= TARGET_SLACK * small,
        expected=f"a loss of at most {TARGET_SLACK * small:.3f} after {UPDATES} updates of {target}: what "
        f"{GROWTH * UPDATES} updates of {BASE_BATCH} reach, and {TARGET_SLACK - 1:.0%}",
        got=f"{reached:.3f}",
        likely="the rate is right at its peak, but too low for most of the run: it falls too early or rises too late",
        look="plot your rates: which part of the updates runs above half the peak?",
    )


def _loss_after(seed: int, rates: np.ndarray, batch_size: int) -> float:
    """Cross-entropy on fresh samples of a linear classifier, after one SGD update for each rate."""
    rng, held_out = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    means = 0.4 * rng.normal(size=(NUM_CLASSES, NUM_FEATURES))
    weights = np.zeros((NUM_FEATURES, NUM_CLASSES))

    def draw(rng: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(NUM_CLASSES, size=number)
        return means[labels] + rng.normal(size=(number, NUM_FEATURES)), labels

    def probabilities(inputs: np.ndarray) -> np.ndarray:
        logits = inputs @ weights
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    for rate in rates:
        inputs, labels = draw(rng, batch_size)
        error = probabilities(inputs)
        error[np.arange(batch_size), labels] -= 1.0
        weights -= rate * (inputs.T @ error) / batch_size
    inputs, labels = draw(held_out, 4000)
    return float(-np.log(probabilities(inputs)[np.arange(len(labels)), labels] + 1e-30).mean())
