"""Harness of 7.2 and 7.3: a log's cost, and a guard in a run whose clock the check turns."""

from __future__ import annotations

import copy
import json
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from autograder.lessons.checking.harness_shared import learner
from autograder.lessons.lesson_07.harness.trace import true_numbers

_log: list[dict[str, Any]] = []  # one list for every log: who knows it again by its `id` is mistaken
_returned: list[tuple[Any, str]] = []  # so far, and how it read then


def cost_of(records: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """What the learner's function makes of a log, and whether it leaves it, and its results so far, as they were.

    "nan", "inf" and "-inf" stand for the numbers.
    """
    _log[:] = [
        {key: float(value) if value in ("nan", "inf", "-inf") else value for key, value in record.items()}
        for record in records
    ]
    before = repr(_log)
    answer = _cost_of(_log, options) | {"is_unchanged": repr(_log) == before}
    return answer | {"is_own": all(repr(found) == text for found, text in _returned)}


def _cost_of(given: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    try:
        found = learner(given, **options)
        _returned.append((found, repr(found)))
    except ValueError as error:
        return {"outcome": "ValueError", "message": str(error)[:300]}
    if found is None:
        return {"outcome": "none"}
    if not isinstance(found, dict):
        return {"outcome": f"a {type(found).__name__}"}
    return {"outcome": "cost", "numbers": true_numbers(found), "currency": str(found.get("currency", ""))}


def refused(records: list[dict[str, Any]], options: dict[str, Any], prices: list[str]) -> list[str]:
    """The outcomes for prices that are to be refused: any other error is told by its name."""
    return [_outcome(records, options | {"price": price}) for price in prices]


def _outcome(records: list[dict[str, Any]], options: dict[str, Any]) -> str:
    try:
        return str(cost_of(records, options)["outcome"])
    except Exception as error:
        return type(error).__name__


class _FullDisk(OSError):
    """What a save raises that finds no room."""


class _Simulated:
    """What a guard is given: a clock that the check turns, a save and alarms that take their time."""

    def __init__(self, run: dict[str, Any], starts: float) -> None:
        self.now, self.run = starts, run
        self.guard: Any = None
        self.steps, self.saves, self.is_stopped = 0, 0, False
        self.alarms: list[list[float]] = []  # step of the session, share
        self.in_checkpoint: Any = None
        self.states: list[tuple[Any, str]] = []  # handed out or in, and how they read then
        self.said: set[str] = set()  # what `after_step` returned beside True and False

    def hooks(self) -> dict[str, Any]:
        # No methods: a copy of one is of another run, of which nobody knows.
        return {
            "save": lambda: self.save(),
            "notify": lambda share, /: self.notify(share),
            "clock": lambda: self.now,
        }

    def save(self) -> None:
        self.in_checkpoint = copy.deepcopy(self.guard.state_dict())
        self.now, self.saves = self.now + self.run["save_takes"], self.saves + 1

    def notify(self, share: float, /) -> None:
        self.alarms.append([self.steps, float(share)])
        self.now += self.run["notify_takes"]

    def state(self) -> str:
        """As of now. Raises TypeError or ValueError where JSON cannot hold it."""
        state = self.guard.state_dict()
        self.states.append((state, json.dumps(state)))
        return self.states[-1][1]

    def entry(self) -> dict[str, Any]:
        return {"steps": self.steps, "is_stopped": self.is_stopped, "alarms": self.alarms}


def guarded(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs side by side, a step of each in turn. Equal alarms are one list, which several guards are given."""
    lists: dict[tuple[float, ...], list[float]] = {}
    answers: list[dict[str, Any]] = [
        {
            **{"log": [], "not_plain": "", "said": [], "states": []},
            **{"is_list_changed": False, "is_state_changed": False},
        }
        for _ in runs
    ]
    for run in runs:
        if (alarms := run["settings"].get("alarms")) is not None:
            run["settings"]["alarms"] = lists.setdefault(tuple(alarms), alarms)
    going = [_steps(run, answer) for run, answer in zip(runs, answers, strict=True)]
    while going:
        going = [one for one in going if next(one, "ended") != "ended"]
    changed = [wanted for wanted, alarms in lists.items() if list(wanted) != list(alarms)]
    return [answer | {"is_list_changed": bool(changed)} for answer in answers]


def _steps(run: dict[str, Any], answer: dict[str, Any]) -> Iterator[None]:
    """One session after the other, each with a new guard that gets the state of the one before; the first one that of
    the run, if there is one."""
    state = run.get("state", "")
    prices = run["prices"] or [run["settings"]["price_per_hour"]] * len(run["sessions"])
    saves = run["saves"] or [run["settings"]["save_seconds"]] * len(run["sessions"])
    try:
        for durations, starts, *own in zip(run["sessions"], run["clocks"], prices, saves, strict=True):
            simulated = _Simulated(run, starts)
            settings = dict(zip(("price_per_hour", "save_seconds"), own, strict=True))
            state = yield from _session(simulated, durations, settings, state)
            answer["said"] += sorted(simulated.said)
            answer["states"].append(state)
            answer["log"].append(simulated.entry() | {"saves": simulated.saves})
            answer["is_state_changed"] |= any(json.dumps(one) != text for one, text in simulated.states)
            if simulated.is_stopped:
                break
        if run["sequel"] and simulated.is_stopped and simulated.saves:
            starts, seconds = run["sequel"]
            later = _Simulated(run, starts)
            yield from _session(later, [seconds], settings, json.dumps(simulated.in_checkpoint))
            answer["log"][-1]["sequel"] = later.entry()
    except _NotPlain as error:
        answer["not_plain"] = str(error)


class _NotPlain(Exception):
    """A state that JSON cannot hold."""


def _session(
    simulated: _Simulated, durations: list[float], settings: dict[str, float], state: str
) -> Generator[None, None, str]:
    """A new guard's session, a step at a time. Returns its last state."""
    run = simulated.run
    guard = learner(**simulated.hooks(), **run["settings"] | settings)
    simulated.guard = guard
    if state:
        simulated.now += run["loading_takes"]
        simulated.states.append((handed_in := json.loads(state), state))
        guard.load_state_dict(handed_in)
    for duration in durations:
        yield
        simulated.now += duration
        simulated.steps += 1
        ends = guard.after_step()
        if not isinstance(ends, bool | np.bool_):
            simulated.said.add(repr(ends)[:40])
        simulated.is_stopped = bool(ends)
        state = _state_of(simulated)
        if simulated.is_stopped:
            break
    else:
        simulated.now += run["late"]
        state = _state_of(simulated)
    return state


def _state_of(simulated: _Simulated) -> str:
    try:
        return simulated.state()
    except (TypeError, ValueError) as error:
        raise _NotPlain(f"{type(error).__name__}: {error}"[:200]) from None


def with_saves_that_fail(run: dict[str, Any]) -> list[dict[str, Any]]:
    """For a full disk, an error of the caller's own and a stop by hand: the name of the error that reaches the caller,
    "" for none, and how often `save` was called."""
    return [
        _failing(run, error)
        for error in (_FullDisk("no space left on device"), _NotPlain("no such state"), KeyboardInterrupt())
    ]


def _failing(run: dict[str, Any], error: BaseException) -> dict[str, Any]:
    simulated = _Simulated(run, run["clocks"][0])

    def save() -> None:
        simulated.saves += 1
        raise error

    guard = learner(**simulated.hooks() | {"save": save}, **run["settings"])
    reached = ""
    try:
        for duration in run["sessions"][0]:
            simulated.now += duration
            if guard.after_step():
                break
    except (Exception, KeyboardInterrupt) as raised:
        reached = type(raised).__name__
    return {"wanted": type(error).__name__, "reached": reached, "calls": simulated.saves}
