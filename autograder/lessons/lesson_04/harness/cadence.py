"""Harness of 4.5: a loop that asks when to save, on a clock that is told how long each step takes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.checking.harness_storage import Served


class _Clock:
    """A clock that a scenario moves. On top of a real one, where pauses are to be measured.

    Attributes:
        read: what a policy is given: it tells the time, and nothing leads from it to what moves it.
    """

    def __init__(self, now: float = 1000.0, is_real: bool = False) -> None:
        self.now = now
        self.read = lambda: self.now + (time.perf_counter() if is_real else 0.0)


class _Run:
    """Step i takes `steps[i]` seconds, and a save after it would take `saves[i]`.

    A first save is done before the first step, so that the clock stands at `begins_at` when it is told. A save begins
    `delay` steps after the first at which it was due: the loop may have something else to do. Now and then, each
    `unasked_every` steps in the mean, it saves where none was due. What a save takes is multiplied by `in_turn`.
    """

    def __init__(
        self,
        max_lost_seconds: float,
        max_overhead: float,
        begins_at: float,
        first_save: float,
        steps: np.ndarray,
        saves: np.ndarray,
        delay: int,
        in_turn: list[float],
        unasked_every: float,
    ) -> None:
        self._clock, self._delay, self._waits = _Clock(begins_at), delay, 0
        self._policy = learner(
            max_lost_seconds=max_lost_seconds, max_overhead=max_overhead, clock=self._clock.read
        )
        self._in_turn, self._rng = in_turn, np.random.default_rng(len(steps))
        self._odds = 1.0 / unasked_every if unasked_every else 0.0
        self._ahead = list(zip(steps.tolist(), saves.tolist(), strict=True))[::-1]
        self.due: list[bool] = []
        self.saved_after: list[int] = []
        self._policy.saved(first_save)

    def step(self) -> bool:
        """Whether there was one more."""
        if not self._ahead:
            return False
        work, cost = self._ahead.pop()
        self._clock.now += work
        self.due.append(bool(self._policy.is_due()))
        self._waits = self._waits + 1 if self.due[-1] or self._waits else 0
        is_unasked = self._rng.random() < self._odds if self._odds else False
        if self._waits > self._delay or is_unasked:
            cost *= self._in_turn[len(self.saved_after) % len(self._in_turn)]
            self._clock.now += cost
            self._policy.saved(cost)
            self.saved_after.append(len(self.due) - 1)
            self._waits = 0
        return True


def simulate_runs(runs: list[dict[str, Any]], side_by_side: bool) -> list[dict[str, Any]]:
    """At which steps each policy said that a save was due, and after which it was done.

    Side by side, all objects are there from the beginning, and their runs take turns at each step.
    """
    found = []
    if side_by_side:
        found = [_Run(**run) for run in runs]
        while sum(run.step() for run in found):
            pass
    else:
        for settings in runs:
            found.append(run := _Run(**settings))
            while run.step():
                pass
    return [{"due": np.array(run.due, dtype=bool), "saved_after": run.saved_after} for run in found]


_CALLS, _EARLY, _LATEST, _CLEARLY = 250, slice(2, 6), 80, 8.0  # calls in a block; blocks; times
_DOUBTFUL = 2.0  # times, from which on it is measured again
_SAVES, _PAIRS = (300, 3_000), 6  # before an early call and a late one


class _Asked:
    """A policy after so many saves, asked in blocks of calls, a second or so from one to the next."""

    def __init__(self, steps: list[float], num_saves: int = 0) -> None:
        self._clock, self._steps = _Clock(), steps
        self._policy = learner(max_lost_seconds=1e9, max_overhead=0.05, clock=self._clock.read)
        self._policy.saved(1.0)
        for _ in range(num_saves):
            self._clock.now += 40.0
            self._policy.saved(1.0)

    def block(self) -> int:
        begun = time.thread_time_ns()
        for seconds in self._steps:
            self._clock.now += seconds
            self._policy.is_due()
        return time.thread_time_ns() - begun


def growth_of_asking(seed: int) -> dict[str, float]:
    """How many times as long as an early call of `is_due` a late one takes: after many steps without a save, and saves.

    In CPU time. Where the first look finds a growth, late and early calls take turns, the early ones each time of a new
    object: what slows a machine down for a while slows both, and counts for nothing. An early call comes after some
    hundred steps or saves, so that it has filled whatever is bounded.
    """
    steps = np.random.default_rng(seed).uniform(0.5, 1.5, size=_CALLS).tolist()
    late, growth = _Asked(steps), 1.0
    blocks: list[int] = []
    while len(blocks) < _LATEST and growth < _CLEARLY:
        blocks.append(late.block())
        if len(blocks) > _EARLY.stop:
            growth = min(blocks[-4:]) / max(1, min(blocks[_EARLY]))
    found = {"steps": growth if growth < _DOUBTFUL else _in_turn(late, steps, 0)}
    early, late = _Asked(steps, _SAVES[0]), _Asked(steps, _SAVES[1])
    growth = min(late.block() for _ in range(3)) / max(1, min(early.block() for _ in range(3)))
    found["saves"] = growth if growth < _DOUBTFUL else _in_turn(late, steps, _SAVES[0])
    return found


def _in_turn(late: _Asked, steps: list[float], num_saves: int) -> float:
    """Late calls over early ones, the shortest of each, measured in turn."""
    lates, earlies = [], []
    for _ in range(_PAIRS):
        fresh = _Asked(steps, num_saves)
        earlies.append(min([fresh.block() for _ in range(_EARLY.stop)][_EARLY]))
        lates.append(late.block())
    return min(lates) / max(1, min(earlies))


STEP_SECONDS, SAVE_SECONDS, MAX_LOST_SECONDS = 0.002, 0.002, 0.2
STEPS_PER_SEGMENT_STEP = 200


def pauses_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """The pauses of a run alone: steps only move the clock on, saves really wait for a slow disk, in another process.

    Each save gets a receipt there, a number that nobody can know before: they prove how many there were.
    Work that took real time would hide a pause of a few per cent in its noise; so the pauses stand alone.
    """
    clock = _Clock(is_real=True)
    policy = learner(max_lost_seconds=MAX_LOST_SECONDS, max_overhead=0.05, clock=clock.read)
    policy.saved(SAVE_SECONDS)
    disk, receipts = Served(num_steps), b""
    for _ in range(num_steps * STEPS_PER_SEGMENT_STEP):
        clock.now += STEP_SECONDS
        if policy.is_due():
            receipts += disk.fetch(len(receipts) // 8)
            policy.saved(SAVE_SECONDS)
    work_seconds = num_steps * STEPS_PER_SEGMENT_STEP * STEP_SECONDS
    return {"receipts": np.frombuffer(receipts, dtype=np.int64), "work_seconds": work_seconds}
