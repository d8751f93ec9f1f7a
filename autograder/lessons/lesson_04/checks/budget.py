"""The check of exercise 4.4: steps saved, the best weights kept, a model about as good as the run's best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_keys
from autograder.lessons.lesson_04 import baselines
from autograder.lessons.lesson_04.checks.budget_mistakes import CHOSEN, REPORTED, Run

RATES = (5e-3, 4e-3, 3e-3, 3e-3, 2e-3, 2e-3, 1.5e-3, 1.2e-3)
"""Learning rates of the runs: one needs four times as many steps as another."""
TO_THE_END = 2e-4
"""That of two runs more, which are in no mean and show how a loop ends: one gets better at every validation."""
SHORTER = (383, 389, 397)
"""It may have so many steps, which no other piece than single steps fills."""
TURNS_AT = (384, 393)
"""The other falls apart from a step between these on: it comes to the end too, and its best lies behind it."""
DOWNHILL = -TO_THE_END
"""That of one that only gets worse: its first validation is the best, and a NaN soon follows."""
LEVELS = {"longest": (4.0, 5.0), "turning": (9.2, 9.6), "downhill": (8.5, 9.0)}
"""Powers of ten: no unit of a loss is known beforehand, and a float is finer than 32 bits. The first is below 0."""
MAX_STEPS = 400
MIN_SAVED = 0.30
MARGIN = 3.0
"""Points of test accuracy below that at the lowest loss on the whole validation set, mean over the runs."""
NUMBER = 0
"""Under which the run is stored: `harness.stored_run`."""
_KEYS = ("best_step", "loss")
_HARDLY = 0.02  # above the lowest loss, as with a margin


def check_stop_early(job: Job) -> None:
    """4.4: at least 30 % of the steps saved, the best weights kept, and hardly worse than the run's best."""
    job.serves = True  # each step, from outside of the solution's process
    runs = []
    for number, rate in enumerate(job.rng.permutation(RATES)):
        job.progress("Training with your loop, and on without it", number / len(RATES))
        runs.append(_trained(job, float(rate)))
    if all(run.is_kept for run in runs) and len({run.num_steps for run in runs}) > 1:
        _require_patience(job, runs)  # now: who gives up at once keeps nothing where the first loss is NaN
    level = {name: float(10 ** job.rng.uniform(*powers)) for name, powers in LEVELS.items()}
    longest = _trained(job, TO_THE_END, max_steps=int(job.rng.choice(SHORTER)), level=-level["longest"])
    turning = _trained(job, TO_THE_END, turns_at=int(job.rng.integers(*TURNS_AT)), level=level["turning"])
    every = [*runs, longest, turning, _trained(job, DOWNHILL, level=level["downhill"])]
    _require_best(job, every)
    _require_report(job, every)
    shares = [(run.num_steps + len(run.seen)) / MAX_STEPS for run in runs]
    saved = 1.0 - float(np.mean(shares))
    job.counts["steps_saved"] = round(saved, 3)
    job.require(
        saved >= MIN_SAVED,
        expected=f"at least {MIN_SAVED:.0%} of the steps saved (a validation counts as one step)",
        got=f"{saved:.0%} (mean of {len(runs)} runs)",
        likely="nothing ends the loop before `max_steps`"
        if all(run.num_steps == MAX_STEPS for run in runs)
        else "patience is too large, or validations are too frequent",
        look="patience × steps between validations is what each run spends after its best",
    )
    _require_by_validations(job, runs)
    _require_patience(job, runs)


def _require_by_validations(job: Job, runs: list[Run]) -> None:
    by_rate = [run.num_steps for run in sorted(runs, key=lambda run: -run.rate)]
    half = len(runs) // 2
    fast, slow = float(np.mean(by_rate[:half])), float(np.mean(by_rate[half:]))
    is_fixed = len(set(by_rate)) == 1
    job.require(
        slow > fast,
        expected="an end that comes later where a run learns more slowly",
        got=f"{by_rate[0]} steps in each of {len(runs)} runs; one needs four times as many as another"
        if is_fixed
        else f"{fast:.0f} steps on average where it learns fast, {slow:.0f} where it learns slowly",
        likely="a fixed number of steps ends the loop, and no validation does"
        if is_fixed
        else "something else than the validations ends the loop, or the count of bad ones goes on at the good ones",
        look="end it when several validations in a row have not been better than the best",
    )


def _require_patience(job: Job, runs: list[Run]) -> None:
    difference = float(np.mean([run.above_the_best for run in runs]))
    job.counts["points_above_the_best_step"] = round(difference, 2)
    job.require(
        difference >= -MARGIN,
        expected=f"a test accuracy within {MARGIN:g} points of that at the run's best step",
        got=f"{difference:+.1f} points (mean of {len(runs)} runs)",
        likely="patience is too small: one unlucky validation ends the run, while the model still learns",
        look="plot the validation loss: how long are its bumps, counted in validations?",
    )


def _trained(
    job: Job, rate: float, turns_at: int = MAX_STEPS, max_steps: int = MAX_STEPS, level: float = 0.0
) -> Run:
    trusted = job.worker("baseline", baselines.STOP_EARLY)
    which = {
        "seed": job.seed(),
        "rate": rate,
        "is_exact": abs(rate) == TO_THE_END,
        "turns_at": turns_at,
        "max_steps": max_steps,
        "level": level,
    }
    whole = trusted.call("recorded", **which)
    _store(job, whole, max_steps)
    names = ("held_out", "rows_seed", "num_validated")
    answer = job.learner().call(
        "stop_early", max_steps=max_steps, level=level, **{name: whole[name] for name in names}
    )
    job.require(
        not answer["refusal"],
        expected=f"a loop that ends by itself, after at most {max_steps} steps",
        got=f"ValueError: {answer['refusal']}",
        likely="the same number of steps is trained each time, also where fewer are left: `run.train` refuses that",
        look="`run.train(min(every, run.max_steps - run.num_steps))`, while there are any",
    )
    answer |= _asked_for(job, max_steps)
    job.require(
        bool(answer["validated"]) and answer["num_steps"] > 0,
        expected="a loop that trains and validates",
        got=f"{answer['num_steps']} steps, {len(answer['validated'])} validations",
        likely="`run.train` or `run.validate` is never called",
        look="train a few steps, validate, decide; again",
    )
    require_keys(job, answer["report"], _KEYS)
    asked = {name: answer[name] for name in ("validated", "num_steps", "state")}
    found = trusted.call("judge", **which, **asked)
    return Run(
        rate=rate,
        num_steps=answer["num_steps"],
        max_steps=max_steps,
        report=answer["report"],
        # As often as it was asked, for each time counts.
        seen=[at for step in answer["validated"] for at in found["seen"] if at["step"] == step],
        **{name: found[name] for name in ("weights_at", "parameters_at", "nearly_at")},
        again=found["again"],
        above_the_best=found["accuracy"] - found["accuracy_at_best"],
    )


def _store(job: Job, whole: dict[str, Any], max_steps: int) -> None:
    """A record for each step, and one for each validation, which says whether its loss is NaN."""
    records = [record.tobytes() for record in whole["records"].astype(np.float64)]
    validations = [b"\1" if number in whole["broken"] else b"\0" for number in range(2 * max_steps)]
    job.learner().storage.put(NUMBER, records + validations, 0.0)


def _asked_for(job: Job, max_steps: int) -> dict[str, Any]:
    """How far the run was trained, and after which steps it was validated, by what was asked of the storage."""
    num_steps, validated = 0, []
    for index in job.learner().storage.asked(NUMBER).order:
        if index > max_steps:
            validated.append(num_steps)
        num_steps = max(num_steps, index) if index <= max_steps else num_steps
    return {"num_steps": num_steps, "validated": validated}


def _require_best(job: Job, runs: list[Run]) -> None:
    wrong = [run for run in runs if not run.is_kept]
    if not wrong:
        return
    named_nan = [run for run in wrong if math.isnan(run.report["loss"])]
    wrong = [run for run in wrong if run not in named_nan] or wrong  # any other mistake first
    run = wrong[0]
    names = [n for n, (_, kept) in CHOSEN.items() if all(each.weights_at in kept(each) for each in wrong)]
    if "first" in names and "last" not in names:
        names = [
            "first"
        ]  # where it is the best of all, what comes second may have the lowest training loss by chance
    elif "train" in names and all(each.reports("best_step", each.weights_at) for each in wrong):
        names = ["train"]  # chosen, and the last only because its training loss is the lowest
    if "once" in names and all(0.0 < each.report["loss"] - each.best["loss"] < _HARDLY for each in wrong):
        names = ["once"]
    name = names[0] if names else ""
    likely = "other weights are kept than those that were validated"
    if wrong == named_nan:
        name = "NaN"
        likely = CHOSEN[name][0]
    elif (
        name == "last" and len(wrong) < len(runs) and all(each.num_steps == each.max_steps for each in wrong)
    ):
        likely = (
            "the best weights are put back only where validations end the loop: a run that comes to "
            "`max_steps` keeps its last"
        )
    elif name == "worst" and all(each.best["loss"] < 0.0 for each in wrong):
        likely = "a loss below 0 is passed over: no sign of a loss is known beforehand"
    elif name:
        likely = CHOSEN[name][0]
    elif all(each.parameters_at == each.best["step"] for each in wrong):
        likely = (
            "the parameters alone are put back, or some buffers, such as those of floats, or buffers in another dtype: "
            "the `state_dict()` has them all"
        )
    elif all(each.nearly_at == each.best["step"] for each in wrong):
        likely = "the right weights are kept, and rounded, as by a cast to 16 bits"
    job.require(
        False,
        expected=f"at the end the weights of step {run.best['step']:.0f}, your best validation "
        f"(loss {run.best['loss']:.3f})",
        got=f"those of step {run.weights_at}"
        if run.weights_at >= 0
        else "weights of none of your validations",
        likely=likely,
        look="copy the weights at each new best (`copy.deepcopy(model.state_dict())`), and load them at the end"
        if name in ("last", "")
        else "ask `math.isnan` first: such a validation is never a new best, and the best before it stays"
        if name == "NaN"
        else 'compare `validate()["loss"]`; a lower one is a new best',
    )


def _require_report(job: Job, runs: list[Run]) -> None:
    for name in _KEYS:
        right = {"best_step": "step", "loss": "loss"}[name]
        wrong = [run for run in runs if not run.reports(name, run.best[right])]
        if not wrong:
            continue
        likely = "the report is not of the validation whose weights were kept"
        if all(math.isclose(run.report[name], run.best[right], rel_tol=1e-6, abs_tol=0.05) for run in wrong):
            likely = "the right number is reported, and rounded: what the validation said is asked for"
        likely = next(
            (
                text
                for text, of in REPORTED.values()
                if all(name in of(run) and run.reports(name, of(run)[name]) for run in wrong)
            ),
            likely,
        )
        job.require(
            False,
            expected=f"{name} = {wrong[0].best[right]:.6g}",
            got=f"{wrong[0].report[name]:.6g}",
            likely=likely,
            look="report what `validate` said when the weights were kept",
        )
