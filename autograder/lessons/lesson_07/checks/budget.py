"""The check of exercise 7.3: a guard of the budget, in runs whose clock the check turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.engine import Job

Record = dict[str, Any]


def check_budget_guard(job: Job) -> None:
    """7.3: saves once and stops in time, no sooner than it must, over sessions, with each alarm once."""
    for number in range(6):
        settings, sessions, save_takes = _run(job.rng, num_sessions=1 + number % 3)
        arguments: dict[str, Any] = {"settings": settings, "sessions": sessions, "save_takes": save_takes}
        starts = float(job.rng.uniform(0.0, 1e5))
        log = job.learner().call("guarded", clock_starts=starts, **arguments)
        expected = _simulate(settings, sessions, save_takes)
        alone = _simulate(settings, sessions[len(log) - 1 :][:1], save_takes)[-1]["steps"]
        _require_guard(job, log, expected, settings, alone)
    job.counts["runs"] = 6


def _run(rng: np.random.Generator, num_sessions: int) -> tuple[dict[str, Any], list[list[float]], float]:
    """A budget that is spent in the last session, somewhere in its middle."""
    price = float(rng.uniform(0.8, 12.0))
    # A save takes 21 s or more, a step 20 at most: a guard that keeps a step in reserve and no save always overspends.
    save_seconds = float(rng.uniform(35.0, 60.0))
    sessions = []
    for session in range(num_sessions):
        length = 60 if session == num_sessions - 1 else int(rng.integers(8, 14))
        durations = rng.uniform(5.0, 15.0, size=length)
        durations[0] = 15.0 + float(rng.uniform(0.0, 5.0))  # no later step takes longer than the first
        sessions.append(durations.tolist())
    before = sum(map(sum, sessions[:-1]))
    seconds = before + float(rng.uniform(0.4, 0.8)) * sum(sessions[-1])
    settings = {
        "budget": seconds / 3600.0 * price,
        "price_per_hour": price,
        "save_seconds": save_seconds,
        "alarms": [0.5, 0.8],
    }
    return settings, sessions, save_seconds * float(rng.uniform(0.6, 1.0))


def _simulate(settings: Record, sessions: list[list[float]], save_takes: float) -> list[Record]:
    """What a right guard does: it stops when the longest step so far and a save may cost more than is left."""
    rate = settings["price_per_hour"] / 3600.0
    spent = longest = 0.0
    alarms = list(settings["alarms"])
    log: list[Record] = []
    for durations in sessions:
        entry: Record = {"steps": 0, "is_stopped": False, "saves": 0, "alarms": []}
        for duration in durations:
            spent, longest = spent + duration * rate, max(longest, duration)
            entry["steps"] += 1
            while alarms and spent >= alarms[0] * settings["budget"]:
                entry["alarms"].append(alarms.pop(0))
            if spent + (longest + settings["save_seconds"]) * rate > settings["budget"]:
                entry["is_stopped"], entry["saves"] = True, 1
                spent += save_takes * rate
                break
        entry["spent"] = spent
        log.append(entry)
    return log


def _require_guard(
    job: Job, log: list[Record], expected: list[Record], settings: Record, steps_if_alone: int
) -> None:
    rate = settings["price_per_hour"] / 3600.0
    spent = sum(entry["seconds"] for entry in log) * rate
    last, right = log[-1], expected[-1]
    earlier = len(log) < len(expected) or any(e["is_stopped"] for e in log[:-1])
    many = f" (session {len(log)} of {len(expected)})" if len(expected) > 1 else ""
    job.require(
        last["is_stopped"] and spent <= settings["budget"] * (1 + 1e-9),
        expected=f"a run that has stopped, saved, with at most {settings['budget']:.4f} spent",
        got=f"{spent:.4f} spent{'' if last['is_stopped'] else ', and the run goes on'}{many}",
        likely=_why_late(last, len(expected), steps_if_alone),
        look="what may the next step and the save cost together, and is that left?",
    )
    job.require(
        last["saves"] >= 1,
        expected="a checkpoint before the stop",
        got="none",
        likely="it stops without a checkpoint: the money is saved and the work is lost",
        look="`save()` before you return True",
    )
    job.require(
        not earlier and last["steps"] >= right["steps"],
        expected=f"a stop after step {right['steps']} of the last session: until then another step and a save fit",
        got=f"after step {last['steps']}{many}",
        likely="it stops too early: a larger reserve than one step and one save, or seconds taken for hours",
        look="the reserve is the longest step so far and `save_seconds`, at the price of a second",
    )
    job.require(
        last["steps"] == right["steps"],
        expected=f"a stop after step {right['steps']}: the next step and the save might cost more than is left",
        got=f"after step {last['steps']}",
        likely="the reserve is too small: the save, or the longest step so far, is left out",
        look="this time it went well; with a slower step it would not",
    )
    job.require(
        sum(entry["saves"] for entry in log) == 1,
        expected="one checkpoint, at the stop",
        got=f"{sum(entry['saves'] for entry in log)}",
        likely="it saves at every step, and pays for it",
        look="`save` costs `save_seconds` of money each time",
    )
    got, wanted = ([entry["alarms"] for entry in entries] for entries in (log, expected))
    job.require(
        got == wanted,
        expected=f"alarms {wanted}, session by session",
        got=f"{got}"[:200],
        likely="an alarm at every step, at the wrong share, or again after a resume",
        look="each alarm once, when the money spent first reaches its share; `state_dict` knows which were given",
    )


def _why_late(last: Record, num_sessions: int, steps_if_alone: int) -> str:
    # The longest step of an earlier session may have been kept: it moves the stop by one.
    if num_sessions > 1 and abs(last["steps"] - steps_if_alone) <= 1:
        return "earlier sessions are forgotten: `state_dict` must hold the money that they spent"
    if not last["is_stopped"]:
        return "seconds taken for hours: the price is for an hour, the clock counts seconds"
    if last["saves"] == 0:
        return "it stops without a checkpoint, and too late besides"
    return "it stops when the money is gone: the step and the save that follow are not paid for"
