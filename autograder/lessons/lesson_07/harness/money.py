"""Harness of 7.2 and 7.3: a log's cost, and a guard in a run whose clock the check turns."""

from __future__ import annotations

import json
import math
from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers


def cost_of(records: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """What the learner's function makes of a log. "nan" stands for a value that is none."""
    given = [
        {key: math.nan if value == "nan" else value for key, value in record.items()} for record in records
    ]
    try:
        found = learner(given, **options)
    except ValueError as error:
        return {"outcome": "ValueError", "message": str(error)[:300]}
    if found is None:
        return {"outcome": "none"}
    return {"outcome": "cost", "numbers": numbers(found), "currency": str(found.get("currency", ""))}


class _Simulated:
    """What a guard is given: a clock that the check turns, a save that takes its time, and an ear for alarms."""

    def __init__(self, starts: float, save_takes: float) -> None:
        self.now, self.save_takes, self.saves = starts, save_takes, 0
        self.alarms: list[float] = []

    def clock(self) -> float:
        return self.now

    def save(self) -> None:
        self.now, self.saves = self.now + self.save_takes, self.saves + 1

    def notify(self, share: float) -> None:
        self.alarms.append(float(share))


def guarded(
    settings: dict[str, Any], sessions: list[list[float]], save_takes: float, clock_starts: float
) -> list[dict[str, Any]]:
    """Runs of steps that take these seconds, one session after the other, each with a new guard that gets the
    state of the one before."""
    log: list[dict[str, Any]] = []
    state: Any = None
    for durations in sessions:
        simulated = _Simulated(clock_starts, save_takes)
        hooks = {"save": simulated.save, "notify": simulated.notify, "clock": simulated.clock}
        guard = learner(**hooks, **settings)
        if state is not None:
            guard.load_state_dict(json.loads(json.dumps(state)))
        steps, is_stopped = 0, False
        for duration in durations:
            simulated.now += duration
            steps += 1
            if is_stopped := bool(guard.after_step()):
                break
        state = guard.state_dict()
        entry = {
            "steps": steps,
            "is_stopped": is_stopped,
            "saves": simulated.saves,
            "alarms": simulated.alarms,
        }
        log.append(entry | {"seconds": simulated.now - clock_starts})
        clock_starts += 1e4  # another machine, another clock
        if is_stopped:
            break
    return log
