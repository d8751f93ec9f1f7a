"""Harness of 4.5: a loop that asks when to save, on a clock that is told how long each step takes."""

from __future__ import annotations

import time
from typing import Any

from autograder.lessons.checking.harness_shared import learner


class _Clock:
    """A clock that a scenario moves. On top of a real one, where pauses are to be measured."""

    def __init__(self, is_real: bool = False) -> None:
        self.now = 1000.0
        self.is_real = is_real

    def __call__(self) -> float:
        return self.now + (time.perf_counter() if self.is_real else 0.0)


def simulate_run(
    max_lost_seconds: float, max_overhead: float, steps: list[float], saves: list[float]
) -> dict[str, Any]:
    """One run: step i takes `steps[i]` seconds, and a save after it would take `saves[i]`.

    A first save, of `saves[0]` seconds, is done before the first step. Returns after which steps it saved.
    """
    clock = _Clock()
    policy = learner(max_lost_seconds=max_lost_seconds, max_overhead=max_overhead, clock=clock)
    clock.now += saves[0]
    policy.saved(saves[0])
    saved_after = []
    for number, (work, cost) in enumerate(zip(steps, saves, strict=True)):
        clock.now += work
        if policy.is_due():
            clock.now += cost
            policy.saved(cost)
            saved_after.append(number)
    return {"saved_after": saved_after}


STEP_SECONDS, SAVE_SECONDS, MAX_LOST_SECONDS = 0.002, 0.002, 0.2
STEPS_PER_SEGMENT_STEP = 200


def pauses_segment(seed: int, num_steps: int) -> dict[str, Any]:
    """The pauses of a run alone: steps only move the clock on, saves really wait for a slow disk.

    Work that took real time would hide a pause of a few per cent in its noise; so the pauses stand alone.
    """
    clock = _Clock(is_real=True)
    policy = learner(max_lost_seconds=MAX_LOST_SECONDS, max_overhead=0.05, clock=clock)
    policy.saved(SAVE_SECONDS)
    num_saves = 0
    for _ in range(num_steps * STEPS_PER_SEGMENT_STEP):
        clock.now += STEP_SECONDS
        if policy.is_due():
            time.sleep(SAVE_SECONDS)
            policy.saved(SAVE_SECONDS)
            num_saves += 1
    return {"num_saves": num_saves, "work_seconds": num_steps * STEPS_PER_SEGMENT_STEP * STEP_SECONDS}
