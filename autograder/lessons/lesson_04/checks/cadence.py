"""The check of exercise 4.5: how often to save, by what it costs and what it protects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from autograder.engine import Job, Worker, measure_speedup
from autograder.lessons.lesson_04.checks.cadence_runs import (
    BEGUN_LATER,
    DEAR_AT_FIRST,
    FASTER,
    FREE,
    LONG_STEPS,
    LONG_STEPS_CHEAP,
    QUICKER,
    SHORT,
    SLOWER,
    SLOWER_STEPS,
    SMALL_BUDGET,
    STEADY,
    UNASKED,
    UNEVEN,
    Scenario,
    scenarios,
)

_PATIENT = 2.5  # times the shortest interval that the budget allows, where the budget decides
_ROOM = 0.65  # of the limit that the budget may ask for, if the limit is to hold for sure
_RECENT = 8  # saves whose costs a policy may still have in mind
_EVERY_STEP = 0.5  # saves per step
_SECOND = 1e-3  # what a clock far from zero rounds
_HASTY = 0.8  # of the shortest interval that the budget allows
_GROWN = 4.0  # times the CPU time of an early call
_STEPS, _SAVE_SECONDS = 200, 0.002  # under the clock: steps in one of a segment, and what a save takes
_KEPT = "the cost of an earlier save is kept for ever, or in a mean of all: what counts is what the last ones took"

Kind = Literal["too often", "too late", ""]


@dataclass(frozen=True)
class _Played:
    """What a policy did in one scenario, and what is wrong with it."""

    scenario: Scenario
    due: np.ndarray
    saved_after: list[int]

    @property
    def overhead(self) -> float:
        """Share of the time in saves, the last one aside: the work that pays for it may lie behind the end."""
        costs = self.scenario.costs_of(self.saved_after)
        spent = sum(costs)
        return float(max(spent - max(costs, default=0.0), 0.0) / (spent + sum(self.scenario.steps)))

    def late(self) -> tuple[float, float]:
        """The most work in seconds at risk where no save was due, and what may be; of where it goes beyond by most."""
        return max(self._at_risk(), key=lambda found: found[0] - found[1])

    def _at_risk(self) -> Iterator[tuple[float, float]]:
        run, work, costs = self.scenario, 0.0, [self.scenario.first_save]
        saved = dict(zip(self.saved_after, run.costs_of(self.saved_after), strict=True))
        for number, seconds in enumerate(run.steps):
            work += seconds
            if not self.due[number]:
                yield work, self._allowed(costs)
            if number in saved:
                work = 0.0
                costs.append(saved[number])
        yield 0.0, run.max_lost_seconds

    def _allowed(self, costs: list[float]) -> float:
        run, dearest = self.scenario, max(costs[-_RECENT:])
        if dearest <= _ROOM * run.max_overhead * run.max_lost_seconds:
            return run.max_lost_seconds
        return max(run.max_lost_seconds, _PATIENT * dearest * (1.0 / run.max_overhead - 1.0))

    @property
    def is_hasty(self) -> bool:
        """Whether the first save comes before there was work enough for what it was told to cost."""
        run = self.scenario
        if not run.is_dear or not self.saved_after:
            return False
        least = run.first_save * (1.0 / run.max_overhead - 1.0)
        return sum(run.steps[: self.saved_after[0] + 1]) < _HASTY * least

    @property
    def kind(self) -> Kind:
        if self.overhead > 1.02 * self.scenario.max_overhead or self.is_hasty:
            return "too often"
        at_risk, allowed = self.late()
        return "too late" if at_risk > allowed + _SECOND else ""


def check_cadence(job: Job) -> None:
    """4.5: saves within the budget, little at risk, on simulated clocks; then the pauses by a real one."""
    job.serves = True
    played = scenarios(job.rng)
    found = _played(job, played, side_by_side=True)
    wrong = [one for one in found if one.kind]
    if wrong:
        is_shared = not any(one.kind for one in _played(job, played, side_by_side=False))
        _refuse(job, found, wrong[0], is_shared)
    for one in found[:5]:
        job.counts[f"overhead, {one.scenario.name}"] = round(one.overhead, 4)
    _require_steady(job)
    measure_speedup(
        job,
        function="pauses_segment",
        prepare=partial(_store_receipts, job),
        compare=lambda theirs, own: _require_saves(job, theirs, own),
        likely="the pauses take longer than 5 % of the time: asking costs as much as saving, or saves come too often",
        look="`is_due` runs after every step: a comparison of two numbers is enough",
    )


def _require_steady(job: Job) -> None:
    for what, growth in job.learner().call("growth_of_asking", seed=job.seed()).items():
        job.require(
            growth <= _GROWN,
            expected="a call of `is_due` that takes as long late in a run as it did early",
            got=f"{growth:.0f} times as long, some thousand {what} later",
            likely=f"each of the {what} makes the next call dearer: all so far are kept, and every call goes through "
            "them",
            look="keep a few numbers in `self`, and no list that grows",
        )


def _played(job: Job, played: list[Scenario], *, side_by_side: bool) -> list[_Played]:
    runs = [scenario.for_the_harness() for scenario in played]
    answers = job.learner().call("simulate_runs", runs=runs, side_by_side=side_by_side)
    return [
        _Played(scenario, np.asarray(answer["due"]), [int(at) for at in answer["saved_after"]])
        for scenario, answer in zip(played, answers, strict=True)
    ]


def _refuse(job: Job, found: list[_Played], first: _Played, is_shared: bool) -> None:
    run, num_saves = first.scenario, len(first.saved_after)
    job.require(
        not is_shared,
        expected=f"several policies side by side, each with a clock and limits of its own ({run.name})",
        got="a policy that is right alone, and not beside others",
        likely="something is kept in the class or in a global variable, where all objects share it",
        look="what one run has saved belongs to `self`",
    )
    settings = f"max_lost_seconds={run.max_lost_seconds:.0f}, max_overhead={run.max_overhead:g}"
    job.require(
        first.kind != "too often",
        expected=f"at most {run.max_overhead:.0%} of the time spent in saves ({run.name}; {settings})",
        got=f"a save of {run.first_save:.0f} s after {sum(run.steps[: first.saved_after[0] + 1]):.0f} s of work"
        if first.is_hasty
        else f"{first.overhead:.1%}: {num_saves} saves in {len(run.steps)} steps",
        likely=_why_too_often(found, first),
        look="how many seconds of work must follow a save of s seconds, so that it is `max_overhead` of both?",
    )
    at_risk, allowed = first.late()
    job.require(
        False,
        expected=f"a save due with more than {allowed:,.0f} s of work at risk ({run.name}; {settings})",
        got=f"none due at {at_risk:,.0f} s" if num_saves else "no save at all",
        likely=_why_too_late(found, first),
        look="the limit is in seconds since the last save: ask `clock()`, after each step",
    )


def _why_too_often(found: list[_Played], first: _Played) -> str:
    dear = [one for one in found if one.scenario.is_dear]
    wrong = {one.scenario.name: one for one in found if one.kind}
    if wrong.keys() <= {LONG_STEPS, LONG_STEPS_CHEAP}:
        return (
            "it saves a step ahead, before there was work enough to pay for the save: where steps are long, that is "
            "far more than the share that saves may take"
        )
    if len(first.saved_after) > _EVERY_STEP * len(first.scenario.steps):
        return "it saves at nearly every step"
    if all(one.is_hasty and one.overhead <= 1.02 * one.scenario.max_overhead for one in wrong.values()):
        return (
            "what the call before the first step tells of the cost is not used: the first save comes too soon"
        )
    if dear and all(one.kind == "too often" for one in dear):
        return (
            "the cost of a save is not looked at: where the disk is slow, the budget decides, not the limit"
        )
    if not any(one.kind for one in dear) and SLOWER in wrong:
        return _KEPT
    if wrong.keys() == {UNEVEN}:
        return "of the last saves the cheap ones alone are looked at, as by their least or median: the dear ones count"
    small = wrong.get(SMALL_BUDGET)
    if small and small.overhead > 1.4 * small.scenario.max_overhead:
        return "`max_overhead` is not used: another share of the time is taken for it"
    return "it saves more often than the cost of a save allows, as where the seconds of a save count as work"


def _why_too_late(found: list[_Played], first: _Played) -> str:
    wrong = {one.scenario.name: one for one in found if one.kind}
    late = [(one, *one.late()) for one in wrong.values() if one.kind == "too late"]
    if not any(one.saved_after for one in found if one.scenario.name not in (SHORT, UNASKED)):
        return "it reads another clock than the one it was given, or waits for something that never comes"
    if all(at_risk - allowed <= 1.001 * max(one.scenario.steps) for one, at_risk, allowed in late):
        return "it saves one step too late: a save is due at the first step that passes `max_lost_seconds`"
    if wrong.keys() == {SHORT}:
        return "a second is taken for the shortest time that there is: something is rounded to seconds, or waits one"
    if wrong.keys() == {UNASKED}:
        return (
            "a save that was not due does not count, or counts twice: what counts is when `saved` was called"
        )
    if wrong.keys() == {one.scenario.name for one in found if one.scenario.begins_at == 0.0}:
        return "0 seconds are taken for no time at all: a clock may begin anywhere"
    if wrong.keys() == {BEGUN_LATER}:
        return (
            "`is_due` forgets that a save is due before there was one: what counts is when `saved` was called"
        )
    if STEADY not in wrong and SLOWER_STEPS in wrong:
        return (
            "it counts steps, not seconds, or foresees how long they will be: when steps become slower, the same "
            "number of them is more work"
        )
    if STEADY not in wrong and first.scenario.is_dear | (first.scenario.name == SLOWER):
        return "it waits far longer than the budget asks for"
    if wrong.keys() == {FASTER}:
        return "it waits longer than `max_lost_seconds` where a save costs less than what the budget allows by then"
    if wrong.keys() <= {DEAR_AT_FIRST, QUICKER, FREE}:
        return _KEPT
    return (
        "it saves too late: `is_due()` is False although `max_lost_seconds` of work are at risk, as where some calls "
        "do not look at the clock"
    )


def _store_receipts(job: Job, worker: Worker, seed: int, num_steps: int) -> None:
    """One for each save of a segment, after the seconds that a save takes; the same for both sides."""
    receipts = job.hidden(seed).integers(2**62, size=num_steps * _STEPS)
    worker.storage.put(num_steps, [receipt.tobytes() for receipt in receipts], _SAVE_SECONDS)


def _require_saves(job: Job, theirs: dict[str, Any], own: dict[str, Any]) -> None:
    """The baseline saves far more often, so its receipts are those that there are."""
    needed = int(0.8 * theirs["work_seconds"] / 0.2) - 1
    num_saves = sum(map(int.__eq__, own["receipts"].tolist(), theirs["receipts"].tolist()))
    job.require(
        num_saves >= needed,
        expected=f"under the real clock too a save every 0.2 s of work at most: {needed} or more",
        got=f"{num_saves}",
        likely="the policy saves less when it believes that it is timed",
        look="it should depend on the clock that it is given, and on nothing else",
    )
