"""Runs for exercise 7.3, step by step and session by session, and where a right or a mistaken guard ends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

DEFAULT_ALARMS = (0.5, 0.8)


@dataclass(frozen=True)
class Run:
    """One run. Money and time that have to be exactly equal are whole numbers, so that no rounding decides."""

    settings: dict[str, Any]
    """What the guard is made with, callables aside; without `alarms` it has its own."""
    sessions: list[list[float]]
    """Seconds of each step; the last session has more of them than the budget pays for."""
    save_takes: float
    clocks: list[float]
    """What each session's clock says when its guard is made."""
    prices: list[float] | None = None
    """Of an hour in each session, where they differ: the run goes on on other machines."""


Entry = dict[str, Any]


def runs(rng: np.random.Generator) -> list[Run]:
    """Of every sort one."""
    return [
        _spread(rng, 1, with_alarms=None),
        _spread(rng, 2, with_alarms=(0.5, 0.8)),
        _spread(rng, 1, with_alarms=(0.5, 0.8)),
        _spread(rng, 1, with_alarms=(0.5, 0.8)),
        _spread(rng, 3, with_alarms=(0.25, 0.6, 0.9)),
        _spread(rng, 3, with_alarms=()),
        _two_at_once(rng),
        _exact(rng, alarms=(0.25, 0.5, 0.75)),
        _exact(rng, alarms=(0.5,)),
        _alarm_at_the_stop(rng),
        _slow_once(rng),
        _too_small(rng),
        _quick(rng),
    ]


def _clocks(rng: np.random.Generator, number: int) -> list[float]:
    """Clocks that begin anywhere, also at 0 and below: only differences mean something."""
    some = [0.0, float(rng.integers(1, 10**5)), -float(rng.integers(1, 10**4)), float(rng.integers(1, 100))]
    return [some[int(i)] for i in rng.permutation(4)[:number]] if number > 1 else some[:1]


def _spread(rng: np.random.Generator, num_sessions: int, with_alarms: tuple[float, ...] | None) -> Run:
    """A budget that is spent in the last session, somewhere in its middle."""
    while True:
        run = _drawn(rng, num_sessions, with_alarms)
        given, last = run.settings, simulate(run)[-1]
        after = last["spent"] + given["save_seconds"] * (run.prices or [0.0])[-1] / 3600.0
        sums = [share * given["budget"] for share in given.get("alarms", DEFAULT_ALARMS)]
        if not any(0.99 * last["spent"] < money < 1.01 * after for money in sums):
            return run  # whether the save itself passes an alarm is left open


def _drawn(rng: np.random.Generator, num_sessions: int, with_alarms: tuple[float, ...] | None) -> Run:
    price = float(rng.uniform(0.8, 12.0))
    # A save takes 21 s or more, a step 20 at most: a guard that keeps a step in reserve and no save always overspends.
    save_seconds = float(rng.uniform(35.0, 60.0))
    sessions = []
    for session in range(num_sessions):
        is_last = session == num_sessions - 1
        durations = rng.uniform(5.0, 10.0, size=160 if is_last else int(rng.integers(20, 40)))
        # No later step takes longer than the first session's slowest, which is neither its first nor its last.
        durations[3] = (12.0 if session else 18.0) + float(rng.uniform(0.0, 2.0))
        sessions.append(durations.tolist())
    prices = [price, *(price * float(factor) for factor in rng.choice([0.5, 2.0, 3.0], num_sessions - 1))]
    shares = [1.0] * (num_sessions - 1) + [float(rng.uniform(0.4, 0.8))]
    budget = sum(share * sum(s) * p for share, s, p in zip(shares, sessions, prices, strict=True)) / 3600.0
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": save_seconds}
    if with_alarms is not None:
        settings["alarms"] = list(with_alarms)
    save_takes = save_seconds * float(rng.uniform(0.6, 1.0))
    return Run(settings, sessions, save_takes, _clocks(rng, num_sessions), prices)


def _two_at_once(rng: np.random.Generator) -> Run:
    """Few steps, each worth more than what lies between two alarms."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(900.0, 1100.0))
    budget = 10.3 * step / 3600.0 * price
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": 0.5 * step}
    shares = [0.30, 0.33, 0.35, 0.70]  # after the 4th step three, after the 8th one
    return Run(settings | {"alarms": shares}, [[step] * 5, [step] * 20], 0.4 * step, _clocks(rng, 2))


def _exact(rng: np.random.Generator, alarms: tuple[float, ...]) -> Run:
    """Quarters of an hour at a whole price a second: sums are at a share exactly, and the last step fits exactly."""
    price = 3600.0 * float(rng.choice([1.0, 2.0, 4.0]))
    save = float(rng.choice([0.0, 1.0, 2.0]))
    steps, quarter = 16, 900.0
    budget = quarter * steps * price / 3600.0
    first = int(rng.integers(2, 7))
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": save * quarter}
    clocks = [quarter * float(n) for n in rng.integers(-9, 9, size=2)]
    sessions = [[quarter] * first, [quarter] * 20]
    return Run(settings | {"alarms": list(alarms)}, sessions, save * quarter, clocks)


def _alarm_at_the_stop(rng: np.random.Generator) -> Run:
    """The step after which the run must end passes an alarm, too."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(90.0, 110.0))
    num_steps = int(rng.integers(8, 12))
    budget = (num_steps + 1.5) * step / 3600.0 * price
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": 0.9 * step}
    share = (num_steps - 0.4) / (num_steps + 1.5)
    return Run(settings | {"alarms": [0.1, share]}, [[step] * 30], 0.3 * step, _clocks(rng, 1))


def _slow_once(rng: np.random.Generator) -> Run:
    """One slow step early in the first session, and quick ones ever after."""
    price = float(rng.uniform(1.0, 9.0))
    quick, slow = float(rng.uniform(4.0, 6.0)), float(rng.uniform(60.0, 80.0))
    sessions = [[quick, quick, slow, quick, quick], [quick] * 60]
    budget = (sum(sessions[0]) + 40.5 * quick) / 3600.0 * price
    settings = {"budget": budget, "price_per_hour": price, "save_seconds": float(rng.uniform(1.0, 3.0))}
    return Run(settings | {"alarms": [0.55]}, sessions, 1.0, _clocks(rng, 2))


def _too_small(rng: np.random.Generator) -> Run:
    """A budget of which one step leaves no room for another."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(50.0, 90.0))
    settings = {"budget": 1.8 * step / 3600.0 * price, "price_per_hour": price, "save_seconds": 0.1 * step}
    return Run(settings | {"alarms": [0.5, 0.9]}, [[step] * 9], 0.1 * step, _clocks(rng, 1))


def _quick(rng: np.random.Generator) -> Run:
    """Steps of a fraction of a second, and a save of another."""
    price, step = float(rng.uniform(1.0, 9.0)), float(rng.uniform(0.1, 0.3))
    settings = {"budget": 40.3 * step / 3600.0 * price, "price_per_hour": price, "save_seconds": 0.5 * step}
    return Run(settings | {"alarms": [0.2, 0.7]}, [[step] * 60], 0.4 * step, _clocks(rng, 1))


def simulate(run: Run, mistake: str = "") -> list[Entry]:
    """What a right guard does, or one with this mistake, session by session up to the one in which it stops.

    `spent` is what has been paid after the last step, before the save.
    """
    given, log = run.settings, []
    budget = given["budget"]
    prices = run.prices or [given["price_per_hour"]] * len(run.sessions)
    shares = list(given.get("alarms", DEFAULT_ALARMS))
    spent = longest = 0.0
    pending = list(shares)
    clock = run.clocks[0]
    paid_seconds = 0.0
    for durations, starts, price in zip(run.sessions, run.clocks, prices, strict=True):
        rate = price / (1.0 if mistake == "hours" else 3600.0)
        if mistake == "one price":
            spent = paid_seconds * rate
        if mistake == "session forgotten":
            spent = 0.0
        if mistake == "alarms again":
            pending = list(shares)
        if mistake == "slowest forgotten":
            longest = 0.0
        last = starts  # what the clock said then
        skipped = starts - clock if mistake == "one clock" else 0.0
        entry: Entry = {"steps": 0, "is_stopped": False, "saves": 0, "alarms": [], "spent": 0.0}
        for duration in durations:
            entry["steps"] += 1
            is_unpaid = mistake == "first step" and entry["steps"] == 1
            is_unpaid |= mistake == "clock at zero" and last == 0.0
            seconds, last = 0.0 if is_unpaid else duration + skipped, last + duration
            # What a save takes is a part of the next step then.
            skipped = run.save_takes if mistake == "saves at every step" else 0.0
            spent, paid_seconds = spent + seconds * rate, paid_seconds + seconds
            longest = max(0.0 if mistake == "last step" else longest, seconds)
            steps = {"no step": 0.0, "two steps": 2.0 * longest}.get(mistake, longest)
            save = {"no save": 0.0, "two saves": 2.0 * given["save_seconds"]}.get(
                mistake, given["save_seconds"]
            )
            reserve = 0.0 if mistake == "no reserve" else (steps + save) * rate
            is_over = spent + reserve > budget
            if mistake in ("fits", "no reserve"):
                is_over = spent + reserve >= budget
            if not (mistake == "no alarm at the stop" and is_over):
                _alarm(entry, pending, spent, budget, mistake)
            entry["saves"] += mistake == "saves at every step"
            if is_over:
                entry["is_stopped"] = True
                entry["saves"] = {"no checkpoint": 0, "two checkpoints": 2}.get(
                    mistake, max(1, entry["saves"])
                )
                break
        log.append(entry | {"spent": spent})
        spent = round(spent, 2) if mistake == "rounded" else spent
        clock = starts + sum(durations)
        if entry["is_stopped"]:
            break
    return log


def _alarm(entry: Entry, pending: list[float], spent: float, budget: float, mistake: str) -> None:
    due = [
        s for s in pending if (spent > s * budget if mistake == "above the share" else spent >= s * budget)
    ]
    if mistake == "one alarm a step":
        due = due[:1]
    if mistake == "the highest alarm":
        pending[:] = [share for share in pending if share not in due]
        due = due[-1:]
    said = [share * budget for share in due] if mistake == "sums of money" else due
    entry["alarms"] += [[entry["steps"], share] for share in said]
    if mistake != "alarm at every step":
        pending[:] = [share for share in pending if share not in due]
