"""The runs that exercise 4.5 is played through: hours of training in simulated seconds."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

STEADY = "steady steps"
SLOWER_STEPS = "steps that become 5 times slower"
FASTER = "steps that become 4 times faster"
SLOWER = "a disk that becomes 8 times slower"
QUICKER = "a disk that becomes 8 times faster"
DEAR_AT_FIRST = "a first save that took 20 times as long"
FREE = "saves that cost nothing, but for the first"
SMALL_BUDGET = "a slow disk and a small budget"
WEEKS = "a run of some weeks, whose saves take long"
UNEVEN = "a disk on which every third save takes 4 times as long"
UNASKED = "saves that nobody asked for, too"
SHORT = "a run of a few seconds"
BEGUN_LATER = "saves that begin some steps after they were due"
LONG_STEPS = "a slow disk and long steps"
LONG_STEPS_CHEAP = "long steps, and saves hardly cheap enough for both limits"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One run; each has something that a policy with a mistake gets wrong."""

    name: str
    max_lost_seconds: float
    max_overhead: float
    steps: list[float]
    saves: list[float]
    first_save: float
    begins_at: float = 1000.0
    delay: int = 0
    in_turn: tuple[float, ...] = (1.0,)
    """One save after the other takes so many times what it would."""
    unasked_every: float = 0.0
    """Steps, in the mean, from one save that was not due to the next; none where 0."""
    is_dear: bool = False
    """Whether saves cost so much all the time that the budget decides, not the limit."""

    def costs_of(self, saved_after: list[int]) -> list[float]:
        """What the saves after these steps took."""
        times = itertools.cycle(self.in_turn)
        return [self.saves[at] * time for at, time in zip(saved_after, times, strict=False)]

    def for_the_harness(self) -> dict[str, Any]:
        """What the learner's worker is told: nothing of what is looked for."""
        told = asdict(self) | {"steps": np.array(self.steps), "saves": np.array(self.saves)}
        del told["name"], told["is_dear"]
        return told


def scenarios(rng: np.random.Generator) -> list[Scenario]:
    """Limits, budgets, costs, paces, and where the clock begins, all of them different from run to run."""
    limit, step = float(rng.uniform(400, 900)), float(rng.uniform(6, 9))
    num_steps = round(18 * limit / step)
    half = num_steps // 2
    steady = step * rng.uniform(0.8, 1.25, size=num_steps)
    slower = np.concatenate([steady[:half], 5 * steady[half : half + half // 3]])
    faster = np.concatenate([steady[:half], steady[half:] / 4])
    twice = np.concatenate([steady, steady])

    def run(name: str, steps: np.ndarray, budget: float, cost: float, **settings: Any) -> Scenario:
        """`cost` of a save as a share of what the budget has for it, once in `limit` seconds; noise on top."""
        costs = budget * limit * cost * rng.uniform(0.97, 1.03, size=len(steps))
        if name == SLOWER:
            costs[half:] *= 8
        if name == QUICKER:
            costs[: len(steps) // 2] *= 8
        given = {"max_lost_seconds": limit, "first_save": float(costs[0])} | settings
        return Scenario(name=name, max_overhead=budget, steps=steps.tolist(), saves=costs.tolist(), **given)

    cheap, dear = 0.12 * 0.05 * limit, 2.4
    # No whole number of seconds of work goes with one of saving, to the next below or to the nearest.
    small, large = float(rng.choice([0.01, 0.02, 0.03])), float(rng.choice([0.23, 0.29, 0.3]))
    long = np.concatenate([twice, twice])
    # Of nearly the same length, and so long that it takes more than two of them to pay for a save.
    lengthy = limit / float(rng.uniform(2.6, 2.8)) * rng.uniform(0.98, 1.02, size=250)
    at_ease = run(STEADY, steady, 0.05, 0.12, begins_at=0.0)
    too_slow = run("a disk too slow for both limits", twice, 0.05, dear, is_dear=True)
    return [
        at_ease,
        run(SLOWER_STEPS, slower, small, 0.2),
        # Long enough that a mean over all saves, cheap ones first, takes more than its share.
        run(SLOWER, twice, 0.05, 0.3, begins_at=1.7e9),
        too_slow,
        # The same by other units: no hour and no day is the longest that there is.
        _stretched(too_slow, WEEKS, 300.0),
        run(SMALL_BUDGET, twice, small, dear, is_dear=True, begins_at=0.0),
        run("a slow disk and a large budget", twice, large, dear, is_dear=True),
        run("no work may be lost", steady, large, 0.6, is_dear=True, max_lost_seconds=0.0),
        run(QUICKER, twice, 0.05, 0.3),
        run(DEAR_AT_FIRST, twice, 0.05, 0.12, first_save=20 * cheap),
        run(BEGUN_LATER, steady, small, 0.12, delay=int(rng.integers(2, 5))),
        run(FREE, twice, large, 0.0, begins_at=0.0, first_save=1.8 * large * limit),
        run("a limit shorter than a step", steady[:200], 0.05, 0.002, max_lost_seconds=0.5 * step),
        # Cheap enough for both limits, if not by much; before the first step there are no moments to be saved.
        run(FASTER, faster, 0.1, 0.62, begins_at=-5000.0, first_save=0.02 * limit),
        # So many saves that a few per cent too much show.
        run("a slow disk, and many saves", np.concatenate([long, long]), 0.05, 1.5, is_dear=True),
        run(UNEVEN, long, 0.05, 1.0, in_turn=(1.0, 1.0, 4.0)),
        run(UNASKED, steady, 0.05, 0.12, unasked_every=limit / step),
        _stretched(at_ease, SHORT, 1 / 3000),
        # One step too early, and a save takes far more than its share.
        run(LONG_STEPS, dear * lengthy, 0.05, dear, is_dear=True),
        run(LONG_STEPS_CHEAP, lengthy, 0.05, 0.9),
    ]


def _stretched(run: Scenario, name: str, times: float) -> Scenario:
    """The same run, with every second so many times as long."""
    return replace(
        run,
        name=name,
        max_lost_seconds=times * run.max_lost_seconds,
        steps=[times * seconds for seconds in run.steps],
        saves=[times * seconds for seconds in run.saves],
        first_save=times * run.first_save,
    )
