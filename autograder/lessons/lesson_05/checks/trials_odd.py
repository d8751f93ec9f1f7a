"""What 5.2 asks of searches that are none: of 0 steps, or with an error on the way; and of each trial, alone."""

from __future__ import annotations

import math

from autograder.engine import Job
from autograder.lessons.lesson_05.checks.trials_values import CALM, CLOSE, DROPPING


def require_odd_searches(job: Job) -> None:
    """Nothing is trained in 0 steps; and whatever fails in a trial, the caller hears of it."""
    seed = job.seed() % 10_000
    seeds = [1 + seed, 2 + seed]
    found = job.learner().call("run_untrained", seed=seed, configs=[CALM], seeds=seeds)
    job.require(
        not found["num_steps"],
        expected="no step where num_steps is 0: the model as it was made, for comparison",
        got=f"{found['num_steps']} in {len(seeds)} trials",
        likely="whether there were enough steps is asked after a step: 0 of them are one",
        look="`for _ in range(num_steps)` does nothing where it is 0",
    )
    got, right = sorted(found["losses"]), sorted(found["right"])
    job.require(
        len(got) == len(right) == len(seeds)
        and all(math.isclose(a, b, rel_tol=CLOSE) for a, b in zip(got, right, strict=True)),
        expected="where num_steps is 0, the validation losses of the models as they were made: "
        + (" and ".join(f"{value:.6g}" for value in right) or "no model was made"),
        got=", ".join(f"{value:.6g}" for value in got) or "none",
        likely="0 steps are taken for none that were asked for",
        look="a trial of 0 steps is judged like any other",
    )
    # Of which one draws as much as the last one, and one is equal to it.
    company = [CALM, DROPPING, DROPPING | {"dropout": 0.5}, DROPPING]
    beside, alone, *equal = job.learner().call(
        "run_in_company", seed=seed, configs=company, seeds=[seeds[1], *seeds], num_steps=4
    )
    job.require(
        all(value and math.isfinite(value) for value in (beside, *equal)),  # 0 as in an array of zeros
        expected=f"a loss in both rows of two equal configurations, in both columns of two equal seeds: {alone:.6g}",
        got=", ".join(f"{value:.6g}" for value in (*equal, beside)),
        likely="a row is found by its configuration, or a column by its seed, of which there may be two: one of "
        "them is never written",
        look="`enumerate(configs)`, `enumerate(seeds)`",
    )
    job.require(
        math.isclose(beside, alone, rel_tol=CLOSE),
        expected=f"the same loss of a trial alone as after others: {alone:.6g}",
        got=f"{beside:.6g}",
        likely="the seed holds for the weights alone: dropout draws from the state that came before, so a trial's loss "
        "depends on those before it",
        look="`torch.manual_seed(seed)` before the model, and nothing that takes it back before the trial is trained",
    )
    failed = job.learner().call("run_failing", seed=seed, configs=[DROPPING, CALM], seeds=seeds, num_steps=2)
    for one in failed:
        job.require(
            one["is_heard"],
            expected=f"the error that comes of {one['where']}: {one['error']}",
            got=one["said"],
            likely="an error is caught on the way and passed over, as if the trial had diverged: a misspelt key "
            "becomes a bad configuration",
            look="a loss that is no finite number is no error: what `except` is needed for that?",
        )
