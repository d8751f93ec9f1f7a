"""Harness of 7.2 and 7.3: a log's cost, and a guard in a run whose clock the check turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from autograder.lessons.checking.harness_shared import learner, numbers


def cost_of(records: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """What the learner's function makes of a log. "nan", "inf" and "-inf" stand for the numbers."""
    given = [
        {key: float(value) if value in ("nan", "inf", "-inf") else value for key, value in record.items()}
        for record in records
    ]
    try:
        found = learner(given, **options)
    except ValueError as error:
        return {"outcome": "ValueError", "message": str(error)[:300]}
    if found is None:
        return {"outcome": "none"}
    if not isinstance(found, dict):
        return {"outcome": f"a {type(found).__name__}"}
    return {"outcome": "cost", "numbers": numbers(found), "currency": str(found.get("currency", ""))}


def refused(records: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """The same of a price that is to be refused: any other error is told by its name."""
    try:
        return cost_of(records, options)
    except Exception as error:
        return {"outcome": type(error).__name__}


class _Simulated:
    """What a guard is given: a clock that the check turns, a save that takes its time, and an ear for alarms."""

    def __init__(self, starts: float, save_takes: float) -> None:
        self.now, self.save_takes, self.saves = starts, save_takes, 0
        self.steps = 0
        self.alarms: list[list[float]] = []  # step of the session, share

    def clock(self) -> float:
        return self.now

    def save(self) -> None:
        self.now, self.saves = self.now + self.save_takes, self.saves + 1

    def notify(self, share: float) -> None:
        self.alarms.append([self.steps, float(share)])


def guarded(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs side by side, a step of each in turn. Equal alarms are one list, which several guards are given."""
    lists: dict[tuple[float, ...], list[float]] = {}
    answers: list[dict[str, Any]] = [{"log": [], "not_plain": "", "is_list_changed": False} for _ in runs]
    for run in runs:
        if (alarms := run["settings"].get("alarms")) is not None:
            run["settings"]["alarms"] = lists.setdefault(tuple(alarms), alarms)
    going = [_steps(run, answer) for run, answer in zip(runs, answers, strict=True)]
    while going:
        going = [one for one in going if next(one, "ended") != "ended"]
    changed = [wanted for wanted, alarms in lists.items() if list(wanted) != list(alarms)]
    return [answer | {"is_list_changed": bool(changed)} for answer in answers]


def _steps(run: dict[str, Any], answer: dict[str, Any]) -> Iterator[None]:
    """One session after the other, each with a new guard that gets the state of the one before."""
    state = ""
    prices = run["prices"] or [run["settings"]["price_per_hour"]] * len(run["sessions"])
    for durations, starts, price in zip(run["sessions"], run["clocks"], prices, strict=True):
        simulated = _Simulated(starts, run["save_takes"])
        hooks = {"save": simulated.save, "notify": simulated.notify, "clock": simulated.clock}
        guard = learner(**hooks, **run["settings"] | {"price_per_hour": price})
        if state:
            guard.load_state_dict(json.loads(state))
        is_stopped = False
        for duration in durations:
            yield
            simulated.now += duration
            simulated.steps += 1
            is_stopped = bool(guard.after_step())
            try:
                state = json.dumps(guard.state_dict())
            except (TypeError, ValueError) as error:
                answer["not_plain"] = f"{type(error).__name__}: {error}"[:200]
                return
            if is_stopped:
                break
        entry = {"steps": simulated.steps, "is_stopped": is_stopped, "saves": simulated.saves}
        answer["log"].append(entry | {"alarms": simulated.alarms})
        if is_stopped:
            break
