"""The check of exercise 4.5: how often to save, by what it costs and what it protects."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.engine import Job, measure_speedup

MAX_OVERHEAD = 0.05
_SLACK = 0.002  # one save more or less at the end of a run
_PATIENT = 2.5  # times the shortest interval that the budget allows, where the budget decides
_EVERY_STEP = 0.5  # saves per step


@dataclass(frozen=True)
class _Scenario:
    name: str
    max_lost_seconds: float
    steps: list[float]
    saves: list[float]

    @property
    def is_affordable(self) -> bool:
        """Whether a save every `max_lost_seconds` keeps well within the budget."""
        return max(self.saves) < 0.6 * MAX_OVERHEAD * self.max_lost_seconds


def check_cadence(job: Job) -> None:
    """4.5: at most 5 % of the time in saves, little at risk, on simulated clocks; then the pauses by a real one."""
    for scenario in _scenarios(job.rng):
        saved_after = job.learner().call(
            "simulate_run",
            max_lost_seconds=scenario.max_lost_seconds,
            max_overhead=MAX_OVERHEAD,
            steps=scenario.steps,
            saves=scenario.saves,
        )["saved_after"]
        _require_bounds(job, scenario, [int(at) for at in saved_after])
    measure_speedup(
        job,
        function="pauses_segment",
        compare=lambda theirs, own: _require_saves(job, own),
        likely="the pauses take longer than 5 % of the time: asking costs as much as saving, or saves come too often",
        look="`is_due` runs after every step: a comparison of two numbers is enough",
    )


def _scenarios(rng: np.random.Generator) -> list[_Scenario]:
    """Hours of training in simulated seconds, each with something that a fixed number of steps gets wrong."""
    limit, step = float(rng.uniform(400, 900)), float(rng.uniform(6, 9))
    num_steps = round(24 * limit / step)
    jitter = rng.uniform(0.8, 1.25, size=num_steps)
    cheap, half = 0.006 * limit, num_steps // 2
    steady = list(step * jitter)
    slower = [*steady[:half], *(5 * second for second in steady[half : half + half // 4])]
    faster = [second if at < half else second / 4 for at, second in enumerate(steady)]
    dear = 0.12 * limit  # every `limit` seconds it would cost 12 %

    def costs(seconds: float, steps: list[float]) -> list[float]:
        return list(seconds * rng.uniform(0.97, 1.03, size=len(steps)))

    rising = costs(cheap, steady)
    rising[half:] = [4 * second for second in rising[half:]]
    return [
        _Scenario("steady steps", limit, steady, costs(cheap, steady)),
        _Scenario("steps that become 5 times slower", limit, slower, costs(cheap, slower)),
        _Scenario("steps that become 4 times faster", limit, faster, costs(cheap, faster)),
        _Scenario("a disk that becomes 4 times slower", limit, steady, rising),
        _Scenario("a disk too slow for both limits", limit, steady * 2, costs(dear, steady * 2)),
    ]


def _require_bounds(job: Job, scenario: _Scenario, saved_after: list[int]) -> None:
    spent = sum(scenario.saves[at] for at in saved_after)
    overhead = spent / (spent + sum(scenario.steps))
    at_risk, allowed = _at_risk(scenario, saved_after)
    job.counts[f"overhead, {scenario.name}"] = round(float(overhead), 4)
    many = len(saved_after) > _EVERY_STEP * len(scenario.steps)
    job.require(
        overhead <= MAX_OVERHEAD + _SLACK,
        expected=f"at most {MAX_OVERHEAD:.0%} of the time spent in saves ({scenario.name})",
        got=f"{overhead:.1%}: {len(saved_after)} saves in {len(scenario.steps)} steps",
        likely=_why_too_much(scenario, many),
        look="a save that takes s seconds may come after 19 s seconds of work, not sooner",
    )
    job.require(
        at_risk <= allowed,
        expected=f"at most {allowed:,.0f} s of work at risk ({scenario.name})",
        got=f"{at_risk:,.0f} s between two saves" if saved_after else "no save at all",
        likely=_why_too_little(scenario, saved_after),
        look="the limit is in seconds: ask `clock()`, after each step",
    )


def _at_risk(scenario: _Scenario, saved_after: list[int]) -> tuple[float, float]:
    """The most work in seconds between two saves, and what may be: the limit is met at the step that passes it."""
    borders = [-1, *saved_after, len(scenario.steps) - 1]
    gaps = [sum(scenario.steps[a + 1 : b + 1]) for a, b in itertools.pairwise(borders)]
    limit = scenario.max_lost_seconds
    if not scenario.is_affordable:
        limit = max(limit, _PATIENT * max(scenario.saves) / MAX_OVERHEAD)
    return max(gaps), limit + 2 * max(scenario.steps)


def _why_too_much(scenario: _Scenario, many: bool) -> str:
    if many:
        return "it saves at nearly every step"
    if not scenario.is_affordable:
        return (
            "the cost of a save is not looked at: where the disk is slow, the budget decides, not the limit"
        )
    return "it saves more often than the cost of a save allows"


def _why_too_little(scenario: _Scenario, saved_after: list[int]) -> str:
    if not saved_after:
        return "it reads another clock than the one it was given, or waits for something that never comes"
    if "become" in scenario.name and "steps" in scenario.name:
        return "it counts steps, not seconds: when steps become slower, the same number of them is more work"
    if not scenario.is_affordable:
        return "it waits far longer than the budget asks for"
    return "it saves too late: `is_due()` is False although `max_lost_seconds` of work are at risk"


def _require_saves(job: Job, own: dict[str, Any]) -> None:
    needed = int(0.8 * own["work_seconds"] / 0.2) - 1
    job.require(
        own["num_saves"] >= needed,
        expected=f"under the real clock too a save every 0.2 s of work at most: {needed} or more",
        got=f"{own['num_saves']}",
        likely="the policy saves less when it believes that it is timed",
        look="it should depend on the clock that it is given, and on nothing else",
    )
