"""The check of exercise 4.4: steps saved, the best weights kept, a model about as good as the run's best."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job
from autograder.lessons.checking import require_report
from autograder.lessons.lesson_04 import baselines

NUM_RUNS = 8
MIN_SAVED = 0.30
MARGIN = 3.0
"""Points of test accuracy below that at the lowest loss on the whole validation set, mean over the runs.

Over 30 runs it was +0.5 ± 2.2 with a patience of 5 validations, each after 20 steps; -9.4 ± 6.4 with a patience of 1,
each after 5 steps. The end of the run is no measure: it is 5 points lower itself, and what stops far too early passes.
"""


def check_stop_early(job: Job) -> None:
    """4.4: at least 30 % of the steps saved, the best weights kept, and hardly worse than the run's best."""
    trusted, judged, shares = job.worker("baseline", baselines.STOP_EARLY), [], []
    for number in range(NUM_RUNS):
        job.progress("Training with your loop, and to the end without it", number / NUM_RUNS)
        seed = job.seed()
        answer = job.learner().call("stop_early", seed=seed)
        job.require(
            bool(answer["validated"]) and answer["num_steps"] > 0,
            expected="a loop that trains and validates",
            got=f"{answer['num_steps']} steps, {len(answer['validated'])} validations",
            likely="`run.train` or `run.validate` is never called",
            look="train a few steps, validate, decide; again",
        )
        found = trusted.call("judge", seed=seed, validated=answer["validated"], weights=answer["weights"])
        max_steps = float(found["max_steps"])
        shares.append((answer["num_steps"] + len(answer["validated"])) / max_steps)
        _require_best(job, answer, found)
        judged.append(found["accuracy"] - found["accuracy_at_best"])
    saved, difference = 1.0 - float(np.mean(shares)), float(np.mean(judged))
    job.counts |= {"steps_saved": round(saved, 3), "points_above_the_best_step": round(difference, 2)}
    job.require(
        difference >= -MARGIN,
        expected=f"a test accuracy within {MARGIN:g} points of that at the run's best step",
        got=f"{difference:+.1f} points (mean of {NUM_RUNS} runs)",
        likely="patience is too small: one unlucky validation ends the run, while the model still learns",
        look="plot the validation loss: how long are its bumps, counted in validations?",
    )
    job.require(
        saved >= MIN_SAVED,
        expected=f"at least {MIN_SAVED:.0%} of the steps saved (a validation counts as one step)",
        got=f"{saved:.0%} (mean of {NUM_RUNS} runs)",
        likely="patience is too large, validations are too frequent, or nothing ends the loop",
        look="patience × steps between validations is what each run spends after its best",
    )


def _require_best(job: Job, answer: dict[str, Any], found: dict[str, Any]) -> None:
    seen = found["seen"]
    right = min(seen, key=lambda at: at["loss"])
    at_step = {
        "last": max(seen, key=lambda at: at["step"])["step"],
        "train": min(seen, key=lambda at: at["train_loss"])["step"],
        "worst": max(seen, key=lambda at: at["loss"])["step"],
        "accuracy": max(seen, key=lambda at: at["accuracy"])["step"],
    }
    likely = {
        "train": "the best is chosen on the training loss, which goes on falling when the model learns by heart",
        "last": "the last weights, not the best: nothing is put back at the end, or the kept `state_dict()` was "
        "no copy and went on training",
        "worst": "`mode` is inverted: the worst validation is taken for the best",
        "accuracy": "the best is chosen on the accuracy; the loss is asked for",
    }
    step = found["weights_at"]
    reported = int(answer["report"].get("best_step", -1))
    name = next((name for name in likely if at_step[name] in (step, reported)), "")
    # The last weights with the right step in the report: kept by reference. Chosen wrongly, both are wrong.
    if step == at_step["last"] and reported == right["step"]:
        name = "last"
    job.require(
        step == right["step"],
        expected=f"at the end the weights of step {right['step']}, your best validation (loss {right['loss']:.3f})",
        got=f"those of step {step}" if step >= 0 else "weights of none of your validations",
        likely=likely.get(name) or "other weights are kept than those that were validated",
        look='compare `validate()["loss"]`; a lower one is a new best'
        if name in ("train", "worst", "accuracy")
        else "copy the weights at each new best (`copy.deepcopy(model.state_dict())`), and load them at the end",
    )
    likely_report = "the report is of another validation than the weights: of the last, not the best"
    require_report(
        job,
        answer["report"],
        {"best_step": right["step"], "loss": right["loss"]},
        dict.fromkeys(("best_step", "loss"), likely_report),
        look="report what `validate` said when the weights were kept",
    )
